"""Requests of a trace, in order of arrival, and the blocks of their prompts.

`trace_files.load_trace` reads traces from files, `generate.generate` makes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeGuard, overload

CHUNK_IDS = "chunk_ids"
"""Name of the field that says which of a request's blocks are chunks."""
SESSION = "session"
"""Name of the field that says where a request stands in a session."""
CHAT_FIELDS = ("chat_id", "parent_chat_id", "turn")
ID_BITS = 64
"""Number of bits of the ids of blocks and chunks, from which keys are derived."""
MAX_TOKENS = 100_000_000
"""Largest number of tokens of a prompt or an answer. No model takes a hundredth of it: more is a mistake."""
MAX_TIME_S = 1e9
"""Longest time in seconds from a trace's first request to its last."""


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a JSON value is a number; true and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


class TraceError(Exception):
    """Trace that can't be used; the message says file, line and reason."""


@dataclass(frozen=True, slots=True)
class InSession:
    """Place of a request in a session, such as a coding agent's: what it waits for, and for how long then."""

    session: int
    """Number of the session in its trace."""
    number: int
    """Number of the request in its trace."""
    after: tuple[int, ...] = ()
    """Numbers of the requests whose answers it waits for; none for a request that opens a session."""
    think_s: float = 0.0
    """Seconds from the last of these answers to this request, while a tool runs or a person reads."""
    stream: int = 0
    """Number of the session's stream: 0 is the session's own, others are sub-agents."""
    is_last: bool = False
    """Whether its session or sub-agent asks for nothing after it."""
    shared_tokens: int = 0
    """Number of tokens of tools and system prompt at its start, which other sessions may have, too."""


@dataclass(frozen=True, slots=True)
class Request:
    """Inference request; `blocks` is the chain of its prefix blocks, whose equal ids mean equal prefixes."""

    arrival_s: float
    input_tokens: int
    output_tokens: int
    blocks: tuple[int, ...]
    chat_id: int | None = None
    parent_chat_id: int | None = None
    turn: int | None = None
    chunks: tuple[int | None, ...] = ()
    """Id of each block's content, None for a block that is no chunk; empty if the trace has no chunks."""
    place: InSession | None = None
    """Place in a session; None if the trace does not say."""


@dataclass(frozen=True)
class Schema:
    """Names and units of one published trace format."""

    name: str
    block_tokens: int
    ticks_per_s: float
    required: frozenset[str]
    optional: frozenset[str] = frozenset()


# Mooncake's open traces (FAST'25), in milliseconds: https://github.com/kvcache-ai/Mooncake.
MOONCAKE = Schema(
    "mooncake",
    512,
    1000.0,
    frozenset({"timestamp", "input_length", "output_length", "hash_ids"}),
    frozenset({CHUNK_IDS, SESSION}),
)
# Alibaba's Bailian traces: https://github.com/alibaba-edu/qwen-bailian-usagetraces-anon.
BAILIAN = Schema(
    "bailian",
    16,
    1.0,
    MOONCAKE.required | set(CHAT_FIELDS),
    frozenset({"type", CHUNK_IDS}),
)


