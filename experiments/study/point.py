"""One simulation of the study, and what it is for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from experiments.study.systems import NAMES, Setting
from scenario import Scenario

ONE_GROUP = ("ablation", "control")
"""Sweeps whose values are compared with one another."""
_AFTER_STORES = {
    "stores": "",
    "switch": " and pool",
    "merging": ", merging switch",
    "smartnic": ", coded, adapters decode (ShadowServe-like)",
}
"""Text of a label after the number of storage nodes."""


@dataclass(frozen=True, slots=True)
class Point:
    """A system at a place of a sweep."""

    sweep: str
    """One of options.SWEEPS."""
    value: Any
    system: str
    setting: Setting
    scenario: Scenario
    variant: str = ""
    """Name that distinguishes it from the same system at the same place."""

    @property
    def place(self) -> str:
        """Return the place; points of one place are compared with one another and see the same traffic."""
        return "" if self.sweep in ONE_GROUP else str(self.value)

    @property
    def label(self) -> str:
        """Return the label that readers see."""
        return label(self.system, self.setting.stores, self.variant)


def label(system: str, stores: int, variant: str = "") -> str:
    """Return the label of a system, with its number of storage nodes if it has any."""
    name = NAMES[system]
    if system in _AFTER_STORES:
        name = f"{stores} storage node{'s' if stores > 1 else ''}{_AFTER_STORES[system]}"
    return f"{name}, {variant}" if variant else name
