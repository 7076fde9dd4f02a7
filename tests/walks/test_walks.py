"""The walks of docs/walks, done as they are written: every command, every file, and what is said to come out.

Blocks of a walk: `sh` is run, `sh fails` is run and has to fail; `python PATH` and `p4 PATH` are written to
PATH; `diff` is applied; each line of `text` has to be among what the last command said, but for its numbers.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
WALKS = sorted((ROOT / "docs" / "walks").glob("*.md"))
_BLOCK = re.compile(r"^```(\w+) ?([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"\d[\d,.]*")
_DRAWN = re.compile(r"[^\w#.:/ ]+")
MOST_S = 600
"""Ten minutes is what a walk says it takes a person."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
    pytest.mark.timeout(2 * MOST_S),
]


class Block(NamedTuple):
    """One block of code in a walk."""

    kind: str
    about: str
    body: str


def blocks_of(walk: Path) -> Iterator[Block]:
    for kind, about, body in _BLOCK.findall(walk.read_text()):
        yield Block(kind, about, body)


def essence(line: str) -> str:
    """Without numbers, frames, and marks of points that don't count: those are the machine's."""
    return " ".join(_DRAWN.sub(" ", _NUMBER.sub("#", line)).split())


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The repository as it is now, with the environment that is there; `make` finds nothing to set up."""
    folder = tmp_path / "weir"
    names = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    for name in names:
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
            os.utime(folder / name, (0, 0))
    (folder / ".venv").symlink_to(ROOT / ".venv")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


def run(command: str, folder: Path) -> tuple[int, str]:
    environment = {**os.environ, "COLUMNS": "100", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        ["bash", "-ec", command], cwd=folder, env=environment, text=True, timeout=MOST_S, check=False,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return done.returncode, done.stdout


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.stem)
def test_a_walk_goes_as_it_says(walk: Path, clone: Path) -> None:
    said, commands = "", 0
    for block in blocks_of(walk):
        if block.kind == "sh":
            code, said = run(block.body, clone)
            assert (code != 0) == (block.about == "fails"), f"{block.body}\n{said}"
            commands += 1
        elif block.kind in ("python", "p4"):
            (clone / block.about).write_text(block.body)
        elif block.kind == "diff":
            (clone / "a.diff").write_text(block.body)
            code, refused = run("git apply a.diff", clone)
            assert code == 0, refused
        else:
            assert block.kind == "text"
            lines = {essence(line) for line in said.splitlines()}
            wanted = [line for line in block.body.splitlines() if line.strip()]
            missing = [line for line in wanted if essence(line) not in lines]
            assert not missing, f"not said: {missing}\n{said}"
    assert commands


def test_there_are_three_walks() -> None:
    assert [walk.stem for walk in WALKS] == ["incast", "p4", "policy"]
