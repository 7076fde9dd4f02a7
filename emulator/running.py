"""What runs during a play, for those who watch it."""

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
    """Everything is ready."""

    network: RunningNetwork
    mode: str
    nodes: tuple[LineProcess, ...]
    stores: tuple[LineProcess, ...]
    controller: LineProcess
    switches: tuple[SwitchConfig, ...]
    timeline: Timeline
    """Samples as long as the play goes on; whoever watches may have them too (`on_sample`)."""


Watch = Callable[[Running], AbstractContextManager[object]]
"""Entered when everything is ready, left when the play is over."""
