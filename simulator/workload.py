"""Demand of a scenario: requests with their chains of blocks, and what is stored at the start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import log
from pathlib import Path
from random import Random

from commands.toml_file import ScenarioError
from hostlib.protocol.homes import home_of
from scenario.tables import Workload
from simulator.messages import Block
from topologies.fabric import Fabric
from workload.generate import GenerateError, generate
from workload.keys import NO_PARENT, KeySpace
from workload.levels import Ladder, level_key
from workload.schedule import SESSIONS
from workload.session_service import Service
from workload.trace import MOONCAKE, Joiner, Request, Trace, TraceError
from workload.trace_files import load_trace

ONE_OF_A_KIND = 1 << 40
"""First of the ids that no trace has."""
ANSWERS_SEED = 1 << 16
"""Number added to the seed for the lengths of answers, so that prompts don't depend on them."""
PAST_SHARE = 1 / 3
"""Share of a trace before its slice if start_s is not given, as in the demo; these requests fill the
stores."""


@dataclass(frozen=True)
class Demand:
    """Requests in order of arrival, and those whose blocks are stored before the first arrives."""

    requests: tuple[Request, ...]
    past: tuple[Request, ...]
    block_tokens: int


def make_demand(workload: Workload, tokens: int | None, blends: bool) -> Demand:
    """Read or generate the demand, in blocks of `tokens` tokens (None: the trace's own).

    Raises ScenarioError if that is impossible, such as for nodes that blend and a trace without chunks.
    """
    try:
        if workload.hit_share is not None:
            return _own_prompts(workload, workload.hit_share, tokens or MOONCAKE.block_tokens)
        whole = _trace(workload, tokens)
        window = whole.window(_start_s(whole, workload), workload.simulated_requests, workload.load)
    except (TraceError, GenerateError) as error:
        raise ScenarioError(str(error)) from None
    tokens = tokens or whole.block_tokens
    if max(tokens, whole.block_tokens) % min(tokens, whole.block_tokens):
        raise ScenarioError(
            f"model.block_tokens: blocks of {tokens} tokens can't be made of the trace's "
            f"{whole.block_tokens}: choose a multiple or a divisor"
        )
    if blends and not whole.has_chunks:
        raise ScenarioError(
            f"nodes.blend: {whole.name} does not say which of its blocks are chunks (chunk_ids): choose "
            'workload.shape = "passages" or "rag", or a trace that does'
        )
    if workload.scheduler == SESSIONS and not window.has_sessions:
        raise ScenarioError(
            f"workload.scheduler: {SESSIONS} needs a trace that says which requests are of one session, and "
            f"{whole.name} does not"
        )
    window = replace(
        window,
        requests=tuple(dilute(window.requests, workload.reuse, workload.seed)),
        past=tuple(dilute(window.past, workload.reuse, workload.seed + 1)),
    )
    recut = [tuple(recut_blocks(part, whole.block_tokens, tokens)) for part in (window.requests, window.past)]
    return Demand(recut[0], recut[1], tokens)


def dilute(requests: Sequence[Request], reuse: float, seed: int) -> Iterator[Request]:
    """Yield requests of which only a share keeps its blocks; the others get ids that nobody else has."""
    draw = Random(seed)
    fresh = ONE_OF_A_KIND * (1 + seed)
    for request in requests:
        if draw.random() < reuse:
            yield request
        else:
            end = fresh + len(request.blocks)
            yield replace(request, blocks=tuple(range(fresh, end)), chunks=())
            fresh = end


