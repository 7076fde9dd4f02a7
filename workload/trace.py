"""Request traces in Mooncake's and Bailian's schemas, told apart by their fields.

Either may have `chunk_ids` beside `hash_ids`: for each block an id of what it holds, whatever is before it,
or null where the block is no chunk of its own (system prompts, questions, what does not fill a block). Equal
ids mean equal content; the published traces have none.

Errors (the file is refused before anything starts): a line that is not a JSON object of one of the schemas,
a field that is missing or has the wrong type, an empty chain, a block twice in one chain, chunk ids that are
not one for each block or that name a block that is not full, an input of zero tokens, times that go
backwards, two schemas in one file, no requests at all. Warnings (reported, the file is used): unknown fields,
an output of zero tokens, a gap of more than a minute without arrivals, a chain whose length does not fit its
tokens, a block that follows two different blocks or has two different chunk ids."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, overload

GAP_WARNING_S = 60.0
WARNINGS_SHOWN = 3
_CHAT = ("chat_id", "parent_chat_id", "turn")
CHUNK_IDS = "chunk_ids"
"""The field of a line that says which of its blocks are chunks."""
ID_BITS = 64
"""Of the ids of blocks and chunks: what keys are derived from."""


class TraceError(Exception):
    """A trace cannot be used; the message says file, line and reason."""


@dataclass(frozen=True, slots=True)
class Request:
    """One inference request: `blocks` is the chain of its prefix blocks, equal ids mean equal prefixes."""

    arrival_s: float
    input_tokens: int
    output_tokens: int
    blocks: tuple[int, ...]
    chat_id: int | None = None
    parent_chat_id: int | None = None
    turn: int | None = None
    chunks: tuple[int | None, ...] = ()
    """For each block an id of its content, None for one that is no chunk; empty where the trace has none."""


@dataclass(frozen=True)
class Schema:
    """How one published trace format names and measures things."""

    name: str
    block_tokens: int
    ticks_per_s: float
    required: frozenset[str]
    optional: frozenset[str] = frozenset()


# Mooncake's open traces (FAST'25): https://github.com/kvcache-ai/Mooncake, in milliseconds.
MOONCAKE = Schema(
    "mooncake",
    512,
    1000.0,
    frozenset({"timestamp", "input_length", "output_length", "hash_ids"}),
    frozenset({CHUNK_IDS}),
)
# Alibaba's Bailian traces: https://github.com/alibaba-edu/qwen-bailian-usagetraces-anon.
BAILIAN = Schema(
    "bailian",
    16,
    1.0,
    MOONCAKE.required | set(_CHAT),
    frozenset({"type", CHUNK_IDS}),
)


@dataclass(frozen=True)
class Trace:
    """Requests in order of arrival, with what came before them (`past`) and what was odd about the file."""

    name: str
    schema: Schema
    requests: tuple[Request, ...]
    past: tuple[Request, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def block_tokens(self) -> int:
        """Tokens that a full block holds."""
        return self.schema.block_tokens

    @property
    def duration_s(self) -> float:
        """Time between the first arrival's zero and the last arrival."""
        return self.requests[-1].arrival_s if self.requests else 0.0

    @property
    def accesses(self) -> int:
        """Block accesses of all requests."""
        return sum(len(request.blocks) for request in self.requests)

    @property
    def has_chunks(self) -> bool:
        """Whether any request says which of its blocks are chunks."""
        return any(chunk is not None for request in self.requests for chunk in request.chunks)

    @property
    def longest_chain(self) -> int:
        """Blocks of the longest request."""
        return max((len(request.blocks) for request in self.requests), default=0)

    def window(self, start_s: float = 0.0, limit: int | None = None, speed: float = 1.0) -> Trace:
        """Requests from `start_s` on, at most `limit`, `speed` times as fast; those before are the past."""
        if speed <= 0:
            raise TraceError(f"{self.name}: speed must be above 0, not {speed:g}")
        if start_s < 0 or (limit is not None and limit < 1):
            raise TraceError(f"{self.name}: start must be 0 or more and the limit at least 1 request")
        kept = [request for request in self.requests if request.arrival_s >= start_s]
        if not kept:
            raise TraceError(
                f"{self.name}: nothing arrives after {start_s:g} s, the last request at {self.duration_s:g} s"
            )
        past = tuple(request for request in self.requests if request.arrival_s < start_s)
        moved = (
            replace(request, arrival_s=(request.arrival_s - start_s) / speed) for request in kept[:limit]
        )
        return replace(self, requests=tuple(moved), past=self.past + past)

    def cut(self, block_tokens: int) -> Trace:
        """The same requests in blocks of so many tokens. What two of them share still ends where a block of
        this trace does: of what is behind that it says nothing."""
        parts, rest = divmod(self.block_tokens, max(1, block_tokens))
        if block_tokens < 1 or rest:
            raise TraceError(
                f"{self.name}: a block of {self.block_tokens} tokens can't be cut into blocks of "
                f"{block_tokens}: that has to be a divisor of it"
            )
        if parts == 1:
            return self
        blocks, chunks = _Cuts(parts), _Cuts(parts)

        def cut(request: Request) -> Request:
            tokens = -(-request.input_tokens // block_tokens)
            # A chain that is longer or shorter than its tokens: of each block there is a part at least.
            count = min(max(tokens, parts * (len(request.blocks) - 1) + 1), parts * len(request.blocks))
            return replace(
                request, blocks=blocks.of(request.blocks)[:count], chunks=chunks.of(request.chunks)[:count]
            )

        return replace(
            self,
            schema=replace(self.schema, block_tokens=block_tokens),
            requests=tuple(map(cut, self.requests)),
            past=tuple(map(cut, self.past)),
        )


class _Cuts:
    """Numbers the parts of what is cut, in the order in which it comes: ids keep to ID_BITS."""

    def __init__(self, parts: int) -> None:
        self._parts = range(parts)
        self._numbers: dict[int, int] = {}

    @overload
    def of(self, ids: tuple[int, ...]) -> tuple[int, ...]: ...
    @overload
    def of(self, ids: tuple[int | None, ...]) -> tuple[int | None, ...]: ...
    def of(self, ids: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """The parts of all of them; of one that has no id neither has any part."""
        numbers, parts = self._numbers, self._parts
        return tuple(
            None if one is None else numbers.setdefault(one, len(numbers)) * len(parts) + part
            for one in ids
            for part in parts
        )


def load_trace(path: str | Path) -> Trace:
    """Read a JSONL trace; raises TraceError with file, line and reason of the first bad line."""
    try:
        with Path(path).open(encoding="utf-8") as lines:
            return parse_trace(lines, str(path))
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise TraceError(f"{path}: not a text file in UTF-8 ({error.reason} at byte {error.start})") from None


def parse_trace(lines: Iterable[str], name: str) -> Trace:
    """Parse trace lines; `name` is what messages call the file."""
    reader = _Reader(name)
    requests = tuple(reader.read(lines))
    if reader.schema is None:
        raise TraceError(f"{name}: no requests in it")
    return Trace(name, reader.schema, requests, warnings=reader.summary())


@dataclass
class _Reader:
    """State of one pass over the file: the schema found, the last arrival, and the oddities seen."""

    name: str
    schema: Schema | None = None
    last_arrival_s: float = 0.0
    parents: dict[int, int] = field(default_factory=dict)
    chunk_of: dict[int, int | None] = field(default_factory=dict)
    odd: dict[str, list[str]] = field(default_factory=dict)

    def read(self, lines: Iterable[str]) -> Iterator[Request]:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield self._request(number, line)

    def summary(self) -> tuple[str, ...]:
        """One line a kind of oddity: where it was seen first and how often."""
        told = []
        for kind, places in self.odd.items():
            more = f" (and {len(places) - WARNINGS_SHOWN} more)" if len(places) > WARNINGS_SHOWN else ""
            told.append(f"{self.name}: {kind}: {'; '.join(places[:WARNINGS_SHOWN])}{more}")
        return tuple(told)

    def _request(self, number: int, line: str) -> Request:
        record = self._record(number, line)
        schema = self._schema(number, record)
        arrival_s = self._number(number, record, "timestamp") / schema.ticks_per_s
        input_tokens = self._whole(number, record, "input_length", least=1)
        output_tokens = self._whole(number, record, "output_length", least=0)
        blocks = self._chain(number, record)
        if arrival_s < self.last_arrival_s:
            raise self._error(
                number, f"arrives at {arrival_s:g} s, before the line above ({self.last_arrival_s:g} s)"
            )
        if arrival_s - self.last_arrival_s > GAP_WARNING_S:
            self._note("gap without arrivals", number, f"{arrival_s - self.last_arrival_s:.0f} s")
        if output_tokens == 0:
            self._note("output_length is 0", number)
        if len(blocks) != -(-input_tokens // schema.block_tokens):
            self._note(
                "chain does not fit input_length", number, f"{len(blocks)} blocks, {input_tokens} tokens"
            )
        self._check_parents(number, blocks)
        chunks = self._chunks(number, record, blocks, input_tokens // schema.block_tokens)
        self.last_arrival_s = arrival_s
        request = Request(arrival_s, input_tokens, output_tokens, blocks, chunks=chunks)
        if schema is MOONCAKE:
            return request
        chat, parent, turn = (self._whole(number, record, key, least=-1) for key in _CHAT)
        return replace(request, chat_id=chat, parent_chat_id=parent, turn=turn)

    def _record(self, number: int, line: str) -> dict[str, Any]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise self._error(number, f"not JSON ({error})") from None
        if not isinstance(record, dict):
            raise self._error(number, f"expected a JSON object, found {type(record).__name__}")
        return record

    def _schema(self, number: int, record: dict[str, Any]) -> Schema:
        schema = BAILIAN if "chat_id" in record else MOONCAKE
        missing = sorted(schema.required - record.keys())
        if missing:
            raise self._error(number, f"{schema.name} schema: no field {', '.join(missing)}")
        if self.schema not in (None, schema):
            raise self._error(number, f"{schema.name} schema, but the lines above are {self.schema.name}")
        for unknown in sorted(record.keys() - schema.required - schema.optional):
            self._note(f"unknown field {unknown!r} ignored", number)
        self.schema = schema
        return schema

    def _chain(self, number: int, record: dict[str, Any]) -> tuple[int, ...]:
        chain = record["hash_ids"]
        if not isinstance(chain, list) or not all(map(_is_id, chain)):
            raise self._error(number, f"hash_ids must be a list of whole numbers from 0 to 2^{ID_BITS} - 1")
        if not chain:
            raise self._error(number, "hash_ids is empty: a request has at least one block")
        if len(set(chain)) != len(chain):
            raise self._error(
                number, "hash_ids holds a block twice: the ids are prefixes, so they cannot repeat"
            )
        return tuple(chain)

    def _chunks(
        self, number: int, record: dict[str, Any], blocks: tuple[int, ...], full_blocks: int
    ) -> tuple[int | None, ...]:
        chunks = record.get(CHUNK_IDS, [])
        if not isinstance(chunks, list) or not all(chunk is None or _is_id(chunk) for chunk in chunks):
            raise self._error(
                number, f"{CHUNK_IDS} must be a list of whole numbers from 0 to 2^{ID_BITS} - 1, and nulls"
            )
        if CHUNK_IDS in record and len(chunks) != len(blocks):
            raise self._error(
                number,
                f"{CHUNK_IDS} must have one entry for each of the {len(blocks)} blocks of hash_ids, "
                f"not {len(chunks)}",
            )
        if any(chunk is not None for chunk in chunks[full_blocks:]):
            raise self._error(
                number,
                f"{CHUNK_IDS}: only the {full_blocks} full blocks of the input can be chunks, "
                "the others must be null",
            )
        for block, chunk in zip(blocks, chunks, strict=False):
            if self.chunk_of.setdefault(block, chunk) != chunk:
                self._note("a block has two different chunk ids", number, f"block {block}")
        return tuple(chunks)

    def _check_parents(self, number: int, blocks: tuple[int, ...]) -> None:
        parent = -1
        for block in blocks:
            if self.parents.setdefault(block, parent) != parent:
                self._note("a block follows two different blocks", number, f"block {block}")
            parent = block

    def _number(self, number: int, record: dict[str, Any], key: str) -> float:
        value = record[key]
        if type(value) not in (int, float) or not 0 <= value < float("inf"):
            raise self._error(number, f"{key} must be a number, 0 or more, not {value!r}")
        return float(value)

    def _whole(self, number: int, record: dict[str, Any], key: str, least: int) -> int:
        value = record[key]
        if type(value) is not int or value < least:
            raise self._error(number, f"{key} must be a whole number, {least} or more, not {value!r}")
        return value

    def _note(self, kind: str, number: int, detail: str = "") -> None:
        self.odd.setdefault(kind, []).append(f"line {number}" + (f", {detail}" if detail else ""))

    def _error(self, number: int, reason: str) -> TraceError:
        return TraceError(f"{self.name}:{number}: {reason}")


def _is_id(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << ID_BITS
