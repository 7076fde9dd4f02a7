"""Inference node: each request looks up its chain, fetches missing blocks, computes the rest and decodes.

The steps are those of hostlib.node.inference; batched decoding and blocking loads are what other engines do.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hostlib.model.blending import Blending, Chunks
from hostlib.model.gate import Gate, Load
from hostlib.model.remaining import Prefill, Remaining, prefix_blocks
from hostlib.model.streamer import AIM, TEXT, BandwidthMeter, Rung, Streamer, Waits
from hostlib.model.tiers import LocalTiers
from scenario.tables import Nodes
from simulator.chunks import Fetcher, fetch_chunks
from simulator.decoders import DecoderPool
from simulator.events import Event, Loop, Steps
from simulator.expected import Teller
from simulator.gpu import Gpu
from simulator.hints import NodeHints
from simulator.lenders import LenderHints
from simulator.messages import Block
from simulator.peers import PeerHints
from simulator.record import Record
from simulator.workload import Library
from workload.cost import CostModel
from workload.trace import Request


@dataclass(frozen=True, slots=True)
class Streams:
    """Parts with which a node fetches chains at levels of its choice (hostlib.model.streamer)."""

    rungs: tuple[Rung, ...]
    target_s: float
    """Target seconds from a request's arrival to its first token."""
    meter: BandwidthMeter
    library: Library
    """Library that knows blocks at their levels."""


