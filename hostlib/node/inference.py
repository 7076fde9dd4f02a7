"""An emulated inference node: serves requests from its tiers, the network and its (emulated) GPU.

A request's chain of prefix blocks is looked up in GPU and DRAM; what is missing is fetched from the pool or
the blocks' homes; the rest is prefilled, one request at a time, which takes as long as the cost model says.
Time to first token runs from the request's arrival to the end of its prefill. New blocks are stored at their
homes in the background.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from functools import lru_cache

from hostlib.client.client import Client
from hostlib.model.arrivals import Arrival, in_time
from hostlib.model.blending import Chunks
from hostlib.model.gate import Admitted
from hostlib.model.remaining import Prefill, Remaining, prefix_blocks
from hostlib.model.streamer import AIM
from hostlib.model.tiers import LocalTiers
from hostlib.model.waits import block_record, waits
from hostlib.node.blender import Blender
from hostlib.node.coder import Coder
from hostlib.node.request_record import InferenceStats, RequestRecord
from hostlib.node.streaming import Streaming
from hostlib.peer.lending import Lending
from hostlib.process.observe import Histogram
from hostlib.protocol.content import Content, block_content
from hostlib.protocol.errors import BlockNotFoundError, TransferError
from hostlib.protocol.transfer import BlockRef, FetchedBlock, FetchedChain, chain_references
from hostlib.protocol.wire import fingerprint, fragment_count
from workload.compression import BlockSizes
from workload.cost import CostModel
from workload.keys import KeySpace
from workload.scale import ScaleModel
from workload.trace import Request

FetchGate = Callable[[Sequence[BlockRef], Callable[[], float]], Awaitable[Admitted]]
"""Function that returns how many of the missing blocks of a chain, from the first on, to fetch. It may ask
for how many seconds the GPU is busy. At least one block is missing."""


async def fetch_all(missing: Sequence[BlockRef], gpu_wait_s: Callable[[], float]) -> Admitted:
    """Admit every missing block: a gate that always opens."""
    return Admitted(len(missing), 0)


async def fetch_none(missing: Sequence[BlockRef], gpu_wait_s: Callable[[], float]) -> Admitted:
    """Admit no block: the gate of a node that has its own memory alone."""
    return Admitted(0, len(missing))


@dataclass(frozen=True, slots=True)
class InferenceOptions:
    """Bounds of an inference node."""

    max_requests: int = 4096
    """Requests in the node at once; more are rejected."""
    max_waiting_puts: int = 1024
    """Blocks that wait to be stored at their homes; more are not stored."""
    put_workers: int = 4
    """Blocks stored at the same time."""
    replicas: int = 1
    """Homes that must hold a block before it counts as stored, and whether on disk."""
    durable: bool = False
    expects: bool = True
    """Whether the controller is told of blocks that are going to be stored when they begin to be computed."""
    record_blocks: bool = False
    """Whether a request's record has the times of each of its fetched blocks, and what was told then."""


@dataclass(frozen=True, slots=True)
class _Fetched:
    """Blocks that a request got from the network."""

    sources: dict[bytes, str] = field(default_factory=dict)
    """Source of each block, "pool" or "remote", by key."""
    ended_by: Exception | None = None


