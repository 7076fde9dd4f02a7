"""Training text: prose in the sources of Python's standard library, which every machine has."""

from __future__ import annotations

import re
import sysconfig
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Final

from commands.errors import ExperimentError

HELD_OUT: Final = 10
"""Number of files of which one is held out for judging; the others are for training."""
_LONGEST: Final = 48
_PROSE: Final = re.compile(rb"[a-z ,.'()-]{20,80}")
_FEWEST_SPACES: Final = 4


class CorpusError(ExperimentError):
    """There is no text to train on; the message names the folder that was searched."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """Lines of lower-case prose, each ended by a newline."""

    training: tuple[bytes, ...]
    held_out: tuple[bytes, ...]

    @property
    def digest(self) -> str:
        """Return a digest of all lines: other machines' libraries may differ."""
        return blake2b(b"".join(self.training + self.held_out), digest_size=8).hexdigest()


def read_corpus(folder: Path | None = None) -> Corpus:
    """Return the prose of the sources in `folder` (by default the standard library's); raises CorpusError."""
    place = folder or Path(sysconfig.get_paths()["stdlib"])
    lines: tuple[list[bytes], list[bytes]] = ([], [])
    for number, path in enumerate(sorted(place.glob("*.py"))):
        lines[number % HELD_OUT == 0].extend(_prose(path.read_bytes()))
    if not (lines[0] and lines[1]):
        raise CorpusError(f"{place} holds no Python sources with prose in them")
    return Corpus(tuple(lines[0]), tuple(lines[1]))


def _prose(source: bytes) -> list[bytes]:
    lines = (line.strip().lower() for line in source.splitlines())
    return [
        line[:_LONGEST] + b"\n"
        for line in lines
        if line.count(b" ") >= _FEWEST_SPACES and _PROSE.fullmatch(line)
    ]