@dataclass(frozen=True)
class Trace:
    """Requests in order of arrival, those before them (`past`), and warnings about the file."""

    name: str
    schema: Schema
    requests: tuple[Request, ...]
    past: tuple[Request, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def block_tokens(self) -> int:
        """Return the number of tokens of a full block."""
        return self.schema.block_tokens

    @property
    def duration_s(self) -> float:
        """Return the seconds from time 0 to the last arrival."""
        return self.requests[-1].arrival_s if self.requests else 0.0

    @property
    def accesses(self) -> int:
        """Return the number of block accesses of all requests."""
        return sum(len(request.blocks) for request in self.requests)

    @property
    def has_chunks(self) -> bool:
        """Return whether any request says which of its blocks are chunks."""
        return any(chunk is not None for request in self.requests for chunk in request.chunks)

    @property
    def longest_chain(self) -> int:
        """Return the number of blocks of the longest request."""
        return max((len(request.blocks) for request in self.requests), default=0)

    def window(self, start_s: float = 0.0, limit: int | None = None, speed: float = 1.0) -> Trace:
        """Return the requests from `start_s` on, at most `limit`, `speed` times as fast.

        Earlier requests become the past. Raises TraceError.
        """
        if speed <= 0:
            raise TraceError(f"{self.name}: speed must be above 0, not {speed:g}")
        if start_s < 0 or (limit is not None and limit < 1):
            raise TraceError(f"{self.name}: start must be 0 or more and the limit at least 1 request")
        remaining = [request for request in self.requests if request.arrival_s >= start_s]
        if not remaining:
            raise TraceError(
                f"{self.name}: nothing arrives after {start_s:g} s, the last request at {self.duration_s:g} s"
            )
        past = tuple(request for request in self.requests if request.arrival_s < start_s)
        moved = (_moved(request, start_s, speed) for request in remaining[:limit])
        return replace(self, requests=tuple(moved), past=self.past + past)

    @property
    def has_sessions(self) -> bool:
        """Return whether requests say which session they belong to."""
        return any(request.place is not None for request in self.requests)

    def open_loop(self) -> Trace:
        """Return the same requests with fixed arrival times: none waits for the answer to an earlier one."""

        def freed(request: Request) -> Request:
            place = request.place
            return request if place is None else replace(request, place=replace(place, after=(), think_s=0.0))

        return replace(self, requests=tuple(map(freed, self.requests)))

    def cut(self, block_tokens: int) -> Trace:
        """Return the same requests in blocks of another size, cut or joined; raises TraceError.

        Equal prefixes still end where a block of this trace ends: it does not say what is shared within a
        block.
        """
        larger, smaller = max(self.block_tokens, block_tokens), min(self.block_tokens, block_tokens)
        if block_tokens < 1 or larger % smaller:
            raise TraceError(
                f"{self.name}: blocks of {block_tokens} tokens can't be made of blocks of "
                f"{self.block_tokens}: choose a multiple or a divisor"
            )
        if larger == smaller:
            return self
        if block_tokens == larger:
            joiner = Joiner(larger // smaller)
            return self._recut(block_tokens, joiner.join)
        parts = larger // smaller
        blocks, chunks = _Cuts(parts), _Cuts(parts)

        def cut(request: Request) -> Request:
            tokens = -(-request.input_tokens // block_tokens)
            # The chain may not fit its tokens; at least one part of each block is kept.
            count = min(max(tokens, parts * (len(request.blocks) - 1) + 1), parts * len(request.blocks))
            return replace(
                request, blocks=blocks.of(request.blocks)[:count], chunks=chunks.of(request.chunks)[:count]
            )

        return self._recut(block_tokens, cut)

    def _recut(self, block_tokens: int, cut: Callable[[Request], Request]) -> Trace:
        return replace(
            self,
            schema=replace(self.schema, block_tokens=block_tokens),
            requests=tuple(map(cut, self.requests)),
            past=tuple(map(cut, self.past)),
        )


class Joiner:
    """Joins `step` blocks each into a larger one.

    The larger block has the id of the last one, which stands for the whole prefix. It is a chunk if all its
    parts are chunks.
    """

    def __init__(self, step: int) -> None:
        self._step = step
        self._joined: dict[tuple[int | None, ...], int] = {}

    def join(self, request: Request) -> Request:
        """Return the request in larger blocks."""
        step, last = self._step, len(request.blocks) - 1
        chunks = (request.chunks[at : at + step] for at in range(0, len(request.chunks), step))
        return replace(
            request,
            blocks=tuple(request.blocks[min(at + step - 1, last)] for at in range(0, last + 1, step)),
            chunks=tuple(
                self._joined.setdefault(parts, len(self._joined))
                if None not in parts and len(parts) == step
                else None
                for parts in chunks
            ),
        )


def _moved(request: Request, start_s: float, speed: float) -> Request:
    place = request.place
    if place is not None and speed != 1.0:
        place = replace(place, think_s=place.think_s / speed)
    return replace(request, arrival_s=(request.arrival_s - start_s) / speed, place=place)


class _Cuts:
    """Numbers of the parts of cut blocks, in order of appearance, so that ids stay within ID_BITS."""

    def __init__(self, parts: int) -> None:
        self._parts = range(parts)
        self._numbers: dict[int, int] = {}

    @overload
    def of(self, ids: tuple[int, ...]) -> tuple[int, ...]: ...
    @overload
    def of(self, ids: tuple[int | None, ...]) -> tuple[int | None, ...]: ...
    def of(self, ids: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """Return the ids of the parts of all blocks; parts of a block without an id have none, either."""
        numbers, parts = self._numbers, self._parts
        return tuple(
            None if one is None else numbers.setdefault(one, len(numbers)) * len(parts) + part
            for one in ids
            for part in parts
        )
