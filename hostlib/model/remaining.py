"""Work that is left of a request once it is known which of its blocks are there.

The emulator's nodes and the simulator's use the same code. It does no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from hostlib.model.blending import Blending, Chunks
from workload.blend import BlendPlan
from workload.cost import CostModel
from workload.trace import Request


class Block(Protocol):
    """A block in its chain."""

    @property
    def key(self) -> bytes:
        """Return the name under which it is kept."""

    @property
    def depth(self) -> int:
        """Return its place in the chain, from 0."""


B = TypeVar("B", bound=Block)


class Remaining(Generic[B]):
    """Blocks of one request by source, and those left to compute."""

    __slots__ = ("blended", "chain", "computed", "sources", "work_s")

    def __init__(
        self,
        chain: Sequence[B],
        sources: Mapping[bytes, str],
        computed: Sequence[int],
        blended: tuple[BlendPlan, Chunks] | None,
        work_s: float,
    ) -> None:
        self.chain = chain
        self.sources = sources
        """Where each block is that is there, by key."""
        self.computed = computed
        """Places of the blocks that are computed exactly, in order, but for those that are blended."""
        self.blended = blended
        """None: everything is computed exactly."""
        self.work_s = work_s
        """Time of the node's GPU, if nothing had to be loaded."""

    def kept(self, chunks: Mapping[int, B]) -> list[B]:
        """Return what the node holds afterwards; `chunks`: blocks that may be blended, by place."""
        if self.blended is None:
            return list(self.chain)
        plan, _ = self.blended
        return [*self.chain[: plan.exact_blocks], *(chunks[place] for place in plan.places)]

    def new(self, chunks: Mapping[int, B]) -> list[B]:
        """Return what was computed exactly, or as a chunk by itself, and that nobody is known to have."""
        exact = [self.chain[place] for place in self.computed]
        exact = [block for block in exact if block.key not in self.sources]
        if self.blended is None:
            return exact
        plan, had = self.blended
        return [*exact, *(chunks[place] for place in had.alone(plan))]

    def count(self, into: MutableMapping[str, int]) -> None:
        """Count blocks by where they came from, chunks too, and all that was computed as recomputed."""
        exact_blocks = len(self.chain)
        computed = self.computed if isinstance(self.computed, range) else {*self.computed}
        came: list[str] = []
        if self.blended is not None:
            plan, had = self.blended
            exact_blocks = plan.exact_blocks
            came = [had.sources[place] for place in plan.places if place in had.sources]
        came += [self.sources[self.chain[at].key] for at in range(exact_blocks) if at not in computed]
        for source in came:
            into[source] += 1
        into["recomputed"] += len(self.chain) - len(came)


@dataclass(frozen=True, slots=True)
class Prefill:
    """Time for which a node's GPU computes what is left of requests."""

    cost: CostModel
    blending: Blending | None = None
    streams: bool = False
    """Whether a stream may leave out blocks between others: these are computed alone."""
    scale_s: Callable[[float], float] = float
    """Makes real seconds those of the node."""

    def seconds(self, request: Request, blocks: int, computed: Iterable[int]) -> float:
        """Return the seconds to compute the blocks at these places, in ascending order, of so many: at least
        the last token."""
        return self.scale_s(self.cost.computed_s(request.input_tokens, blocks, computed))

    def remaining(
        self, request: Request, chain: Sequence[B], sources: Mapping[bytes, str], had: Chunks | None
    ) -> Remaining[B]:
        """Return what is left of a request; `had`: its chunks, where there are any."""
        hits = prefix_blocks(chain, sources)
        plan = self.blending.planned(request, hits, had) if self.blending and had is not None else None
        if self.blending is not None and had is not None and plan is not None:
            exact = range(hits, plan.exact_blocks)
            return Remaining(chain, sources, exact, (plan, had), self.blending.work_s(plan))
        computed: Sequence[int] = range(hits, len(chain))
        if self.streams:
            computed = [block.depth for block in chain if block.key not in sources]
        return Remaining(chain, sources, computed, None, self.seconds(request, len(chain), computed))


def prefix_blocks(chain: Sequence[Block], sources: Mapping[bytes, str]) -> int:
    """Return the number of blocks from the first on that are there."""
    for at, block in enumerate(chain):
        if block.key not in sources:
            return at
    return len(chain)
