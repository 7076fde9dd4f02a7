"""What traces tell of reuse beforehand: counts for `controller/policies/reuse/reuse_prior.py`.

    SHAPES=services SEED=1101 SEEDS=96 REQUESTS=6000 TRACE=conversation_trace.jsonl RESULTS=folder \
        python -m experiments.policies.known

writes `folder/known.npz` with the counts of that trace and of those generated ones, and by which requests the
trace and pieces of it are known (`beforehand.py`), `folder/conversation_trace_requests.txt`. Nothing fades
meanwhile.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from functools import partial, reduce

from rich.progress import TimeRemainingColumn

from commands.command import Screen, run_command
from commands.parallel import run_all
from controller.policies.reuse.reuse import Reuse
from controller.policies.reuse.reuse_parts import Parts, Tuning
from controller.policies.reuse.reuse_prior import KNOWN, Counts, write_counts
from experiments.policies.beforehand import marks
from experiments.policies.options import Options, parse_options
from experiments.policies.pools import PolicyPool
from workload.cost import CostModel
from workload.generate import name_of
from workload.trace import Trace

BLOCKS = 1000
"""Of the pool that learns. What is counted does not depend on what it holds."""


def counts_of(trace: Trace) -> Counts:
    """All reuse and exposure of a trace, from an empty pool."""
    parts = Parts(experts=False, known=False)
    cost = CostModel(block_tokens=trace.block_tokens)
    policy = Reuse(BLOCKS, cost, parts, tuning=Tuning(fade_ticks=math.inf))
    pool = PolicyPool(policy)
    for request in trace.requests:
        for depth, block in enumerate(request.blocks):
            pool.asked(block, request.arrival_s, depth, request.blocks)
    return policy.core.counts()


def of_others(parts: Sequence[Trace]) -> list[list[Counts]]:
    """For each part of a trace what all others tell; nothing where nothing comes again in them."""
    counts = [counts_of(part) for part in parts]
    return [_sum([*counts[:n], *counts[n + 1 :]]) for n in range(len(counts))]


def _sum(counts: Sequence[Counts]) -> list[Counts]:
    return [reduce(Counts.plus, counts)] if any(one.reuses.any() for one in counts) else []


def main(arguments: Sequence[str]) -> int:
    """The command."""
    return run_command(arguments, parse_options, _run, interrupted="interrupted")


def _run(screen: Screen, options: Options) -> int:
    seeds = range(options.seed, options.seed + options.seeds)
    traces: dict[str, Callable[[], Trace]] = {
        name_of(shape, seed): partial(options.draw, shape, seed) for shape in options.shapes for seed in seeds
    }
    whole = options.load_file()
    if whole is not None and options.trace is not None:
        traces[options.trace.stem] = lambda: whole
    with screen.progress(TimeRemainingColumn()) as progress:
        task = progress.add_task("counting", total=len(traces))
        counted = run_all(
            lambda name: counts_of(traces[name]()),
            list(traces),
            options.processes,
            lambda: progress.advance(task),
        )
    options.results.mkdir(parents=True, exist_ok=True)
    path = options.results / KNOWN.name
    # Where nothing comes again nothing is told of what does.
    write_counts(path, {name: one for name, one in zip(traces, counted, strict=True) if one.reuses.any()})
    screen.say(f"{sum(counts.reuses.sum() for counts in counted):,.0f} reuses: {path}")
    if whole is not None and options.trace is not None:
        requests = options.results / f"{options.trace.stem}_requests.txt"
        found = sorted(set(marks(whole.requests)))
        requests.write_text("".join(f"{mark}\n" for mark in found))
        screen.say(f"what it is known by: {requests}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
