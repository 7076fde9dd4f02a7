"""Generator of seeded traces in Mooncake's schema, in shapes that the published ones do not cover.

Blocks are numbered in order of arrival by what they hold and what they follow, so equal prefixes get equal
ids, as in the published traces. In shapes that retrieve documents, full blocks of nothing else also get chunk
ids, which depend on their content alone. `weir trace generate --help` lists the shapes.
"""

from __future__ import annotations

import argparse
import heapq
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import islice
from random import Random

from workload.drafts import Draft, Sessions
from workload.fan_in import ShapeError
from workload.shapes import EVERY_SHAPE, find_shape
from workload.trace import CHUNK_IDS, MOONCAKE, SESSION, InSession, Request, Trace

DEFAULT_SHAPE = "agents"
DEFAULT_REQUESTS = 2000
DEFAULT_SEED = 1

Slice = tuple[str, int, int]


class GenerateError(ValueError):
    """Shape or size that can't be generated."""


def generate(
    shape: str = DEFAULT_SHAPE,
    seed: int = DEFAULT_SEED,
    requests: int = DEFAULT_REQUESTS,
    requests_per_s: float | None = None,
    block_tokens: int = MOONCAKE.block_tokens,
) -> Trace:
    """Return a trace of `requests` requests; the same arguments give the same trace on any machine.

    With another block size, prompts and times stay the same. Raises GenerateError.
    """
    if requests < 1:
        raise GenerateError(f"there must be at least one request, not {requests}")
    try:
        chosen = find_shape(shape)
    except ShapeError as error:
        raise GenerateError(str(error)) from None
    rate = chosen.requests_per_s if requests_per_s is None else requests_per_s
    if not 0 < rate < float("inf"):
        raise GenerateError(f"the rate must be above 0 requests a second, not {rate:g}")
    if block_tokens < 1:
        raise GenerateError(f"a block has at least one token, not {block_tokens}")
    placed = list(islice(in_order(chosen.sessions(Random(seed), rate)), requests))
    numbered = tuple(number_blocks((draft for _, draft in placed), chosen.retrieved, block_tokens))
    if chosen.has_sessions:
        numbered = _in_sessions(numbered, placed)
    return Trace(name_of(shape, seed), replace(MOONCAKE, block_tokens=block_tokens), numbered)


def name_of(shape: str, seed: int) -> str:
    """Return the name of a generated trace."""
    return f"{shape} seed {seed}"


def in_order(sessions: Sessions) -> Iterator[tuple[int, Draft]]:
    """Yield all requests by arrival, each with its session's number; sessions must come in order of start."""
    waiting: list[tuple[Draft, int]] = []
    for number, session in enumerate(sessions):
        while waiting and waiting[0][0].arrival_s <= session[0].arrival_s:
            draft, of = heapq.heappop(waiting)
            yield of, draft
        for draft in session:
            heapq.heappush(waiting, (draft, number))


def _in_sessions(requests: Sequence[Request], placed: Sequence[tuple[int, Draft]]) -> tuple[Request, ...]:
    """Return the requests with their places in sessions: all wait for the answer to the session's first
    one."""
    first: dict[int, int] = {}
    for number, (session, _) in enumerate(placed):
        first.setdefault(session, number)
    return tuple(
        replace(
            request,
            place=InSession(
                session, number, () if first[session] == number else (first[session],), draft.think_s
            ),
        )
        for number, (request, (session, draft)) in enumerate(zip(requests, placed, strict=True))
    )


def number_blocks(
    drafts: Iterator[Draft], retrieved: str | None = None, block_tokens: int = MOONCAKE.block_tokens
) -> Iterator[Request]:
    """Yield requests whose block ids are equal if the content and everything before it are equal.

    With `retrieved`, full blocks of segments whose names begin with it also get chunk ids, equal if the
    content is.
    """
    ids = _Ids()
    chunk_ids: dict[tuple[Slice, ...], int] = {}
    for draft in drafts:
        chain, parent = [], -1
        chunks: list[int | None] = []
        for content in block_contents(draft.prompt, block_tokens):
            parent = ids.of(parent, content)
            chain.append(parent)
            if retrieved is not None:
                is_chunk = _is_chunk(content, retrieved, block_tokens)
                chunks.append(chunk_ids.setdefault(content, len(chunk_ids)) if is_chunk else None)
        tokens = sum(tokens for _, tokens in draft.prompt)
        # The schema's timestamps are whole milliseconds: what is generated reads back the same.
        arrival_s = int(draft.arrival_s * 1000) / 1000
        yield Request(arrival_s, tokens, draft.output_tokens, tuple(chain), chunks=tuple(chunks))


