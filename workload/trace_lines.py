"""Requests in Mooncake's and Bailian's schemas, which are told apart by their fields.

Either may have `chunk_ids` beside `hash_ids`: for each block an id of its content, whatever precedes it, or
null if the block is no chunk (system prompts, questions, partial blocks). Equal ids mean equal content. The
published traces have none.

Errors (the file is refused before anything starts): a line that is not a JSON object of one of the schemas, a
missing or mistyped field, an empty chain, a block twice in one chain, chunk ids that are not one for each
block or that name a partial block, an input of zero tokens, times that go backwards, two schemas in one file,
no requests at all.

Warnings (the file is used): unknown fields, an output of zero tokens, more than a minute without arrivals, a
chain whose length does not fit its tokens, a block that follows two different blocks or has two different
chunk ids, more than a thousand requests a second.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from workload.trace import (
    BAILIAN,
    CHAT_FIELDS,
    CHUNK_IDS,
    ID_BITS,
    MAX_TIME_S,
    MAX_TOKENS,
    MOONCAKE,
    SESSION,
    InSession,
    Request,
    Schema,
    Trace,
    TraceError,
    is_number,
)

GAP_WARNING_S = 60.0
"""Seconds without arrivals above which a warning is given. If the first request comes later than this, times
count from it."""
DENSE_REQUESTS, DENSE_REQUESTS_PER_S = 100, 1000.0
"""Limits of a warning that times may be in another unit: at least so many requests, at a higher rate."""
WARNINGS_SHOWN = 3
MS_PER_S = 1e3
LEAST_UNIX_MS = 1e11
"""Timestamp from which times are milliseconds since 1970: as seconds it would be thousands of years."""
MAX_AFTER = 1000
"""Largest number of requests that one request waits for."""

Numbered = tuple[int, object]
"""Number of a line, or of an item of an array, from 1 on, and its JSON value."""


def parse_trace(lines: Iterable[str], name: str) -> Trace:
    """Return the trace of JSON lines; messages call the file `name`. Raises TraceError."""
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    return parse_records(((number, read_json(line, name, number)) for number, line in numbered), name)


def read_json(text: str, name: str, number: int) -> object:
    """Return the JSON value of a line; raises TraceError."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{name}:{number}: not JSON ({error})") from None


def parse_records(records: Iterable[Numbered], name: str, keeps_times: bool = False) -> Trace:
    """Return the trace of JSON values; raises TraceError.

    If the first request comes late, times count from it, unless `keeps_times`.
    """
    reader = _Reader(name, keeps_times=keeps_times)
    requests = tuple(reader.read(records))
    if reader.schema is None:
        raise TraceError(f"{name}: no requests in it")
    warnings = (*reader.summary(), *_density_warning(name, reader.schema, requests))
    return Trace(name, reader.schema, requests, warnings=warnings)


def _density_warning(name: str, schema: Schema, requests: Sequence[Request]) -> tuple[str, ...]:
    """Return a warning if so many requests come so fast that their times are probably in another unit."""
    duration_s = requests[-1].arrival_s - requests[0].arrival_s
    if len(requests) < DENSE_REQUESTS or not 0 < duration_s < len(requests) / DENSE_REQUESTS_PER_S:
        return ()
    unit = "ms" if schema.ticks_per_s == MOONCAKE.ticks_per_s else "s"
    return (f"{name}: {len(requests)} requests within {duration_s:g} s: is `timestamp` in {unit}?",)


