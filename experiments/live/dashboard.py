"""View of a running network, which rich can show below a progress bar."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from experiments.live.snapshot import Collector, Snapshot
from experiments.live.view import draw
from topologies.network import Network
from topologies.queues import Queues

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from emulator.running import Running

OTHER_ROWS: Final = 4
"""Rows of the terminal for progress and the cursor."""


class Dashboard:
    """Dashboard that shows the latest snapshot, and nothing before the first."""

    def __init__(self, pool_blocks: int) -> None:
        self._pool_blocks = pool_blocks
        self._collector: Collector | None = None

    @contextmanager
    def watching(self, running: Running) -> Iterator[None]:
        """Show a run, from its first sample on, during the `with` block."""
        network = running.network
        assert isinstance(network, Network)  # LIVE is refused with SERVERS
        nodes = {name: network.mininet[name].pid for name in network.fabric.graph}
        with Queues(nodes) as queues:
            self._collector = Collector(network.fabric, queues.waiting_bytes, running.timeline.progress)
            running.timeline.on_sample = self._collector.take
            try:
                yield
            finally:
                running.timeline.on_sample = None

    @property
    def latest(self) -> Snapshot | None:
        """Return the snapshot that is shown, or None before the first run."""
        return self._collector.latest if self._collector else None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.latest is not None:
            yield draw(self.latest, self._pool_blocks, options.max_width, console.size.height - OTHER_ROWS)