class _Ids:
    """Numbers of blocks in the order in which they come, by content and parent.

    Most blocks have at most one successor, which is found without hashing its content.
    """

    def __init__(self) -> None:
        self._first: list[tuple[Slice, ...]] = []
        """Content of the block that followed each id first; empty if none has yet."""
        self._first_id: list[int] = []
        self._others: dict[tuple[int, tuple[Slice, ...]], int] = {}
        """Ids of first blocks of prompts, and of later successors of a block, by parent and content."""

    def of(self, parent: int, content: tuple[Slice, ...]) -> int:
        """Return the id of the block with this content behind `parent`; -1 means no parent."""
        if parent >= 0:
            first = self._first[parent]
            if not first:
                self._first[parent] = content
                self._first_id[parent] = len(self._first)
                return self._new()
            if first == content:
                return self._first_id[parent]
        number = self._others.get((parent, content), -1)
        if number < 0:
            number = self._others[parent, content] = self._new()
        return number

    def _new(self) -> int:
        self._first.append(())
        self._first_id.append(-1)
        return len(self._first) - 1


def _is_chunk(content: tuple[Slice, ...], retrieved: str, block_tokens: int) -> bool:
    full = sum(tokens for _, _, tokens in content) == block_tokens
    return full and all(name.startswith(retrieved) for name, _, _ in content)


def block_contents(prompt: Sequence[tuple[str, int]], block_tokens: int) -> Iterator[tuple[Slice, ...]]:
    """Yield the content of each block of a prompt: slices (segment, offset, tokens). The last may be
    partial."""
    content: list[Slice] = []
    free = block_tokens
    for name, tokens in prompt:
        offset = 0
        while offset < tokens:
            taken = min(free, tokens - offset)
            content.append((name, offset, taken))
            offset += taken
            free -= taken
            if free == 0:
                yield tuple(content)
                content, free = [], block_tokens
    if content:
        yield tuple(content)


def to_line(request: Request) -> str:
    """Return a request as one line of JSON in Mooncake's schema."""
    record: dict[str, object] = {
        "timestamp": round(request.arrival_s * MOONCAKE.ticks_per_s),
        "input_length": request.input_tokens,
        "output_length": request.output_tokens,
        "hash_ids": list(request.blocks),
    }
    if request.chunks:
        record[CHUNK_IDS] = list(request.chunks)
    if request.place is not None:
        record[SESSION] = asdict(request.place)
    return json.dumps(record)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, which writes JSON lines to standard output; return the exit code."""
    shapes = "\n".join(
        f"  {shape.name:15} {shape.what} ({shape.requests_per_s:g}/s)" for shape in EVERY_SHAPE.values()
    )
    parser = argparse.ArgumentParser(
        prog="weir trace generate",
        description="Write a generated trace in Mooncake's schema (JSON lines) to standard output.",
        epilog=f"shapes:\n{shapes}\n\nexample:\n  weir trace generate --shape rag > rag.jsonl",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--shape", default=DEFAULT_SHAPE, help=f"one of those below (default {DEFAULT_SHAPE})"
    )
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED, help=f"default {DEFAULT_SEED}")
    parser.add_argument("--requests", type=int, default=DEFAULT_REQUESTS, help=f"default {DEFAULT_REQUESTS}")
    parser.add_argument("--rate", type=float, help="requests a second (default: the shape's own)")
    chosen = parser.parse_args(arguments)
    try:
        trace = generate(chosen.shape, chosen.seed, chosen.requests, chosen.rate)
    except GenerateError as error:
        parser.error(str(error))
    try:
        for request in trace.requests:
            print(to_line(request))
        sys.stdout.flush()
    except BrokenPipeError:
        sys.stderr.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
