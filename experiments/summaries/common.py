"""What summaries of several experiments have in common."""

from __future__ import annotations

from typing import Any, Final

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

DESCRIBED: Final = ConfigDict(use_attribute_docstrings=True)
"""Configuration of a dataclass that describes a summary: the text below a field says what it means."""

OPEN: Final = ConfigDict(use_attribute_docstrings=True, extra="allow")
"""The same for what has keys, besides, that no field names; the dataclass says which."""
Anything = dict[str, Any]


@dataclass(kw_only=True, config=DESCRIBED)
class Made:
    """What says which program made a summary."""

    revision: str
    """Git revision of the checkout, with "+" if files had changed, or the version that pip installed."""


@dataclass(kw_only=True, config=DESCRIBED)
class MadeBy(Made):
    """The same, with the engine that run or simulated."""

    engine: str
    """Switch or simulator: embedded, bmv2, or a sentence about the simulator."""


@dataclass(kw_only=True, config=DESCRIBED)
class Crash:
    """A process that ended while an experiment ran."""

    process: str
    how: str
    """Exit code or signal."""
    last_lines: list[str]
    """What it said last."""


@dataclass(kw_only=True, config=OPEN)
class Crashed:
    """What an emulation leaves if a process of it ended: what the command was given, and this."""

    crashed: Crash
