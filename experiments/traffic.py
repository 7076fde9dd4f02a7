"""The reference page on traffic: formats of traces, their fields, and every shape that can be generated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from emulator.result import ROOT
from experiments.traces import describe
from workload.adversarial import ADVERSARIAL, CHAIN_BLOCKS, HOT_BLOCKS
from workload.drafts import Shape
from workload.fan_in import FAN_IN, LIMITS, FanIn
from workload.generate import generate
from workload.sessions import CALL_TYPES, SUB_AGENT
from workload.shapes import EVERY_SHAPE
from workload.trace import BAILIAN, MOONCAKE, Schema
from workload.trace_tables import BLOCK_TOKENS, PUBLISHED

PAGE: Final = ROOT / "docs" / "shapes.md"
REQUESTS: Final = 1000
"""Number of requests that the figures of a shape are taken from."""
HEAD: Final = """\
# Trace formats and generated shapes

Generated from the code by `make reference`; do not edit. [Traffic](workloads.md) says how traces are used.

`weir trace describe FILE` says what a trace holds. `weir trace generate --shape NAME` writes a generated one
as JSON lines in Mooncake's schema.

## Trace formats

A file's content decides its format. Other fields of a line are reported and not read; those of sessions and
tables are not looked at.
"""
SHAPES_HEAD: Final = f"""\
## Generated shapes

