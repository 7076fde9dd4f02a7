"""What a trace tells of reuse beforehand: counts for `controller/policies/reuse_prior.py`.

    TRACE=conversation_trace.jsonl RESULTS=folder python -m experiments.policies.known

writes `folder/conversation_trace.csv`, and by which requests the trace and pieces of it are known
(`beforehand.py`), `folder/conversation_trace_requests.txt`. Nothing fades meanwhile.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from functools import reduce

from controller.policies.reuse import Reuse
from controller.policies.reuse_parts import Parts, Tuning
from controller.policies.reuse_prior import Counts
from experiments.command import Screen, run_command
from experiments.policies.beforehand import marks
from experiments.policies.options import Options, parse_options
from experiments.policies.pools import PolicyPool
from workload.trace import Trace

BLOCKS = 1000
"""Of the pool that learns. What is counted does not depend on what it holds."""


def counts_of(trace: Trace) -> Counts:
    """All reuse and exposure of a trace, from an empty pool."""
    policy = Reuse(BLOCKS, parts=Parts(experts=False), tuning=Tuning(fade_ticks=math.inf))
    pool = PolicyPool(policy)
    for request in trace.requests:
        for depth, block in enumerate(request.blocks):
            pool.asked(block, request.arrival_s, depth, request.blocks)
    return policy.core.counts()


def of_others(parts: Sequence[Trace]) -> list[Counts | None]:
    """For each part of a trace what all others tell; None where nothing comes again in them."""
    counts = [counts_of(part) for part in parts]
    return [_sum([*counts[:n], *counts[n + 1 :]]) for n in range(len(counts))]


def _sum(counts: Sequence[Counts]) -> Counts | None:
    return reduce(Counts.plus, counts) if any(one.reuses.any() for one in counts) else None


def main(arguments: Sequence[str]) -> int:
    """The command."""
    return run_command(arguments, parse_options, _run, interrupted="interrupted")


def _run(screen: Screen, options: Options) -> int:
    for trace in options.load():
        counts = counts_of(trace)
        name = options.trace.stem if options.trace else trace.name
        path = options.results / f"{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        counts.write(path, f"of {trace.accesses:,} accesses, {len(trace.requests):,} requests of {name}")
        requests = path.with_name(f"{name}_requests.txt")
        requests.write_text("".join(f"{mark}\n" for mark in sorted(set(marks(trace.requests)))))
        screen.say(f"{counts.reuses.sum():,.0f} reuses: {path}, {requests}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