def recut_blocks(requests: Sequence[Request], old_tokens: int, new_tokens: int) -> Iterator[Request]:
    """Yield the same prompts in blocks of another size; an id stands for its whole prefix, so ids stay
    unique.

    A larger block is a chunk if all its parts are chunks.
    """
    joiner = Joiner(max(1, new_tokens // old_tokens))
    for request in requests:
        if new_tokens == old_tokens:
            yield request
        elif new_tokens > old_tokens:
            yield joiner.join(request)
        else:
            pieces = old_tokens // new_tokens
            count = min(len(request.blocks) * pieces, -(-request.input_tokens // new_tokens))
            places = range(max(1, count))
            chunks = request.chunks and tuple(
                None if whole is None else whole * pieces + n % pieces
                for n in places
                for whole in (request.chunks[n // pieces],)
            )
            ids = (request.blocks[n // pieces] * pieces + n % pieces for n in places)
            yield replace(request, blocks=tuple(ids), chunks=chunks)


def delay(assigned: Iterable[tuple[Request, int]], jitter_s: float, seed: int) -> list[tuple[Request, int]]:
    """Return requests with their nodes, late by up to `jitter_s`, in their new order.

    No request overtakes another at its node.
    """
    if not jitter_s:
        return list(assigned)
    draw = Random(seed)
    late: list[tuple[Request, int]] = []
    last_s: dict[int, float] = {}
    for request, node in assigned:
        arrival_s = request.arrival_s + draw.uniform(0.0, jitter_s)
        last_s[node] = max(last_s.get(node, 0.0), arrival_s)
        late.append((replace(request, arrival_s=last_s[node]), node))
    return sorted(late, key=lambda pair: pair[0].arrival_s)


class Library:
    """Blocks of a run with their homes; there is one object for each key."""

    def __init__(
        self,
        model: str,
        block_tokens: int,
        fabric: Fabric | None,
        parts: tuple[int, ...],
        ladder: Ladder | None = None,
        blends: bool = False,
    ) -> None:
        """Make an empty library.

        `parts` are a block's parts, in fragments; with a ladder it is stored at each of its levels instead.
        """
        self.forms: dict[bytes, dict[int, Block]] = {}
        """Blocks that are stored for a block, by its key and their level; empty without a ladder."""
        self._parts, self._ladder = parts, ladder
        self._space = KeySpace(model, block_tokens=block_tokens)
        self._by_id: dict[int, Block] = {}
        self._others: dict[tuple[bytes, int], Block] = {}
        """Blocks with the id of another block and another parent; few traces have such."""
        self._blends = blends
        self._chunk_by_id: dict[int, Block] = {}
        hosts = {str(fabric.hosts[name].ipv4): name for name in fabric.stores} if fabric else {}
        self._addresses, self._names = tuple(hosts), hosts

    def chain(self, request: Request) -> list[Block]:
        """Return the blocks of a request."""
        chain: list[Block] = []
        by_id, parent = self._by_id, NO_PARENT
        for number in request.blocks:
            block = by_id.get(number)
            if block is None:
                block = by_id[number] = self._new(parent, number, len(chain))
            elif block.above != parent:
                block = self._other(parent, number, len(chain))
            chain.append(block)
            parent = block.key
        return chain

    def before_all(self) -> Block:
        """Return the block that a joining node asks for and nobody has."""
        return Block(NO_PARENT, 0, NO_PARENT, self._home(NO_PARENT), self._parts)

    def _other(self, parent: bytes, number: int, depth: int) -> Block:
        block = self._others.get((parent, number))
        if block is None:
            block = self._others[parent, number] = self._new(parent, number, depth)
        return block

    def chunks(self, request: Request) -> dict[int, Block]:
        """Return those of a request's blocks that are chunks, under their chunk keys, by index; empty without
        blending."""
        ids = request.chunks if self._blends else ()
        return {place: self._chunk(number) for place, number in enumerate(ids) if number is not None}

    def _chunk(self, number: int) -> Block:
        block = self._chunk_by_id.get(number)
        if block is None:
            key = self._space.chunk_key((number,))
            block = self._chunk_by_id[number] = Block(key, 0, NO_PARENT, self._home(key), self._parts)
        return block

    def _home(self, key: bytes) -> str:
        if len(self._addresses) < 2:
            return self._names[self._addresses[0]] if self._addresses else ""
        return self._names[home_of(key, self._addresses)]

    def _new(self, parent: bytes, number: int, depth: int) -> Block:
        key = self._space.id_key(parent, number)
        block = Block(key, depth, parent, self._home(key), self._parts)
        if self._ladder is not None:
            self.forms[key] = dict(self._levels(self._ladder, block))
        return block

    def _levels(self, ladder: Ladder, block: Block) -> Iterator[tuple[int, Block]]:
        """Yield the block at each level; a part is one fragment there, as the pool's slots are."""
        for (_, level), (key, fragments) in zip(ladder.numbers, ladder.stored(block.key), strict=True):
            above = level_key(block.above, level)
            yield level, Block(key, block.depth, above, self._home(key), (1,) * fragments)

    @property
    def streams(self) -> bool:
        """Return whether blocks are stored at several levels, from which streams choose."""
        return self._ladder is not None

    def stored(self, block: Block) -> list[Block]:
        """Return what is stored for a block: itself, or each of its levels."""
        return [*self.forms[block.key].values()] if self._ladder is not None else [block]

    def by_recency(self, past: Sequence[Request]) -> list[Block]:
        """Return what is stored for the blocks and chunks of past requests, least recently used first."""
        recency: dict[bytes, Block] = {}
        for request in past:
            for block in (*self.chain(request), *self.chunks(request).values()):
                recency.pop(block.key, None)
                recency[block.key] = block
        return [form for block in recency.values() for form in self.stored(block)]


@lru_cache(maxsize=4)
def _loaded(path: Path, service: Service) -> Trace:
    return load_trace(path, service)


@lru_cache(maxsize=8)
def _generated(shape: str, seed: int, requests: int) -> Trace:
    return generate(shape, seed, requests)


def _trace(workload: Workload, tokens: int | None) -> Trace:
    if workload.trace:
        trace = _loaded(workload.trace, workload.service_of(workload.seed, tokens))
        return trace.open_loop() if workload.loop == "open" else trace
    past = round(workload.simulated_requests * PAST_SHARE)
    return _generated(workload.shape, workload.seed, past + workload.simulated_requests)


def _start_s(trace: Trace, workload: Workload) -> float:
    if workload.start_s is not None:
        return workload.start_s
    spare = len(trace.requests) - workload.simulated_requests
    return trace.requests[min(spare, round(len(trace.requests) * PAST_SHARE))].arrival_s if spare > 0 else 0.0


def _answer_tokens(workload: Workload, draw: Random) -> int:
    """Return the tokens of one answer.

    With a maximum they are drawn from a geometric distribution: each token is equally likely to be the last.
    """
    mean, most = workload.output_tokens, workload.output_tokens_most
    if not most or mean < 2:
        return mean
    return min(most, 1 + int(log(1 - draw.random()) / log(1 - 1 / mean)))


def _own_prompts(workload: Workload, hit_share: float, block_tokens: int) -> Demand:
    """Return prompts that share nothing with each other; `hit_share` of their blocks is stored from the
    start."""
    draw, answers = Random(workload.seed), Random(workload.seed + ANSWERS_SEED)
    requests, past = [], []
    first = 0
    for _ in range(workload.simulated_requests):
        excess = workload.prompt_excess_tokens
        tokens = workload.prompt_tokens + (round(draw.expovariate(1 / excess)) if excess else 0)
        length = -(-tokens // block_tokens)
        chain = tuple(range(first, first + length))
        first += length
        requests.append(Request(0.0, tokens, _answer_tokens(workload, answers), chain))
        if workload.hits_whole:
            stored = length if draw.random() < hit_share else 0
        else:
            stored = round(hit_share * length)
        if stored:
            past.append(Request(0.0, stored * block_tokens, 1, chain[:stored]))
    draw.shuffle(requests)  # requests come in another order than the pool was filled
    return Demand(tuple(requests), tuple(past), block_tokens)
