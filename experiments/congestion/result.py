"""What a point shows: loss, fairness, and how much of a link that is asked for too much is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from emulator.result import percentiles
from experiments.congestion.patterns import Flow, Group
from experiments.incast.result import jain
from hostlib.protocol.wire import VALUE_FRAME_BYTES

MOST_LOSS = 0.01
LEAST_JAIN = 0.95
LEAST_THROUGHPUT = 0.9
MOST_HITS_RATIO = 2.0
"""p99 of hits beside a busy home, over that without."""


@dataclass(frozen=True, slots=True)
class Point:
    """One pattern in one mode; the last burst of it."""

    pattern: str
    mode: str
    from_pool: float
    """Share of the fragments that the pool served."""
    loss: float
    """Packets that the links' queues dropped, as a share of all that were sent."""
    jain: float
    """Jain's index of the nodes that share a link, of the worst link."""
    throughput: float
    """Share of a link's rate, from the first request to the last block, of the worst link."""
    p99_ms: float
    retransmits: int
    errors: int
    """Blocks that did not come."""
    corrupt: int
    """Values that arrived wrong."""
    cpu: float
    """Mean share of the machine in use."""
    hits_p99_ms: tuple[float, float] | None = None
    """Of hits alone, and beside a home that others keep busy."""

    def missed_goals(self) -> list[str]:
        """Return the goals that are not met, as sentences."""
        found = [f"{self.errors} blocks did not come"] if self.errors else []
        found += [f"{self.corrupt} values were wrong"] if self.corrupt else []
        if self.loss > MOST_LOSS:
            found.append(f"loss {self.loss:.1%}")
        if self.hits_p99_ms is None and self.jain < LEAST_JAIN:
            found.append(f"Jain index {self.jain:.3f}")
        if self.hits_p99_ms is None and self.throughput < LEAST_THROUGHPUT:
            found.append(f"throughput {self.throughput:.0%} of the link")
        if self.hits_p99_ms is not None and self.hits_p99_ms[1] > MOST_HITS_RATIO * self.hits_p99_ms[0]:
            found.append(f"hits wait: p99 {self.hits_p99_ms[1]:.0f} ms, alone {self.hits_p99_ms[0]:.0f} ms")
        return found


@dataclass(frozen=True, slots=True)
class Burst:
    """What one burst left behind: by node, what its reader reported, blocks in the order of its flows."""

    reports: Mapping[str, Mapping[str, Any]]
    drops: int
    cpu: float


def evaluate(
    pattern: str,
    mode: str,
    groups: Sequence[Group],
    burst: Burst,
    fragments: int,
    rate_bit_s: float,
    alone: Burst | None = None,
) -> Point:
    """Return the figures of a point; `alone`: a burst of the first group only, of the same blocks."""
    reports = burst.reports.values()
    took = {flow: _times(groups, burst, flow) for group in groups for flow in group.flows}
    values = fragments * sum(map(len, took.values()))
    retransmits = sum(report["retransmits"] for report in reports)
    return Point(
        pattern,
        mode,
        round(sum(report["from_pool"] for report in reports) / max(1, values), 3),
        round(burst.drops / (2 * values + retransmits), 4) if values else 0.0,
        min(fairness_of(group, {flow: max(times) for flow, times in took.items()}) for group in groups),
        round(min(_throughput(group, took, fragments, rate_bit_s) for group in groups), 3),
        percentiles([ms for times in took.values() for ms in times]).p99,
        retransmits,
        sum(sum(report["errors"].values()) for report in reports),
        sum(report["corrupt"] for report in reports),
        round(burst.cpu, 2),
        None if alone is None else (_hits(groups, alone), _hits(groups, burst)),
    )


def fairness_of(group: Group, took: Mapping[Flow, float]) -> float:
    """Jain's index of the goodput of the nodes that share a link; `took`: until a flow had all its blocks."""
    nodes = {flow.node for flow in group.flows}
    blocks = {node: sum(len(flow.keys) for flow in group.flows if flow.node == node) for node in nodes}
    until = {node: max(took[flow] for flow in group.flows if flow.node == node) for node in nodes}
    return jain([blocks[node] / until[node] for node in sorted(nodes)])


def _hits(groups: Sequence[Group], burst: Burst) -> float:
    return percentiles([ms for flow in groups[0].flows for ms in _times(groups, burst, flow)]).p99


def _times(groups: Sequence[Group], burst: Burst, flow: Flow) -> list[float]:
    """Until each block of a flow came; where one did not, those of its node are not told apart well."""
    times: list[float] = burst.reports[flow.node]["block_ms"]
    at = 0
    for other in (other for group in groups for other in group.flows if other.node == flow.node):
        if other is flow:
            return times[at : at + len(flow.keys)] or [float("inf")]
        at += len(other.keys)
    raise ValueError(f"no flow of {flow.node}")


def _throughput(
    group: Group, took: Mapping[Flow, Sequence[float]], fragments: int, rate_bit_s: float
) -> float:
    bits = 8 * VALUE_FRAME_BYTES * fragments * sum(len(took[flow]) for flow in group.flows)
    return bits / (rate_bit_s * max(max(took[flow]) for flow in group.flows) / 1000)
