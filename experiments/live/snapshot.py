"""Snapshot that the dashboard shows, made from the last samples of a timeline."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from controller.p4_constants import MERGED, SERVED

if TYPE_CHECKING:
    from emulator.timeline import Progress, Sample
    from topologies.fabric import Fabric

RATE_SAMPLES: Final = 2
"""Number of samples from one to the other of the two whose difference is a rate."""
HISTORY: Final = 60
MOST_DECISIONS: Final = 16
CONTROLLER: Final = "controller"


@dataclass(frozen=True, slots=True)
class LinkLoad:
    """Load of a link, seen from its switch."""

    switch: str
    peer: str
    rate_bit_s: float
    to_bit_s: float
    """Bits a second to the switch."""
    from_bit_s: float
    """Bits a second from the switch."""
    queued_bytes: int
    """Bytes in the queues at both ends."""

    @property
    def share(self) -> float:
        """Return the load in the busier direction, as a share of the link's rate."""
        return max(self.to_bit_s, self.from_bit_s) / self.rate_bit_s


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Snapshot of a run. Rates are per second over the last samples, totals since the run began."""

    t_s: float = 0.0
    links: tuple[LinkLoad, ...] = ()
    blocks: Mapping[str, int] = field(default_factory=dict)
    """Number of blocks by the tier in which they were found."""
    resident: int = 0
    """Number of blocks in the pool."""
    served: int = 0
    """Number of fragments that switches answered from their pools."""
    merged: int = 0
    """Number of requests that switches merged."""
    admitted: int = 0
    evicted: int = 0
    rates: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Latest rates of "served", "merged" and "digests", oldest first."""
    hottest: tuple[Mapping[str, Any], ...] = ()
    """Blocks with the most hits over all switches (`BlockHistory.hot_residents` of the controller)."""
    decisions: tuple[Mapping[str, Any], ...] = ()
    """Latest decisions (`Decision` of `controller.pool.block_history`) with their switch, oldest first."""
    backlog_ms: Mapping[str, float] = field(default_factory=dict)
    """Backlog of each storage node, or of each node that lends, in milliseconds of its link."""
    lends: bool = False
    """Whether nodes lend one another their memory, because there are no storage nodes."""


class Collector:
    """Collector of the samples of a run; its memory is bounded by HISTORY and the size of the network."""

    def __init__(
        self, fabric: Fabric, waiting_bytes: Callable[[], Mapping[str, int]], progress: Progress
    ) -> None:
        """Take queues from `waiting_bytes()`, in bytes by interface, and reports from `progress()`."""
        self._fabric, self._waiting_bytes, self._progress = fabric, waiting_bytes, progress
        self._samples: deque[Sample] = deque(maxlen=RATE_SAMPLES + 1)
        self._rates = {name: deque[float](maxlen=HISTORY) for name in ("served", "merged", "digests")}
        self._decisions: deque[Mapping[str, Any]] = deque(maxlen=MOST_DECISIONS)
        self._decided: dict[str, int] = {}
        self.latest = Snapshot()

    def take(self, sample: Sample) -> None:
        """Make the latest snapshot from a new sample."""
        self._samples.append(sample)
        before = self._samples[0]
        reports = self._progress()
        pools = reports.get(CONTROLLER, {}).get("pools", {})
        self._note_rates(before, sample)
        self._note_decisions(pools)
        hottest = [
            {**hot, "switch": switch} for switch, pool in pools.items() for hot in pool.get("hottest", ())
        ]
        self.latest = Snapshot(
            t_s=sample.t_s,
            links=tuple(self._links(before, sample)),
            blocks=sample.blocks,
            resident=sample.resident,
            served=sample.outcomes.get(SERVED, 0),
            merged=sample.outcomes.get(MERGED, 0),
            admitted=sample.admitted,
            evicted=sample.evicted,
            rates={name: tuple(values) for name, values in self._rates.items()},
            hottest=tuple(sorted(hottest, key=lambda hot: -int(hot["hits"]))),
            decisions=tuple(self._decisions),
            lends=not self._fabric.stores,
            backlog_ms={name: one["backlog_ms"] for name, one in reports.items() if "backlog_ms" in one},
        )

    def _links(self, before: Sample, now: Sample) -> Iterable[LinkLoad]:
        """Yield the load of each link; a link between two switches comes once."""
        passed_s = now.t_s - before.t_s
        waiting = self._waiting_bytes()
        for switch in self._fabric.switches:
            for port in self._fabric.ports(switch):
                link = f"{switch}-{port.peer}"
                if (port.peer in self._fabric.switches and port.peer < switch) or link not in now.link_bytes:
                    continue
                to, of = (
                    8 * (late - early) / passed_s if passed_s > 0 else 0.0
                    for late, early in zip(
                        now.link_bytes[link], before.link_bytes.get(link, (0, 0)), strict=True
                    )
                )
                ends = f"{switch}-eth{port.number}", self._interface(port.peer, switch)
                queued = sum(waiting.get(end, 0) for end in ends)
                yield LinkLoad(switch, port.peer, port.rate_bit_s, to, of, queued)

    def _interface(self, vertex: str, neighbour: str) -> str:
        """Return the interface of a host or switch towards its neighbour."""
        if vertex in self._fabric.hosts:
            return f"{vertex}-eth0"
        ports = self._fabric.ports(vertex)
        return next(f"{vertex}-eth{port.number}" for port in ports if port.peer == neighbour)

    def _note_rates(self, before: Sample, now: Sample) -> None:
        passed_s = now.t_s - before.t_s
        for name, late, early in (
            ("served", now.outcomes.get(SERVED, 0), before.outcomes.get(SERVED, 0)),
            ("merged", now.outcomes.get(MERGED, 0), before.outcomes.get(MERGED, 0)),
            ("digests", now.digests, before.digests),
        ):
            self._rates[name].append(max(0, late - early) / passed_s if passed_s > 0 else 0.0)

    def _note_decisions(self, pools: Mapping[str, Mapping[str, Any]]) -> None:
        """Add the new decisions. A controller that was started again counts from 1 again."""
        for switch, pool in pools.items():
            decisions = pool.get("decisions", ())
            last = self._decided.get(switch, 0)
            if decisions and decisions[-1]["number"] < last:
                last = 0
            for decided in decisions:
                if decided["number"] > last:
                    self._decisions.append({**decided, "switch": switch})
                    self._decided[switch] = decided["number"]
