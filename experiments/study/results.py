"""Results by content: a point is computed once, whichever sweep needs it and however often a run is stopped.

A point's name is the hash of its scenario and of the code that its result depends on.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cache, lru_cache
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any

from scenario import Scenario
from workload.trace_files import session_files

ROOT = Path(__file__).resolve().parents[2]
CODE = ("simulator", "scenario", "controller", "workload", "hostlib", "topologies", "v1model/binding")
KINDS = ("*.py", "*.c", "*.h", "*.json")
"""Kinds of files, in the folders CODE, that a result depends on."""

Figures = dict[str, Any]
"""A result as simulator.result.SimResult.to_dict gives it."""


@cache
def code_hash() -> str:
    """Return a hash of all sources below CODE, and of the sizes of coded blocks that were measured."""
    digest = blake2b(digest_size=8)
    for folder in CODE:
        for path in sorted(path for kind in KINDS for path in (ROOT / folder).rglob(kind)):
            digest.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


def point_name(scenario: Scenario) -> str:
    """Return the content address of a scenario's result; its own name and remarks don't matter."""
    parts = asdict(scenario)
    del parts["name"], parts["source"], parts["emulation"]
    trace = scenario.workload.trace
    if trace:
        parts["workload"]["trace"] = _content(Path(trace))
    text = json.dumps([parts, code_hash()], sort_keys=True)
    return blake2b(text.encode(), digest_size=12).hexdigest()


def _content(trace: Path) -> str:
    """Return a digest of a trace file, or of all files of a folder of sessions."""
    files = session_files(trace) if trace.is_dir() else [trace]
    stats = [path.stat() for path in files]
    return _digest(tuple(files), tuple((one.st_size, one.st_mtime_ns, one.st_ino) for one in stats))


@lru_cache(maxsize=8)
def _digest(files: tuple[Path, ...], _stamps: tuple[tuple[int, ...], ...]) -> str:
    """Return a digest of the files' content; `_stamps` renew the cached one when files change."""
    digest = blake2b(digest_size=8)
    for path in files:
        with path.open("rb") as file:
            digest.update(file_digest(file, "blake2b").digest())
    return digest.hexdigest()


class ResultStore:
    """A folder with one JSON file a point; a file is there whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, name: str) -> Figures | None:
        """Return a point's figures, or None if they are not computed yet or the file is damaged."""
        try:
            figures: Figures = json.loads((self._folder / f"{name}.json").read_text())
        except (OSError, ValueError):
            return None
        return figures

    def put(self, name: str, figures: Figures) -> None:
        """Store a point's figures."""
        part = self._folder / f"{name}.part"
        part.write_text(json.dumps(figures))
        part.replace(self._folder / f"{name}.json")

    def __len__(self) -> int:
        return sum(1 for _ in self._folder.glob("*.json"))