class InferenceNode:
    """See the module. Times are those of the running loop."""

    def __init__(
        self,
        client: Client,
        tiers: LocalTiers[bytes],
        key_space: KeySpace,
        cost: CostModel,
        scale: ScaleModel,
        gate: FetchGate = fetch_all,
        options: InferenceOptions | None = None,
        real_kv: Content | None = None,
        coder: Coder | None = None,
        streaming: Streaming | None = None,
        blender: Blender | None = None,
        lending: Lending | None = None,
    ) -> None:
        """`real_kv`: what blocks hold instead of made-up content; what is fetched is compared with it.
        `streaming`: fetches in place of the gate, at levels of its choice, which new blocks are stored at.
        `blender`: by which chunks behind a request's prefix are had; not together with `streaming`.
        `lending`: says which nodes hold what is missing; new blocks are then stored nowhere else. Not
        together with `streaming` or `blender`."""
        self.stats = InferenceStats()
        self.records: list[RequestRecord] = []
        self.get_times, self.first_token_times = Histogram(), Histogram()
        self.on_stored: Callable[[bytes], None] = lambda key: None
        """Called with each block that its homes hold now."""
        self.on_lost: Callable[[bytes], None] = lambda key: None
        """Called with each block that was asked for and that nobody holds."""
        self._client = client
        self._tiers = tiers
        self._key_space = key_space
        self._cost = cost
        self._scale = scale
        self._gate = gate
        self._options = options or InferenceOptions()
        self._coder = coder or Coder(BlockSizes(fragment_count(scale.block_bytes(cost.block_bytes))))
        self._content: Content = real_kv or block_content
        self._compares = real_kv is not None
        self._streaming = streaming
        self._blender = blender
        self._lending = lending
        blending = blender.blending if blender is not None else None
        self._prefill = Prefill(cost, blending, streaming is not None, scale.duration_s)
        self._gpu = asyncio.Lock()
        self._gpu_free_s = 0.0
        """When what waits for the GPU will have been computed, as far as it is known."""
        self._gpu_idle_since_s = 0.0
        """When it last had nothing more to compute."""
        self._in_node = 0
        self._puts: asyncio.Queue[BlockRef] = asyncio.Queue(self._options.max_waiting_puts)
        self._recompute_ms = lru_cache(maxsize=4096)(self._block_recompute_ms)

    async def play(self, requests: Sequence[Request], start_s: float) -> None:
        """Serve requests at their arrival times after `start_s`; returns when all are served and stored."""
        await self.serve(in_time(requests, start_s), start_s)

    async def serve(self, arrivals: AsyncIterator[Arrival], start_s: float) -> None:
        """Serve requests as they come; returns when all are served and stored."""
        putters = [asyncio.create_task(self._put_worker()) for _ in range(self._options.put_workers)]
        try:
            async with asyncio.TaskGroup() as tasks:
                async for arrival in arrivals:
                    tasks.create_task(self._admit(arrival, start_s))
            await self._puts.join()
        finally:
            for putter in putters:
                putter.cancel()

    async def _admit(self, arrival: Arrival, start_s: float) -> None:
        record = RequestRecord(arrival.request.arrival_s)
        self.records.append(record)
        self.stats.arrived += 1
        if self._in_node >= self._options.max_requests:
            self.stats.failed += 1
            record.failure = "rejected: the node is full"
            arrival.prefilled()
            arrival.answered()
            return
        self._in_node += 1
        try:
            await self._serve(arrival, record, start_s)
            self.stats.completed += 1
        finally:
            self._in_node -= 1
            arrival.answered()

    async def _serve(self, arrival: Arrival, record: RequestRecord, start_s: float) -> None:
        loop, request = asyncio.get_running_loop(), arrival.request
        chain = self._references(request)
        sources: dict[bytes, str] = {}
        self._look_up(chain, sources)
        missing = [block for block in chain if block.key not in sources] if arrival.fetch else []
        if self._streaming is not None:
            fetched = await self._stream(self._streaming, request, chain, missing, record, start_s)
        else:
            fetched = await self._fetch(missing, record)
        sources |= fetched.sources
        chunks = self._blender.references(request) if self._blender is not None and arrival.fetch else {}
        had = await self._load_chunks(request, prefix_blocks(chain, sources), chunks)
        began_s = loop.time()
        planned_s = self._prefill.remaining(request, chain, sources, had).work_s
        self._gpu_free_s = max(began_s, self._gpu_free_s) + planned_s
        async with self._gpu:
            record.queue_s = loop.time() - began_s
            self._look_up(chain, sources)  # a request before this one may have computed the same blocks
            remaining = self._prefill.remaining(request, chain, sources, had)
            self._gpu_free_s -= planned_s - remaining.work_s
            new = self._stored(remaining.new(chunks), fetched)
            self._expect(new, chain, record)
            await self._compute(remaining, record)
            self._gpu_idle_since_s = loop.time()
            self._tiers.keep([block.key for block in remaining.kept(chunks)])
        record.ttft_s = loop.time() - start_s - request.arrival_s
        self.first_token_times.observe(record.ttft_s)
        arrival.prefilled()
        remaining.count(record.sources)
        self._store(new)
        decode_s = self._cost.decode_s(request.output_tokens, request.input_tokens)
        await asyncio.sleep(self._scale.duration_s(decode_s))
        record.end_s, record.tokens = loop.time() - start_s, request.output_tokens

    def _look_up(self, chain: Sequence[BlockRef], sources: dict[bytes, str]) -> None:
        for block in chain:
            if block.key not in sources and (tier := self._tiers.use(block.key)) is not None:
                sources[block.key] = tier

    def _gpu_wait_s(self) -> float:
        return max(0.0, self._gpu_free_s - asyncio.get_running_loop().time())

    async def _fetch(self, missing: Sequence[BlockRef], record: RequestRecord) -> _Fetched:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        if not missing:
            return _Fetched()
        had = missing
        if self._lending is not None:
            had = await self._lending.locate(missing)
            missing = [*had, *missing[len(had) :]]
        admitted, record.refused = await self._gate(missing, self._gpu_wait_s)
        wanted = had[:admitted]
        if not wanted:
            return _Fetched()
        if self._lending is not None:
            self._lending.promise(wanted)
        fetched = await self._client.get_chain(wanted)
        ended_s = loop.time()
        record.fetch_s = ended_s - began_s
        record.waits_s = waits(fetched, began_s, ended_s)
        depths = [block.depth for block in wanted]
        lost = wanted[len(fetched.blocks)].key if fetched.ended_by is not None else None
        self._note(fetched.blocks, depths, fetched.ended_by, lost, record)
        if self._compares:
            self._compare(fetched)
        record.decode_s = await self._coder.decode(fetched.blocks)
        return _Fetched({block.key: _origin(block) for block in fetched.blocks}, fetched.ended_by)

    async def _stream(
        self,
        streaming: Streaming,
        request: Request,
        chain: Sequence[BlockRef],
        missing: Sequence[BlockRef],
        record: RequestRecord,
        start_s: float,
    ) -> _Fetched:
        if not missing:
            return _Fetched()
        began_s = asyncio.get_running_loop().time()
        deadline_s = start_s + request.arrival_s + AIM * streaming.target_s

        def prefill_s(computed: Collection[int]) -> float:
            return self._prefill.seconds(request, len(chain), sorted(computed))

        streamed = await streaming.fetch(chain, missing, deadline_s, prefill_s, self._gpu_wait_s)
        record.fetch_s = asyncio.get_running_loop().time() - began_s
        waited = Counter[str]()
        for fetched, asked_s, came_s in streamed.chunks:
            waited.update(waits(fetched, asked_s, came_s))
        record.waits_s = dict(waited)
        record.levels = dict(streamed.levels)
        by_key = {block.key: block.depth for block in chain}
        depths = [by_key[key] for key in streamed.keys]
        self._note(streamed.blocks, depths, streamed.ended_by, streamed.lost, record)
        record.decode_s = await self._coder.wait_until(streamed.ready_s)
        origins = map(_origin, streamed.blocks)
        return _Fetched(dict(zip(streamed.keys, origins, strict=True)), streamed.ended_by)

    def _note(
        self,
        blocks: Sequence[FetchedBlock],
        depths: Sequence[int],
        ended_by: Exception | None,
        lost: bytes | None,
        record: RequestRecord,
    ) -> None:
        """Keep what is to be known of a fetch: blocks with their places, and the one at which it ended."""
        for block in blocks:
            self.get_times.observe(block.elapsed_s)
        if self._options.record_blocks:
            record.blocks = [block_record(block, depth) for block, depth in zip(blocks, depths, strict=False)]
            record.missing = lost.hex() if lost is not None else None
        if ended_by is not None:
            record.fetch_ended_by = type(ended_by).__name__
        if isinstance(ended_by, BlockNotFoundError) and lost is not None:
            self.on_lost(lost)

    async def _load_chunks(
        self, request: Request, prefix_blocks: int, chunks: Mapping[int, BlockRef]
    ) -> Chunks | None:
        if self._blender is None or not chunks:
            return None

        def arrived(block: FetchedBlock) -> None:
            self.get_times.observe(block.elapsed_s)

        return await self._blender.load(request, prefix_blocks, chunks, self._gpu_wait_s(), arrived)

    def _compare(self, fetched: FetchedChain) -> None:
        """Compare what was fetched with the real KV: tags say that nothing changed on the way, this that it
        is the right block."""
        for block in fetched.blocks:
            self.stats.compared += 1
            ((key, length),) = self._coder.stored(block.key)
            self.stats.different += block.content != self._content(key, length)

    async def _compute(self, remaining: Remaining[BlockRef], record: RequestRecord) -> None:
        loop = asyncio.get_running_loop()
        began_s, duration_s = loop.time(), remaining.work_s
        if remaining.blended is not None and self._blender is not None:
            plan, had = remaining.blended
            record.blend = self._blender.blending.record(plan, had)
            idle_s = max(0.0, had.loaded_s - max(had.began_s, self._gpu_idle_since_s))
            duration_s = self._blender.blending.rest_s(plan, idle_s)
        await asyncio.sleep(duration_s)
        record.prefill_s = loop.time() - began_s

    def _stored(self, new: Sequence[BlockRef], fetched: _Fetched) -> Sequence[BlockRef]:
        """Return the computed blocks of a request that go to their homes: all, or none.

        None go if the homes may hold them already. A lending node is itself the home of what it holds.
        """
        is_known = fetched.ended_by is None or isinstance(fetched.ended_by, BlockNotFoundError)
        return new if is_known and self._lending is None else ()

    def _expect(self, new: Sequence[BlockRef], chain: Sequence[BlockRef], record: RequestRecord) -> None:
        """Tell the controller what it can make room for until it is computed; of blocks at several levels
        each, whose parents are at the same level."""
        if not new:
            return
        if self._options.record_blocks:
            record.expected_s = asyncio.get_running_loop().time()
            record.expected = [block.depth for block in new]
        if not self._options.expects:
            return
        before = {block.key: parent.key for block, parent in zip(chain[1:], chain, strict=False)}

        def forms(block: BlockRef) -> Iterator[tuple[BlockRef, int]]:
            parents = self._coder.stored(before[block.key]) if block.key in before else ()
            for form, (key, length) in enumerate(self._coder.stored(block.key)):
                parent = fingerprint(parents[form][0]) if parents else block.parent
                yield block._replace(key=key, parent=parent), fragment_count(length)

        self._client.expect(form for block in new for form in forms(block))

    def _store(self, blocks: Iterable[BlockRef]) -> None:
        """Queue new blocks for their homes."""
        for block in blocks:
            try:
                self._puts.put_nowait(block)
            except asyncio.QueueFull:
                self.stats.puts_skipped += 1

    async def _put_worker(self) -> None:
        while True:
            block = await self._puts.get()
            try:
                await self._put(block)
                self.on_stored(block.key)
            except TransferError:
                self.stats.puts_failed += 1
            finally:
                self._puts.task_done()

    async def _put(self, block: BlockRef) -> None:
        """Encode and store a new block: once, or at each level that streams choose from."""
        encode_s = (None,) if self._streaming is None else self._streaming.encode_s
        for (key, length), took_s in zip(self._coder.stored(block.key), encode_s, strict=True):
            await self._coder.encode(took_s)
            await self._client.put(
                block._replace(key=key),
                self._content(key, length),
                durable=self._options.durable,
                replicas=self._options.replicas,
            )

    def _references(self, request: Request) -> list[BlockRef]:
        return chain_references(list(self._key_space.chain(request.blocks)), self._recompute_ms)

    def _block_recompute_ms(self, depth: int) -> int:
        return round(1000 * self._scale.duration_s(self._cost.block_prefill_s(depth)))


def _origin(block: FetchedBlock) -> str:
    return "pool" if block.from_pool else "remote"
