"""Handle on a running network for its watchers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from controller.config import SwitchConfig
from emulator.processes import LineProcess
from emulator.timeline import Timeline
from topologies.running import RunningNetwork


@dataclass(frozen=True, slots=True)
class Running:
    """The parts of a network on which everything is ready."""

    network: RunningNetwork
    mode: str
    nodes: tuple[LineProcess, ...]
    stores: tuple[LineProcess, ...]
    controller: LineProcess
    switches: tuple[SwitchConfig, ...]
    timeline: Timeline
    """Samples during the run; watchers may receive them, too (`on_sample`)."""


Watch = Callable[[Running], AbstractContextManager[object]]
"""Context manager that is entered when everything is ready, and left when the run is over."""
