"""Fetch or compute the chunks of a request behind its prefix, on an emulated node (workload/blend.py)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostlib.model.blending import Blending, Chunks
from hostlib.protocol.errors import TransferError
from hostlib.protocol.transfer import BlockRef, FetchedBlock

if TYPE_CHECKING:
    from hostlib.client.client import Client
    from hostlib.model.tiers import LocalTiers
    from hostlib.node.coder import Coder
    from workload.blend import BlendPlan
    from workload.keys import KeySpace
    from workload.trace import Request

BlendGate = Callable[["BlendPlan", Sequence[BlockRef], float], int | None]
"""Function that returns how many of the chunks that the node does not hold are worth fetching, or None if
nothing of the request is worth blending. The last argument is the seconds for which the GPU is busy."""


def blend_all(plan: BlendPlan, missing: Sequence[BlockRef], gpu_wait_s: float) -> int | None:
    """Blend every missing chunk: a gate that always opens."""
    return len(missing)


@dataclass(frozen=True, slots=True)
class Blender:
    """Parts that a node blends with; `alone_ms` is the cost of computing a chunk by itself."""

    blending: Blending
    client: Client
    tiers: LocalTiers[bytes]
    key_space: KeySpace
    coder: Coder
    gate: BlendGate = blend_all
    alone_ms: int = 0

    def references(self, request: Request) -> dict[int, BlockRef]:
        """Return the request's chunks by place; for the pool each is the first block of a chain of its
        own."""
        return {
            place: BlockRef(key, recompute_ms=self.alone_ms)
            for place, key in enumerate(self.key_space.chunks(request.chunks))
            if key is not None
        }

    async def load(
        self,
        request: Request,
        prefix_blocks: int,
        chunks: Mapping[int, BlockRef],
        gpu_wait_s: float,
        arrived: Callable[[FetchedBlock], None],
    ) -> Chunks | None:
        """Fetch or compute the chunks behind the prefix; None if there are none, or computing exactly is
        sooner."""
        plan = self.blending.plan(request, prefix_blocks)
        if plan is None:
            return None
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        held = {place: self.tiers.use(chunks[place].key) for place in plan.places}
        had = Chunks(began_s, began_s, {place: tier for place, tier in held.items() if tier is not None})
        missing = {place: chunks[place] for place in had.alone(plan)}
        admitted = self.gate(plan, list(missing.values()), gpu_wait_s)
        if admitted is None:
            return None
        wanted = dict(list(missing.items())[:admitted])
        fetched = await asyncio.gather(*(self._get(block) for block in wanted.values()))
        for place, block in zip(wanted, fetched, strict=True):
            if block is not None:
                arrived(block)
                had.sources[place] = "pool" if block.from_pool else "remote"
        await self.coder.decode(block for block in fetched if block is not None)
        had.loaded_s = loop.time()
        return had

    async def _get(self, block: BlockRef) -> FetchedBlock | None:
        """Fetch a chunk; None if it can't be had, for whatever reason: it is computed then."""
        try:
            return await self.client.get(block)
        except TransferError:
            return None
