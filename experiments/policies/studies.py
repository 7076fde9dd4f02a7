"""What `make policies` does besides the usual tables, but for LIVE: CROSS, BOUND, RECLAIM and EXPLAIN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rich.console import Console
from rich.table import Table

from experiments.parallel import run_all
from experiments.policies.bound import accesses_of, upper_bound_s
from experiments.policies.cross import BASELINES, cross, members_of, print_cross, write_cross
from experiments.policies.explain import explain_log, explain_trace
from experiments.policies.options import Options
from experiments.policies.pools import BELADY, make_pool, make_reuse
from experiments.policies.reclaim import MODES, spend
from experiments.policies.replay import replay
from experiments.policies.stores import STORES
from workload.cost import DEFAULT_LINK_BIT_S, CostModel
from workload.shapes import ALL_SHAPES
from workload.trace import Trace, load_trace

Progress = Callable[[int], Callable[[], None]]
"""Given the number of jobs, what to call after each."""


@dataclass(frozen=True)
class Job:
    """A trace by its place and a size; what else it takes to replay it."""

    trace: int
    blocks: int
    what: str


def run_cross(console: Console, options: Options, cost: CostModel, progress: Progress) -> None:
    """Leave each family of traces out in turn."""
    shapes = tuple(ALL_SHAPES) if options.shapes_are_default else options.shapes
    trace = load_trace(options.trace) if options.trace else None
    members = members_of(options.seed, options.seeds, options.requests, trace, shapes, others=options.others)
    done = progress(len(members))
    held = cross(members, options.blocks, cost, options.processes, done, options.results / "cross")
    write_cross(options.results / "cross.json", held)
    print_cross(console, held)
    if trace is not None:
        of = "what the other quarters tell" if options.others else "nothing"
        console.print(f"of each quarter of {trace.name} reuse knows beforehand: {of}", highlight=False)


def run_bound(
    console: Console, options: Options, traces: Sequence[Trace], cost: CostModel, progress: Progress
) -> None:
    """Seconds saved by the best baseline, by reuse and by Belady, and what no policy exceeds."""
    names = ("reuse", BELADY, *BASELINES)
    jobs = [Job(n, blocks, name) for n in range(len(traces)) for blocks in options.blocks for name in names]

    def run(job: Job) -> tuple[float, float]:
        trace = traces[job.trace]
        pool = make_pool(job.what, job.blocks, trace, cost)
        saved_s = replay(trace, job.what, job.blocks, pool, cost).saved_s
        own_cost = replace(cost, block_tokens=trace.block_tokens)
        if job.what != BELADY:
            return saved_s, 0.0
        return saved_s, upper_bound_s(accesses_of(trace, own_cost), job.blocks, saved_s)

    done = dict(zip(jobs, run_all(run, jobs, options.processes, progress(len(jobs))), strict=True))
    table = Table(title="seconds saved, and what no policy exceeds")
    for column in ("trace", "blocks", "best baseline", "reuse", "belady", "upper bound", "reuse / bound"):
        table.add_column(column, justify="left" if column == "trace" else "right")
    for number, trace in enumerate(traces):
        for blocks in options.blocks:
            best = max(BASELINES, key=lambda name: done[Job(number, blocks, name)][0])
            ours_s = done[Job(number, blocks, "reuse")][0]
            belady_s, bound_s = done[Job(number, blocks, BELADY)]
            table.add_row(
                trace.name,
                f"{blocks:,}",
                f"{done[Job(number, blocks, best)][0]:.0f} {best}",
                f"{ours_s:.0f}",
                f"{belady_s:.0f}",
                f"{bound_s:.0f}",
                f"{ours_s / bound_s:.2f}" if bound_s else "",
            )
    console.print(table)


HOMES_PER_POOL = (1, 4, 16)
"""Blocks that all storage nodes keep together, in sizes of the pool."""
LINKS_BIT_S = (DEFAULT_LINK_BIT_S, DEFAULT_LINK_BIT_S / 10)


def run_reclaim(
    console: Console, options: Options, traces: Sequence[Trace], cost: CostModel, progress: Progress
) -> None:
    """Seconds spent with homes that forget, by what becomes of evicted blocks."""
    jobs = [
        (number, blocks, homes, link_bit_s, mode)
        for number in range(len(traces))
        for blocks in options.blocks
        for homes in HOMES_PER_POOL
        for link_bit_s in LINKS_BIT_S
        for mode in MODES
    ]

    def run(job: tuple[int, int, int, float, str]) -> tuple[float, int]:
        number, blocks, homes, link_bit_s, mode = job
        policy = make_reuse(blocks, traces[number], cost, link_bit_s=link_bit_s)
        spent = spend(traces[number], policy, max(1, homes * blocks // STORES), mode, cost, link_bit_s)
        return spent.total_s, spent.sent

    done = dict(zip(jobs, run_all(run, jobs, options.processes, progress(len(jobs))), strict=True))
    table = Table(title="seconds to compute, fetch and send blocks; saved against drop, and blocks sent")
    for column in ("trace", "pool", "all homes", "Gbit/s", *MODES):
        table.add_column(column, justify="left" if column == "trace" else "right")
    for number, blocks, homes, link_bit_s, mode in jobs:
        if mode != MODES[0]:
            continue
        of_modes = [done[number, blocks, homes, link_bit_s, name] for name in MODES]
        drop_s = of_modes[0][0]
        table.add_row(
            traces[number].name,
            f"{blocks:,}",
            f"{homes * blocks:,}",
            f"{link_bit_s / 1e9:g}",
            f"{drop_s:.0f} s",
            *(f"{1 - total_s / drop_s:+.1%}, {sent:,}" for total_s, sent in of_modes[1:]),
        )
    console.print(table)


def run_explain(console: Console, options: Options, traces: Sequence[Trace], cost: CostModel) -> None:
    """The story of one block: at each size, or in the live pool that a log is of; raises ExplainError."""
    if options.events is not None:
        explain_log(console, options.events, options.explain, options.blocks, cost)
        return
    for blocks in options.blocks:
        for trace in traces:
            explain_trace(console, trace, options.explain, blocks, cost)
