"""Run pages of docs as they are written: every command, every file, and what is said to come out.

Blocks of a page: `sh` is run; `sh title="fails on purpose"` is run and has to fail; `python`, `p4`, `json`
and `toml` with a title are written to the file that it names; `diff` is applied; each line of `text` has to
be among what the last command said, but for its numbers. Other blocks are only read.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FAILS = "fails on purpose"
MOST_S = 600
"""Longest time for a command: ten minutes is what a walk says it takes a person."""
_BLOCK = re.compile(r'^```(\w+)(?: title="([^"\n]*)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"\d[\d,.]*")
_DRAWN = re.compile(r"[^\w#.:/ ]+")


class Block(NamedTuple):
    """One block of code in a page."""

    kind: str
    title: str
    body: str


def blocks_of(text: str) -> Iterator[Block]:
    """Return the blocks of code of a text, in order."""
    for kind, title, body in _BLOCK.findall(text):
        yield Block(kind, title, body)


def parts_of(page: Path) -> dict[str, str]:
    """Return the sections of a page by their headings."""
    parts = re.split(r"^## (.*)$", page.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def essence(line: str) -> str:
    """Return a line without the machine's own: numbers, frames, and marks of points that don't count."""
    return " ".join(_DRAWN.sub(" ", _NUMBER.sub("#", line)).split())


def clone(folder: Path) -> Path:
    """Copy the repository as it is now, with its environment: `make` finds nothing to set up."""
    names = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    for name in names:
        if (ROOT / name).is_file() or (ROOT / name).is_symlink():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name, follow_symlinks=False)
            os.utime(folder / name, (0, 0), follow_symlinks=False)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


def run(command: str, folder: Path) -> tuple[int, str]:
    """Run a command of a page; returns its exit code and all that it said."""
    environment = {**os.environ, "COLUMNS": "100", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        ["bash", "-ec", command], cwd=folder, env=environment, text=True, timeout=MOST_S, check=False,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return done.returncode, done.stdout


def follow(page: Path, folder: Path) -> None:
    """Do in `folder` what a page says, block by block; asserts that it comes out as it says."""
    do(page.read_text(), folder)


def do(text: str, folder: Path) -> None:
    """Do in `folder` what a text says, block by block; asserts that it comes out as it says."""
    said, commands = "", 0
    for block in blocks_of(text):
        if block.kind == "sh":
            code, said = run(block.body, folder)
            assert (code != 0) == (block.title == FAILS), f"{block.body}\n{said}"
            commands += 1
        elif block.kind == "diff":
            (folder / "a.diff").write_text(block.body)
            code, refused = run("git apply a.diff", folder)
            assert code == 0, refused
        elif block.kind == "text":
            lines = {essence(line) for line in said.splitlines()}
            wanted = [line for line in block.body.splitlines() if line.strip()]
            missing = [line for line in wanted if essence(line) not in lines]
            assert not missing, f"not said: {missing}\n{said}"
        elif block.title:
            (folder / block.title).write_text(block.body)
    assert commands
