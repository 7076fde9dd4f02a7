"""Blending at a node: what of a request is blended, how long that takes, and whether it is worth it.

Pure: the emulator's nodes and the simulator's ask the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from hostlib.model.gate import Gate, Load
from workload.blend import BlendPlan, plan_blend
from workload.cost import CostModel
from workload.trace import Request


@dataclass(slots=True)
class BlendRecord:
    """Blending of one request. Times are seconds of the node's GPU unless said otherwise."""

    chunks: int
    """Blocks that were blended."""
    alone: int
    """Number of these blocks that were computed by themselves: nobody had them, or the gate did not let them
    be fetched."""
    tokens: int
    """Recomputed, of the chunks that somebody had."""
    load_s: float
    """Seconds from asking for the first chunk to the last one's arrival."""
    work_s: float
    """Chunks by themselves, blending, and what is behind the chunks."""
    exact_s: float
    """Seconds that computing everything behind the same prefix would have taken."""


@dataclass(slots=True)
class Chunks:
    """A request's chunks as far as they were had; seconds by the node's clock."""

    began_s: float
    loaded_s: float
    sources: dict[int, str] = field(default_factory=dict)
    """Tier by place in the chain; places that are missing are computed by themselves."""

    def alone(self, plan: BlendPlan) -> list[int]:
        """Return places of the plan that nobody had."""
        return [place for place in plan.places if place not in self.sources]


@dataclass(frozen=True, slots=True)
class BlendTotals:
    """Sums over all requests that were blended."""

    requests: int
    chunks: int
    """Blocks that were blended."""
    alone: int
    """Number of these blocks that were computed by themselves."""
    tokens: int
    """Recomputed, of the chunks that somebody had."""
    ops_saved: float
    """Share of the operations that computing everything behind the same prefixes would have taken."""


def sum_blends(records: Sequence[BlendRecord]) -> BlendTotals | None:
    """Return the sum of blends, or None for none."""
    if not records:
        return None
    return BlendTotals(
        len(records),
        sum(record.chunks for record in records),
        sum(record.alone for record in records),
        sum(record.tokens for record in records),
        1 - sum(record.work_s for record in records) / sum(record.exact_s for record in records),
    )


class Blending:
    """Plans and costs of blending for one model on one node; `scale_s` turns real seconds into the node's."""

    def __init__(
        self, cost: CostModel, share: float, scale_s: Callable[[float], float] = lambda real_s: real_s
    ) -> None:
        self._cost, self._share, self._scale_s = cost, share, scale_s

    def plan(self, request: Request, prefix_blocks: int, alone: Sequence[int] = ()) -> BlendPlan | None:
        """Return what there is to blend behind so many blocks; None: nothing."""
        return plan_blend(request, prefix_blocks, self._cost.block_tokens, self._share, alone)

    def planned(self, request: Request, prefix_blocks: int, chunks: Chunks) -> BlendPlan | None:
        """Return the same, now that it is known who has what."""
        plan = self.plan(request, prefix_blocks)
        return None if plan is None else self.plan(request, prefix_blocks, chunks.alone(plan))

    def admits(self, gate: Gate, plan: BlendPlan, homes: Sequence[Hashable], load: Load) -> int | None:
        """Return how many of the chunks that the node does not hold, by home, to fetch; None: compute
        exactly."""
        alone_s = self._scale_s(self._cost.prefill_s(self._cost.block_tokens))
        work_s = self.work_s(plan)

        def with_fetched_s(count: int) -> float:
            return work_s + (len(homes) - count) * alone_s

        last_s = self._scale_s(self._cost.blend_last_s(plan.work))
        return gate.blends(homes, self.exact_s(plan), with_fetched_s, last_s, load)

    def work_s(self, plan: BlendPlan) -> float:
        """Return the seconds of computing the request if nothing had to be loaded."""
        return self._scale_s(self._cost.blend_s(plan.work))

    def rest_s(self, plan: BlendPlan, idle_s: float) -> float:
        """Return what is left to compute once all is loaded, if the GPU had been idle so long until then."""
        real_idle_s = idle_s / self._scale_s(1.0)
        return self._scale_s(self._cost.blend_rest_s(plan.work, real_idle_s))

    def exact_s(self, plan: BlendPlan) -> float:
        """Return the seconds of computing everything behind the prefix instead."""
        work = plan.work
        real_s = self._cost.prefill_s(work.chunk_tokens + work.new_tokens, work.context_tokens)
        return self._scale_s(real_s)

    def record(self, plan: BlendPlan, chunks: Chunks) -> BlendRecord:
        """Note what became of it."""
        alone, load_s = plan.work.alone_chunks, chunks.loaded_s - chunks.began_s
        work_s, exact_s = self.work_s(plan), self.exact_s(plan)
        return BlendRecord(len(plan.places), alone, plan.recomputed_tokens, load_s, work_s, exact_s)
