"""The examples of docs/embedded-switch.md, run as they stand there."""

from __future__ import annotations

import os
import re
import selectors
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "embedded-switch.md").read_text()
START_TIMEOUT_S = 60


def examples(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a user would be, but nothing is written into the project."""
    (tmp_path / "p4").symlink_to(ROOT / "p4")
    return tmp_path


def start(command: list[str], folder: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)


def test_library(folder: Path) -> None:
    (example,) = examples("python")
    process = start([sys.executable, "-c", example], folder)
    assert process.wait() == 0


def test_command_lines(folder: Path) -> None:
    (example,) = examples("sh")
    compiling, serving = (shlex.split(line) for line in example.splitlines())
    assert compiling[0] == serving[0] == "python"
    assert start([sys.executable, *compiling[1:]], folder).wait() == 0
    process = start([sys.executable, *serving[1:]], folder)
    try:
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            assert selector.select(START_TIMEOUT_S), "the switch does not say that it listens"
        assert process.stdout.readline() == "listening on unix:weir.sock\n"
        process.terminate()
        assert process.wait(START_TIMEOUT_S) == 0
    finally:
        process.kill()
        process.wait()


def test_files_that_it_names_exist() -> None:
    names = re.findall(r"`([\w/]+(?:\.\w+|/))`", TEXT)
    paths = [name for name in names if "/" in name and not name.startswith("testdata")]
    assert paths
    for name in paths:
        places = (ROOT / name, ROOT / "v1model" / name, ROOT / "tests" / "conformance" / name)
        assert any(place.exists() for place in places), name
