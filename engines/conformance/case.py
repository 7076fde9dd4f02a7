"""The list of cases: functions under a name, with the public reports that they stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engines.conformance.bench import Bench

Measured = dict[str, Any]
"""Figures that a case measured, by name with unit."""

Check = Callable[["Bench"], Measured]
"""Returns what it measured; raises `CaseError` if the case did not pass."""


@dataclass(frozen=True, slots=True)
class Case:
    """One question to a connector."""

    name: str
    about: str
    """Sentence that says what has to hold."""
    sources: tuple[str, ...]
    """Public reports of engines or connectors where it did not hold."""
    check: Check


CASES: dict[str, Case] = {}
"""Cases by name, in the order in which they are registered."""


def case(name: str, about: str, *sources: str) -> Callable[[Check], Check]:
    """Register a check under a name. Returns a decorator that leaves the function as it is."""

    def register(check: Check) -> Check:
        if name in CASES:
            raise ValueError(f"two cases are named {name}")
        CASES[name] = Case(name, about, sources, check)
        return check

    return register


def chosen(names: Sequence[str]) -> list[Case]:
    """Return the cases of these names in the order of the list; all of them if no name is given."""
    return [one for one in CASES.values() if not names or one.name in names]
