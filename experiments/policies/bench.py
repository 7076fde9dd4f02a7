"""Block accesses a second of the reuse-value policy, in Python on one core, beside LRU's in the same run.

    python -m experiments.policies.bench

Time is CPU time of this process, so that what else runs on the machine counts less. TRACE and BLOCKS are
as in `make policies`; without a trace, the generated chat shape.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace

from commands.command import Screen, run_command
from experiments.policies.options import PoliciesOptions, parse_options
from experiments.policies.pools import Pool, make_pool
from workload.cost import CostModel
from workload.trace import Trace

WANTED_PER_S = 200_000
TRIES = 3
"""Of which the fastest counts: what else runs on the machine makes the others slower."""


def accesses_per_s(trace: Trace, pool: Pool) -> float:
    """Play a trace through a pool as fast as it goes."""
    begin_s = time.process_time()
    for request in trace.requests:
        now_s, chain = request.arrival_s, request.blocks
        for depth, block in enumerate(chain):
            pool.asked(block, now_s, depth, chain)
    return trace.accesses / (time.process_time() - begin_s)


def main(arguments: Sequence[str]) -> int:
    """The command; 1 where the policy is slower than wanted."""
    return run_command(arguments, parse_options, _run, interrupted="interrupted")


def _run(screen: Screen, options: PoliciesOptions) -> int:
    trace = replace(options, shapes=("chat",)).load()[0]
    slowest = float("inf")
    for blocks in options.blocks:
        lru_per_s, per_s = (
            max(accesses_per_s(trace, make_pool(name, blocks, trace, CostModel())) for _ in range(TRIES))
            for name in ("lru", "reuse")
        )
        slowest = min(slowest, per_s)
        screen.show(
            f"{trace.name}: {blocks:>6,} blocks {per_s:>9,.0f} block accesses/s, "
            f"{per_s / lru_per_s:.2f} of LRU's {lru_per_s:,.0f}"
        )
    screen.show(f"slowest {slowest:,.0f}, wanted {WANTED_PER_S:,}")
    return 0 if slowest >= WANTED_PER_S else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
