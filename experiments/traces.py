"""weir trace: write a generated trace, or say what a trace holds.

    weir trace generate --shape rag > rag.jsonl     JSON lines in Mooncake's schema; --help lists all shapes
    weir trace describe FILE-OR-FOLDER              its requests, blocks, sharing, and what is odd about it

The exit code is 2 if there is no such word, shape or trace, or if the trace cannot be used.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter
from rich.table import Table

from commands.command import Screen, run_command
from commands.errors import OptionError
from workload.generate import main as generate
from workload.trace import Trace
from workload.trace_files import load_trace

DESCRIBE: Final = "describe"
GENERATE: Final = "generate"


@dataclass(frozen=True, slots=True)
class Described:
    """Figures of a trace."""

    requests: int
    duration_s: float
    block_tokens: int
    input_tokens: int
    """Number of tokens of all prompts together."""
    output_tokens: int
    accesses: int
    """Number of blocks that requests ask for."""
    blocks: int
    """Number of different blocks among them."""
    repeated: float
    """Share of accesses to a block that an earlier request asked for, which an
    unbounded cache would serve."""
    longest_chain: int
    """Number of blocks of the longest request."""
    sessions: int
    """Number of sessions; 0 if the trace does not say which session a request belongs to."""


def describe(trace: Trace) -> Described:
    """Return the figures of a trace as it was recorded."""
    requests = trace.requests
    blocks = Counter(block for request in requests for block in request.blocks)
    accesses = blocks.total()
    return Described(
        requests=len(requests),
        duration_s=trace.duration_s,
        block_tokens=trace.block_tokens,
        input_tokens=sum(request.input_tokens for request in requests),
        output_tokens=sum(request.output_tokens for request in requests),
        accesses=accesses,
        blocks=len(blocks),
        repeated=1 - len(blocks) / accesses if accesses else 0.0,
        longest_chain=trace.longest_chain,
        sessions=len({request.place.session for request in requests if request.place is not None}),
    )


def main(arguments: Sequence[str]) -> int:
    """Run `weir trace` and return the exit code."""
    if arguments[:1] == [GENERATE]:
        return generate(arguments[1:])
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0
    return run_command((), lambda _: _trace(arguments), _show, interrupted="interrupted")


def _trace(arguments: Sequence[str]) -> Trace:
    if arguments[0] != DESCRIBE or len(arguments) != 2:
        argument_text = " ".join(arguments)
        raise OptionError(
            f"weir trace {argument_text}: write weir trace {GENERATE} or weir trace {DESCRIBE} FILE"
        )
    return load_trace(Path(arguments[1]))


def _show(screen: Screen, trace: Trace) -> int:
    for warning in trace.warnings:
        screen.warn(warning, "trace")
    described: dict[str, float] = TypeAdapter(Described).dump_python(describe(trace))
    table = Table(title=f"{trace.name} ({trace.schema.name})", show_header=False)
    for name, value in described.items():
        shown = f"{value:.1%}" if name == "repeated" else f"{value:,.10g}"
        table.add_row(name.replace("_", " "), shown)
    screen.show(table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