@dataclass
class _Reader:
    """State of one pass over a file: the schema found, the last arrival, and the oddities seen."""

    name: str
    keeps_times: bool = False
    schema: Schema | None = None
    begin_s: float = 0.0
    """Seconds that are subtracted from every arrival."""
    ticks_per_s: float = 1.0
    last_arrival_s: float = 0.0
    last_number: int = -1
    """Number of the last request that has a place in a session."""
    parents: dict[int, int] = field(default_factory=dict)
    chunk_of: dict[int, int | None] = field(default_factory=dict)
    odd: dict[str, list[str]] = field(default_factory=dict)

    def read(self, records: Iterable[Numbered]) -> Iterator[Request]:
        for number, value in records:
            yield self._request(number, value)

    def summary(self) -> tuple[str, ...]:
        """Return one line for each kind of oddity: the first places, and how many more there are."""
        lines = []
        for kind, places in self.odd.items():
            more = f" (and {len(places) - WARNINGS_SHOWN} more)" if len(places) > WARNINGS_SHOWN else ""
            lines.append(f"{self.name}: {kind}: {'; '.join(places[:WARNINGS_SHOWN])}{more}")
        return tuple(lines)

    def _request(self, number: int, value: object) -> Request:
        if not isinstance(value, dict):
            raise self._error(number, f"expected a JSON object, found {type(value).__name__}")
        record: dict[str, Any] = value
        is_first = self.schema is None
        schema = self._schema(number, record)
        arrival_s = self._arrival_s(number, record, schema, is_first)
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
        place = self._place(number, record[SESSION]) if SESSION in record else None
        request = Request(arrival_s, input_tokens, output_tokens, blocks, chunks=chunks, place=place)
        if schema is MOONCAKE:
            return request
        chat, parent, turn = (self._whole(number, record, key, least=-1) for key in CHAT_FIELDS)
        return replace(request, chat_id=chat, parent_chat_id=parent, turn=turn)

    def _arrival_s(self, number: int, record: dict[str, Any], schema: Schema, is_first: bool) -> float:
        ticks = self._number(number, record, "timestamp")
        if is_first:
            self.ticks_per_s = schema.ticks_per_s
            if ticks >= LEAST_UNIX_MS and schema.ticks_per_s < MS_PER_S:
                self.ticks_per_s = MS_PER_S
                self._note("times are milliseconds since 1970", number)
            if ticks / self.ticks_per_s > GAP_WARNING_S and not self.keeps_times:
                self.begin_s = ticks / self.ticks_per_s
                self._note("times count from the first request", number, f"{self.begin_s:g} s")
        arrival_s = ticks / self.ticks_per_s - self.begin_s
        if arrival_s > MAX_TIME_S:
            raise self._error(number, f"arrives {arrival_s:g} s after the first, the most is {MAX_TIME_S:g}")
        return arrival_s

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
        if not is_number(value) or not 0 <= value < float("inf"):
            raise self._error(number, f"{key} must be a number, 0 or more, not {value!r:.40}")
        return float(value)

    def _whole(self, number: int, record: dict[str, Any], key: str, least: int) -> int:
        value = record[key]
        if type(value) is not int or value < least:
            raise self._error(number, f"{key} must be a whole number, {least} or more, not {value!r:.40}")
        if value > MAX_TOKENS and key not in CHAT_FIELDS:
            raise self._error(number, f"{key} must be at most {MAX_TOKENS:,}, not {value:,}")
        return value

    def _place(self, number: int, value: object) -> InSession:
        """Return the place of a request in its session, as `generate.to_line` writes it."""
        fields = value if isinstance(value, dict) else {}
        after = fields.get("after")
        think_s = fields.get("think_s")
        if (
            not _is_id(fields.get("session"))
            or not _is_id(fields.get("number"))
            or not isinstance(after, list)
            or len(after) > MAX_AFTER
            or not all(map(_is_id, after))
            or not is_number(think_s)
            or not 0 <= think_s <= MAX_TIME_S
        ):
            raise self._error(
                number,
                f"{SESSION} must have session, number and after (a list) in whole numbers, and think_s",
            )
        own = fields["number"]
        if own <= self.last_number:
            raise self._error(
                number, f"{SESSION}: number must be more than above ({self.last_number}), not {own}"
            )
        if any(before >= own for before in after):
            raise self._error(number, f"{SESSION}: after must name requests before this one, number {own}")
        self.last_number = own
        return InSession(fields["session"], own, tuple(after), float(think_s))

    def _note(self, kind: str, number: int, detail: str = "") -> None:
        self.odd.setdefault(kind, []).append(f"line {number}" + (f", {detail}" if detail else ""))

    def _error(self, number: int, reason: str) -> TraceError:
        return TraceError(f"{self.name}:{number}: {reason}")


def _is_id(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << ID_BITS
