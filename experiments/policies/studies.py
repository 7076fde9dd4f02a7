"""What `make policies` does besides the usual tables, but for LIVE and RECLAIM: CROSS, BOUND and EXPLAIN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rich.console import Console
from rich.table import Table

from experiments.parallel import run_all
from experiments.policies.bound import accesses_of, upper_bound_s
from experiments.policies.cross import BASELINES, cross, quarters_of
from experiments.policies.cross_tables import print_cross, write_cross
from experiments.policies.explain import explain_log, explain_trace
from experiments.policies.kept import generated
from experiments.policies.options import Options
from experiments.policies.pools import BELADY, make_pool
from experiments.policies.replay import replay
from experiments.run.result import revision
from workload.cost import CostModel
from workload.shapes import COMPARED_SHAPES
from workload.trace import Trace

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
    shapes = tuple(COMPARED_SHAPES) if options.shapes_are_default else options.shapes
    seeds, trace = range(options.seed, options.seed + options.seeds), options.load_file()
    drawn = [
        generated(shape, seed, options.requests, options.block_tokens) for shape in shapes for seed in seeds
    ]
    members = [*drawn, *quarters_of(trace, others=options.others)]
    done = progress(len(members))
    folder = options.results / "cross"
    held = cross(members, options.blocks, cost, options.processes, done, folder, options.links)
    write_cross(options.results / "cross.json", held, {"revision": revision(), **options.unusual()})
    print_cross(console, held)
    if trace is not None:
        of = (
            "what the other quarters tell, and mixes of drawn services"
            if options.others
            else "mixes of drawn services"
        )
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
        saved_s = replay(trace, job.what, job.blocks, pool, cost, options.links).saved_s
        own_cost = replace(cost, block_tokens=trace.block_tokens)
        if job.what != BELADY:
            return saved_s, 0.0
        return saved_s, upper_bound_s(accesses_of(trace, own_cost, options.links), job.blocks, saved_s)

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


def run_explain(console: Console, options: Options, traces: Sequence[Trace], cost: CostModel) -> None:
    """The story of one block: at each size, or in the live pool that a log is of; raises ExplainError."""
    if options.events is not None:
        explain_log(console, options.events, options.explain, options.blocks, cost)
        return
    for blocks in options.blocks:
        for trace in traces:
            explain_trace(console, trace, options.explain, blocks, cost, options.links)
