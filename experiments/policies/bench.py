"""Block accesses a second of the reuse-value policy, in Python on one core.

    python -m experiments.policies.bench

Time is CPU time of this process, so that what else runs on the machine counts less. TRACE and BLOCKS are
as in `make policies`; without a trace, the generated chat shape.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console

from experiments.policies.options import OptionError, parse_options
from experiments.policies.pools import Pool, make_pool
from workload.cost import CostModel
from workload.generate import GenerateError
from workload.trace import Trace, TraceError

WANTED_PER_S = 200_000


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
    console = Console()
    try:
        options = parse_options(arguments)
        trace = replace(options, shapes=("chat",)).load()[0]
    except (OptionError, TraceError, GenerateError) as error:
        console.print(f"[bold red]error:[/] {error}", highlight=False, soft_wrap=True)
        return 2
    slowest = float("inf")
    for blocks in options.blocks:
        per_s = accesses_per_s(trace, make_pool("reuse", blocks, trace, CostModel()))
        slowest = min(slowest, per_s)
        console.print(f"{trace.name}: {blocks:>6,} blocks {per_s:>9,.0f} block accesses/s")
    console.print(f"slowest {slowest:,.0f}, wanted {WANTED_PER_S:,}")
    return 0 if slowest >= WANTED_PER_S else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
