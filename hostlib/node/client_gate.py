"""The gate of an inference node: what its client knows of the load, put to `hostlib.model.gate`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile

from hostlib.client.client import Client
from hostlib.client.lookup import Found
from hostlib.model.blending import Blending
from hostlib.model.gate import Admitted, Gate, Load
from hostlib.native.lane import POOL
from hostlib.node.coder import Coder
from hostlib.protocol.errors import TransferError
from hostlib.protocol.transfer import BlockRef
from hostlib.protocol.wire import VALUE_FRAME_BYTES, fragment_count
from workload.blend import BlendPlan
from workload.cost import CostModel
from workload.scale import ScaleModel


class ClientGate:
    """Gate of fetches over the node's link of `link_bit_s` bits per second. All times are the emulation's."""

    def __init__(
        self,
        client: Client,
        cost: CostModel,
        scale: ScaleModel,
        link_bit_s: float,
        coder: Coder | None = None,
        asks: bool = False,
        home_s: Callable[[str], float] | None = None,
    ) -> None:
        """Make a gate.

        `asks`: before anything is fetched, it asks who holds the blocks, and what is promised there.
        `home_s`: how long a home is taken, where it is known of each block who has it, if anybody
        (`BlockRef.homes`). With None, homes go by keys, and by what they last answered.
        """
        self._client = client
        self._all_known = home_s is not None
        self._home_s = home_s or client.backlog_s
        self._asks = asks
        self._coder = coder
        self._fragment_s = 8 * VALUE_FRAME_BYTES / link_bit_s

        def prefill_s(tokens: int, context_tokens: int) -> float:
            return scale.duration_s(cost.prefill_s(tokens, context_tokens))

        fragments = max(1.0, fragment_count(scale.block_bytes(cost.block_bytes)) * cost.stored_share)
        self._fragments = round(fragments)
        decode_s = coder.decode_s if coder else 0.0
        self._gate = Gate(prefill_s, cost.block_tokens, fragments * self._fragment_s, decode_s)
        self.stats = self._gate.stats

    async def __call__(self, missing: Sequence[BlockRef], gpu_wait_s: Callable[[], float]) -> Admitted:
        """Return how many of the missing blocks to fetch."""
        if self._asks:
            with suppress(TransferError):  # a home is silent: as good as not asked
                found = await self._found(missing)
                return self._admits_found(missing, found, self._load(gpu_wait_s()))
        there = takewhile(lambda block: block.homes, missing) if self._all_known else missing
        homes = [self._client.home(block) for block in there]
        return self._admits(missing, homes, self._load(gpu_wait_s()))

    async def _found(self, missing: Sequence[BlockRef]) -> list[Found]:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        try:
            return await self._client.ask(missing)
        finally:
            self.stats.asked_s += loop.time() - began_s

    def _admits_found(self, missing: Sequence[BlockRef], found: Sequence[Found], load: Load) -> Admitted:
        """Decide by what homes, or the switch, said of each block."""
        places = [POOL if place.home is None else place.home for place in found]
        told_s = {home: place.wait_s for home, place in zip(places, found, strict=True)}

        def home_s(home: str) -> float:
            return told_s[home] if home == POOL else max(told_s[home], load.home_s(home))

        return self._admits(missing, places, replace(load, home_s=home_s))

    def _admits(self, missing: Sequence[BlockRef], places: Sequence[str], load: Load) -> Admitted:
        """Decide on the first missing blocks, one for each place."""
        if not places:
            return Admitted(0, 0)
        depths = [block.depth for block in missing]
        admitted = self._gate.admits(depths, places, missing[0].chain_blocks, load)
        return Admitted(admitted, len(places) - admitted)

    def blends(
        self, blending: Blending, plan: BlendPlan, missing: Sequence[BlockRef], gpu_wait_s: float
    ) -> int | None:
        """Return how many of the chunks that the node does not hold to fetch and blend; None: compute
        exactly."""
        homes = [self._client.home(block) for block in missing]
        return blending.admits(self._gate, plan, homes, self._load(gpu_wait_s))

    def _load(self, gpu_wait_s: float) -> Load:
        outstanding = self._client.outstanding(self._fragments)

        def home_s(home: str) -> float:
            return max(self._home_s(home), outstanding[home] * self._fragment_s)

        coder_s = self._coder.decoding_s() if self._coder else 0.0
        return Load(home_s, outstanding.total() * self._fragment_s, gpu_wait_s, coder_s)