The seed decides everything about a generated trace. The figures are of its first {REQUESTS:,} requests with
seed 1 and blocks of {MOONCAKE.block_tokens} tokens. *Again* is the share of the block accesses whose block an
earlier request had, which is what a cache without bounds would serve.
"""
FIELDS: Final[Mapping[str, str]] = {
    "timestamp": "arrival, counted from the first request; Mooncake: ms, Bailian: s",
    "input_length": "tokens of the prompt, at least 1",
    "output_length": "tokens of the answer",
    "hash_ids": "ids of the prompt's blocks in order; equal ids mean equal blocks behind equal prefixes",
    "chunk_ids": "for each block an id of its content alone, or null for a block that is no chunk",
    "session": "object with `session`, `number`, `after` (numbers of requests) and `think_s`: the request "
    "comes `think_s` seconds after the answers to those in `after`",
    "chat_id": "number of the request",
    "parent_chat_id": "number of the request that the conversation goes on from; -1 for the first",
    "turn": "turn of the conversation",
    "type": "kind of the request; not used",
}
"""Meanings of the fields of a line."""
SESSION_FIELDS: Final = (
    ("session", "`block_size`", "tokens of a block"),
    ("session", "`hash_id_scope`", '"local": ids say nothing across sessions'),
    ("session, sub-agent", "`tool_tokens`, `system_tokens`", "what every prompt begins with"),
    ("session, sub-agent", "`requests`", "calls and sub-agents in order of time"),
    ("call, sub-agent", "`t`", "seconds from the session's start"),
    (
        "call, sub-agent",
        "`type`",
        f"{' or '.join(f'`{one}`' for one in CALL_TYPES)} for a call, `{SUB_AGENT}` for a sub-agent",
    ),
    ("call", "`model`", "blocks of two models are different blocks"),
    ("call", "`in`, `out`", "tokens of prompt and answer"),
    ("call", "`hash_ids`", "ids of the prompt's blocks in order"),
    (
        "call",
        "`api_time`, `think_time`",
        "seconds that the answer took, and from it to the next call; optional",
    ),
    ("sub-agent", "`duration_ms`", "how long it ran; the parent's next call waits if it had ended by then"),
)
"""Fields of an object, by its kind (`workload.sessions`)."""


def files() -> dict[Path, str]:
    """Return the text of the page."""
    return {PAGE: "\n".join([HEAD, *_formats(), SHAPES_HEAD, *_shapes()])}


def _formats() -> Iterator[str]:
    for title, schema in (("Mooncake", MOONCAKE), ("Bailian", BAILIAN)):
        yield f"### {title}\n\nJSON lines, one request a line, in blocks of {schema.block_tokens} tokens.\n"
        yield _table(("field", "needed", "meaning"), _fields(schema))
    yield "### Sessions of agents\n\nA JSON object a session, in the schema of kv-cache-tester.\n"
    yield _table(("in", "field", "meaning"), SESSION_FIELDS)
    yield f"### Tables\n\nCSV without blocks. A prompt is cut into {BLOCK_TOKENS}-token blocks of its own.\n"
    columns = [(one.name, one.time, one.input_tokens, one.output_tokens) for one in PUBLISHED]
    yield _table(("format", "arrival", "tokens of the prompt", "tokens of the answer"), columns)


def _fields(schema: Schema) -> Iterator[tuple[str, str, str]]:
    for name, meaning in FIELDS.items():
        if name in schema.required | schema.optional:
            yield f"`{name}`", "yes" if name in schema.required else "no", meaning


def _shapes() -> Iterator[str]:
    own = [one for one in EVERY_SHAPE.values() if one.name not in ADVERSARIAL and one.name not in FAN_IN]
    kinds = (
        (
            "Of one service",
            own,
            "`services` is for comparing policies; `make run` and scenarios take the others.",
        ),
        (
            "Made to mislead policies",
            list(ADVERSARIAL.values()),
            f"Policies alone are compared on these. A request asks for one chain of {CHAIN_BLOCKS} blocks. "
            f"HOT_BLOCKS is {HOT_BLOCKS:,}, and a pool of about that size has the hardest time.",
        ),
        (
            "Many readers of the same",
            [EVERY_SHAPE[name] for name in FAN_IN],
            "An episode is a request that computes a prefix, its writer, and readers of that prefix.",
        ),
    )
    for title, shapes, text in kinds:
        yield f"### {title}\n\n{text}\n"
        yield _table(
            ("shape", "what it is", "requests/s", "prompt", "answer", "again"), map(_figures, shapes)
        )
    yield "#### Parameters\n\nThey stand behind the name: `SHAPE=swarm:sub_agents=64,within_ms=50`.\n"
    names = list(LIMITS)
    yield _table(("shape", *(f"`{name}`" for name in names)), map(_parameters, FAN_IN.values()))
    yield _table(("parameter", "from", "to", "meaning"), map(_parameter, names))
    sources = [(f"`{one.name}`", one.source) for one in FAN_IN.values()]
    yield _table(("shape", "where its figures are from"), sources)


def _figures(shape: Shape) -> tuple[str, ...]:
    found = describe(generate(shape.name, requests=REQUESTS))
    doc = "" if shape.name in FAN_IN else " ".join((shape.sessions.__doc__ or "").split())
    what = doc.removeprefix("Yield ") or f"{shape.what}."
    return (
        f"`{shape.name}`",
        f"{what[0].upper()}{what[1:]}",
        f"{shape.requests_per_s:g}",
        f"{found.input_tokens / found.requests:,.0f}",
        f"{found.output_tokens / found.requests:,.0f}",
        f"{found.repeated:.0%}",
    )


def _parameters(one: FanIn) -> tuple[str, ...]:
    values = (f"{getattr(one, name):g}" for name in LIMITS)
    readers, *rest = values
    return (f"`{one.name}`", f"`{one.readers_are}`: {readers}", *rest)


MEANINGS: Final[Mapping[str, str]] = {
    "readers": "readers of an episode; each shape has a name of its own for it",
    "within_ms": "time over which readers are spread evenly at random",
    "lead_ms": "time from the writer's answer to the first reader; in an open loop, from its arrival",
    "common_tokens": "beginning of the prompt that all episodes share",
    "prefix_tokens": "what follows and is the same for one episode, median",
    "own_tokens": "what follows in each reader's prompt, median",
    "output_tokens": "an answer, median",
}
"""Meanings of the parameters of an episode."""


def _parameter(name: str) -> tuple[str, ...]:
    least, most = LIMITS[name]
    return f"`{name}`", f"{least:,}", f"{most:,}", MEANINGS[name]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
