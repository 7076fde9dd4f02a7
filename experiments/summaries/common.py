"""Parts that summaries of several experiments have in common."""

from __future__ import annotations

from typing import Any, Final

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

DESCRIBED: Final = ConfigDict(use_attribute_docstrings=True)
"""Configuration of a dataclass that describes a summary: the text below a field says what it means."""

OPEN: Final = ConfigDict(use_attribute_docstrings=True, extra="allow")
"""Configuration of a dataclass with further keys that no field names; its docstring says which."""
JsonObject = dict[str, Any]


@dataclass(kw_only=True, config=DESCRIBED)
class HasRevision:
    """Version of the program that made a summary."""

    revision: str
    """Git revision of the checkout, with "+" if files had changed, or the version that pip installed."""


@dataclass(kw_only=True, config=DESCRIBED)
class HasEngine(HasRevision):
    """Program and engine that made a summary."""

    engine: str
    """Switch or simulator: embedded, bmv2, or a sentence about the simulator."""


@dataclass(kw_only=True, config=DESCRIBED)
class Crash:
    """A process that ended while an experiment ran."""

    process: str
    how: str
    """Exit code or signal."""
    last_lines: list[str]
    """Last lines that the process printed."""


@dataclass(kw_only=True, config=OPEN)
class Crashed:
    """Summary of an emulation in which a process ended: the options of the command, and the crash."""

    crashed: Crash