class Node:
    """Node that serves requests; `fetcher` is None if nodes share nothing."""

    def __init__(
        self,
        loop: Loop,
        options: Nodes,
        cost: CostModel,
        tiers: LocalTiers[Block],
        gpu: Gpu,
        fetcher: Fetcher | None,
        link_bit_s: float,
        decode_s: float = 0.0,
        streams: Streams | None = None,
        decodes_on_gpu: bool = False,
        place: int = 0,
        decoders: DecoderPool | None = None,
        hints: NodeHints | PeerHints | LenderHints | None = None,
    ) -> None:
        """Make a node.

        `decode_s` is the time to decode a fetched block; blocks are decoded one after the other, as they
        arrive. With `streams`, blocks are stored at several levels, and the node streams them instead of
        asking the gate. With `decodes_on_gpu`, blocks are decoded on the GPU as they arrive (CacheGen,
        SIGCOMM'24); no token is decoded meanwhile, or both take longer.
        """
        self._hints = hints
        self.records: list[Record] = []
        self.gpu = gpu
        self.decoders = decoders
        self._place = place
        self.fetcher = fetcher
        self.teller: Teller | None = None
        """Announcer of the blocks that it begins to compute and will store, if there is one."""
        self._loop, self._options, self._cost, self._tiers = loop, options, cost, tiers
        block_s = cost.fetch_s(cost.stored_bytes, link_bit_s)
        self._gate = Gate(cost.prefill_s, cost.block_tokens, block_s, decode_s)
        self._blending = Blending(cost, options.blend_share)
        self._prefill = Prefill(cost, self._blending, streams is not None)
        self._decode_s, self._streams = decode_s, streams
        self._decodes_on_gpu = decodes_on_gpu
        self._decoder_free_s = 0.0
        self._asked_blocks = 0
        """Number of blocks of fetches that have not ended."""
        self._gpu_free_s = 0.0
        """Time in seconds at which the GPU will have computed what waits for it, as far as that is known."""
        self._set_up()

    def _set_up(self) -> None:
        """Set up the additional state of another kind of node."""

    @property
    def block_s(self) -> float:
        """Return the seconds of a block on the node's link."""
        return self._gate.block_s

    @property
    def link_backlog_s(self) -> float:
        """Return the seconds that the blocks it has already asked for take on its link."""
        return self._asked_blocks * self._gate.block_s

    def home_backlog_s(self, home: Any) -> float:
        """Return the seconds of work that wait at a home, as far as the node knows."""
        if self._hints is not None:
            return self._hints.wait_s(home)
        return self.fetcher.backlog_s(home) if self.fetcher is not None else 0.0

    @property
    def refused_blocks(self) -> int:
        """Return how many blocks the gate did not let it ask for."""
        return self._gate.stats.refused_blocks

    @property
    def copied_down_blocks(self) -> int:
        """Return how many blocks were written from GPU memory to DRAM."""
        return self._tiers.stats.copied_down

    def place(self, block: Block) -> None:
        """Keep a block that came without a request."""
        self._tiers.place(block)

    def held(self, chain: Sequence[Block]) -> int:
        """Return how many of the chain's first blocks are in the node's own memory."""
        return next((at for at, block in enumerate(chain) if block not in self._tiers), len(chain))

    @property
    def memory(self) -> LocalTiers[Block]:
        """Return the node's own memory."""
        return self._tiers

    def serve(
        self,
        request: Request,
        chain: Sequence[Block],
        chunks: Mapping[int, Block],
        fetch: bool = True,
        prefilled: Callable[[], None] = lambda: None,
    ) -> Steps:
        """Serve one request from now on; without `fetch`, compute it behind what the node itself holds.

        `chunks` are those of its blocks that may be blended, by place.
        """
        record = Record(self._loop.now, request.input_tokens, request.output_tokens)
        tokens = request.input_tokens + request.output_tokens
        yield from self.gpu.admit(tokens)
        yield from self._before(len(chain))
        sources: dict[bytes, str] = {}
        missing = self._look_up(chain, sources)
        if fetch and self._streams is not None:
            yield from self._stream(self._streams, request, chain, missing, sources, record)
        elif fetch and self._options.loading == "overlapped":
            yield from self._fetch(missing, len(chain), sources, record)
        had = None
        if fetch and chunks:
            had = yield from self._load(request, prefix_blocks(chain, sources), chunks)
        remaining, known = self._prefill.remaining(request, chain, sources, had), len(sources)
        planned_s = remaining.work_s
        self._gpu_free_s = max(self._loop.now, self._gpu_free_s) + planned_s
        with self.gpu.exclusive() as turn:
            yield turn
            if fetch and self._options.loading == "blocking":
                yield from self._fetch(self._look_up(chain, sources), len(chain), sources, record)
            self._look_up(chain, sources)
            if len(sources) > known:  # blocks came while others computed
                remaining = self._prefill.remaining(request, chain, sources, had)
            record.prefill_s = remaining.work_s
            record.saved_s = self._cost.request_prefill_s(request.input_tokens, 0) - record.prefill_s
            self._gpu_free_s -= planned_s - record.prefill_s
            if self._options.engine_token_us:
                yield from self.gpu.compute(request.input_tokens * self._options.engine_token_us * 1e-6)
            if self.teller is not None:
                self.teller.tell(remaining.new(chunks), chain)
            yield from self._compute(request, remaining, record)
            yield from self._after(record.prefill_s)
            self._tiers.keep(remaining.kept(chunks))
        record.ttft_s = self._loop.now - record.arrival_s
        prefilled()
        remaining.count(record.sources)
        self._store(remaining.new(chunks))
        if self.decoders is None:
            yield from self.gpu.decode(request.output_tokens, request.input_tokens)
        else:
            yield from self._decode_elsewhere(request, record, self.decoders)
        self.gpu.leave(tokens)
        record.end_s = self._loop.now
        self.records.append(record)

    def _decode_elsewhere(self, request: Request, record: Record, decoders: DecoderPool) -> Steps:
        """Decode at another node: the first token is there when the KV has reached the decoder."""
        tokens = request.input_tokens + request.output_tokens
        chosen = decoders.choose(self._place, tokens)
        yield from decoders.bring(self._place, chosen, tokens, request.input_tokens)
        record.ttft_s = self._loop.now - record.arrival_s
        yield from decoders.decode(chosen, tokens, request.output_tokens, request.input_tokens)

    def _before(self, blocks: int) -> Iterable[Event | float]:
        """Return what a request with so many blocks waits for before its memory is looked up: nothing."""
        return ()

    def _after(self, prefill_s: float) -> Iterable[Event | float]:
        """Return what a request waits for after a prefill of so many seconds: nothing."""
        return ()

    def _look_up(self, chain: Sequence[Block], sources: dict[bytes, str]) -> list[Block]:
        """Note which blocks the node's own memory holds; return the others."""
        missing = []
        for block in chain:
            if block.key not in sources:
                tier = self._tiers.use(block)
                if tier is None:
                    missing.append(block)
                else:
                    sources[block.key] = tier
        return missing

    def _fetch(
        self, missing: Sequence[Block], chain_blocks: int, sources: dict[bytes, str], record: Record
    ) -> Steps:
        if not missing or self.fetcher is None:
            return
        if self._hints is not None:
            yield self._hints.asked(missing)
        admitted = self._admitted(missing, chain_blocks, self.fetcher)
        missing = missing[:admitted]
        if not missing:
            return
        began_s = self._loop.now
        found: list[str] = []
        if self._decodes_on_gpu and self._decode_s:  # no token is decoded meanwhile, or tokens are slower
            self._loop.start(self.gpu.interrupt(len(missing) * self._decode_s))
        if self._options.loading == "blocking":
            yield from self.gpu.stall(self._bring(self.fetcher, missing, found))
        else:
            yield from self._bring(self.fetcher, missing, found)
        if self._decode_s and found:
            yield self._decoding_s(began_s, len(found), self._decode_s * self.gpu.block_slowdown)
        record.fetch_s = self._loop.now - began_s
        sources.update({block.key: source for block, source in zip(missing, found, strict=False)})

    def _load(
        self, request: Request, prefix_blocks: int, chunks: Mapping[int, Block]
    ) -> Generator[Event | float, None, Chunks | None]:
        """Obtain the chunks behind the prefix.

        Returns None if there are none, or if computing exactly is sooner.
        """
        plan = self._blending.plan(request, prefix_blocks)
        if plan is None:
            return None
        now_s = self._loop.now
        held = {place: self._tiers.use(chunks[place]) for place in plan.places}
        had = Chunks(now_s, now_s, {place: tier for place, tier in held.items() if tier is not None})
        missing = [(place, chunks[place]) for place in had.alone(plan)]
        if self.fetcher is None or self._options.gate == "never":
            return had
        admitted: int | None = len(missing)
        if self._options.gate == "compare":
            homes = [block.home for _, block in missing]
            admitted = self._blending.admits(self._gate, plan, homes, self._load_now(self.fetcher.backlog_s))
        if admitted is None:
            return None
        if admitted:
            self._asked_blocks += admitted
            found = yield from fetch_chunks(self._loop, self.fetcher, missing[:admitted])
            self._asked_blocks -= admitted
            if self._decode_s and found:
                yield self._decoding_s(now_s, len(found), self._decode_s)
            had.sources.update(found)
            had.loaded_s = self._loop.now
        return had

    def _stream(
        self,
        streams: Streams,
        request: Request,
        chain: Sequence[Block],
        missing: Sequence[Block],
        sources: dict[bytes, str],
        record: Record,
    ) -> Steps:
        """Fetch chunk by chunk, each decoded while the next is on its way, as hostlib.node.streaming does."""
        fetcher = self.fetcher
        if fetcher is None:
            return
        began_s = ready_s = self._loop.now
        streamer = Streamer(
            streams.rungs,
            streams.meter,
            [block.depth for block in missing],
            record.arrival_s + AIM * streams.target_s,
            lambda computed: self._prefill.seconds(request, len(chain), sorted(computed)),
        )
        while (chunk := streamer.next(self._loop.now, self._waits())) is not None:
            if chunk.rung is None:
                record.count(TEXT, len(chunk.depths))
                continue
            forms = [streams.library.forms[chain[depth].key][chunk.rung.level] for depth in chunk.depths]
            asked_s = self._loop.now
            found: list[str] = []
            yield self._fetched(fetcher, forms, found)
            streams.meter.report(chunk.rung.block_bytes * len(found), asked_s, self._loop.now)
            if found:
                record.count(str(chunk.rung.level), len(found))
                decoding_s = self._decoding_s(asked_s, len(found), chunk.rung.decode_s)
                ready_s = max(ready_s, self._loop.now + decoding_s)
            places = zip(chunk.depths, found, strict=False)
            sources.update({chain[depth].key: source for depth, source in places})
            if len(found) < len(forms):
                break
        yield max(0.0, ready_s - self._loop.now)
        record.fetch_s = self._loop.now - began_s

    def _waits(self) -> Waits:
        now_s = self._loop.now
        return Waits(max(0.0, self._gpu_free_s - now_s), max(0.0, self._decoder_free_s - now_s))

    def _bring(self, fetcher: Fetcher, missing: Sequence[Block], found: list[str]) -> Steps:
        """Ask for these blocks; `found` gets the sources of those that come, from the first on."""
        at_once = len(missing) if self._options.asking == "chain" else 1
        for first in range(0, len(missing), at_once):
            yield self._fetched(fetcher, missing[first : first + at_once], found)
            if len(found) < first + at_once:
                return

    def _decoding_s(self, began_s: float, blocks: int, decode_s: float) -> float:
        """Return how many seconds decoding goes on after a fetch that ends now and whose blocks came
        evenly."""
        if not decode_s:
            return 0.0
        now_s = self._loop.now
        first_s = max(self._decoder_free_s, began_s + (now_s - began_s) / blocks)
        self._decoder_free_s = max(now_s, first_s + (blocks - 1) * decode_s) + decode_s
        return self._decoder_free_s - now_s

    def _fetched(self, fetcher: Fetcher, blocks: Sequence[Block], found: list[str]) -> Event:
        """Fetch the longest available prefix; its sources are in `found` when the event happens."""
        done = self._loop.event()

        def finished(fetched: list[str]) -> None:
            self._asked_blocks -= len(blocks)
            found.extend(fetched)
            done.succeed()

        self._asked_blocks += len(blocks)
        fetcher.fetch(blocks, finished)
        return done

    def _admitted(self, missing: Sequence[Block], chain_blocks: int, fetcher: Fetcher) -> int:
        """Return how many of the missing blocks the gate lets the node fetch."""
        if self._options.gate != "compare":
            return len(missing) if self._options.gate == "always" else 0
        places: Sequence[Any] = [block.home for block in missing]
        home_s: Callable[[Any], float] = fetcher.backlog_s
        if self._hints is not None:
            places, home_s = self._hints.places(missing), self._hints.wait_s
        depths = [block.depth for block in missing]
        admitted = self._gate.admits(depths, places, chain_blocks, self._load_now(home_s))
        if self._hints is not None:
            self._hints.promise(missing[:admitted], places)
        return admitted

    def _load_now(self, home_s: Callable[[Any], float]) -> Load:
        """Return the load now; `home_s` returns the seconds that wait at a home, as far as is known."""
        blocking = self._options.loading == "blocking"
        gpu_s = 0.0 if blocking else max(0.0, self._gpu_free_s - self._loop.now)
        coder_s = max(0.0, self._decoder_free_s - self._loop.now)
        return Load(home_s, self.link_backlog_s, gpu_s, coder_s)

    def _compute(self, request: Request, remaining: Remaining[Block], record: Record) -> Steps:
        if remaining.blended is None:
            blocks = len(remaining.chain)
            for span in self._cost.computed_spans(request.input_tokens, blocks, remaining.computed):
                yield from self.gpu.prefill(*span)
            return
        plan, had = remaining.blended
        idle_s = max(0.0, had.loaded_s - max(had.began_s, self.gpu.free_since_s))
        yield from self.gpu.blend(record.prefill_s, self._blending.rest_s(plan, idle_s))
        record.blend = self._blending.record(plan, had)

    def _store(self, new: Sequence[Block]) -> None:
        if self.fetcher is None or not self._options.stores_new or self._options.gate == "never":
            return
        stored = self._streams.library.stored if self._streams is not None else lambda block: [block]
        self.fetcher.store(form for block in new for form in stored(block))
