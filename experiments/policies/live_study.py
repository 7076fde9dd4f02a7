"""`make policies LIVE=yes`: what it costs that a policy hears only what a switch tells, and how
`reuse` stands to other policies that hear the same (`live_baselines.py`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import mean

from rich.console import Console

from controller.policies.reuse import Reuse
from experiments.intervals import Interval, mean_interval
from experiments.parallel import run_all
from experiments.policies.live import ALL, TELLINGS, Replayed, replay_live
from experiments.policies.live_baselines import TOLD, lead, print_leads
from experiments.policies.live_tables import print_sizes
from experiments.policies.options import Options
from experiments.policies.told import Telling
from experiments.policies.written import write_json
from experiments.run.result import revision
from workload.cost import CostModel
from workload.trace import Trace

Progress = Callable[[int], Callable[[], None]]


@dataclass(frozen=True)
class _Job:
    group: str
    number: int
    blocks: int
    telling: Telling
    policy: str = Reuse.name


def run_live(
    console: Console, options: Options, traces: Sequence[Trace], cost: CostModel, progress: Progress
) -> None:
    """The policy told all of a replay, and told what a switch tells, with each loss mended in turn; and other
    policies told what a switch tells."""
    groups = {trace.name: [trace] for trace in traces}
    if options.trace is None:
        seeds = range(options.seed, options.seed + options.seeds)
        groups = {shape: [options.draw(shape, seed) for seed in seeds] for shape in options.shapes}
    baselines = [name for name in options.live_policies if name != Reuse.name]
    jobs = [
        _Job(group, number, blocks, telling, policy)
        for group, members in groups.items()
        for number in range(len(members))
        for blocks in options.blocks
        for telling, policy in (
            *((telling, Reuse.name) for telling in TELLINGS),
            *((telling, name) for telling in TOLD for name in baselines),
        )
    ]

    def run(job: _Job) -> Replayed:
        trace = groups[job.group][job.number]
        return replay_live(trace, job.blocks, job.telling, cost, options.seed, job.policy, options.links)

    done = dict(zip(jobs, run_all(run, jobs, options.processes, progress(len(jobs))), strict=True))
    rows = []
    for blocks in options.blocks:
        for telling in TELLINGS:
            for group, members in groups.items():
                found = [done[_Job(group, number, blocks, telling)] for number in range(len(members))]
                whole = [done[_Job(group, number, blocks, ALL)] for number in range(len(members))]
                rows.append(Row(group, blocks, telling.name, *_means(found, whole)))
    print_live(console, rows)

    def saved_s(group: str, blocks: int, telling: Telling, policy: str) -> list[float]:
        numbers = range(len(groups[group]))
        return [done[_Job(group, number, blocks, telling, policy)].saved_s for number in numbers]

    leads = [
        lead(
            group,
            blocks,
            telling.name,
            saved_s(group, blocks, telling, Reuse.name),
            {name: saved_s(group, blocks, telling, name) for name in baselines},
        )
        for blocks in options.blocks
        for telling in TOLD
        for group in (groups if baselines else ())
    ]
    print_leads(console, leads)
    write_json(
        options.results / "live.json",
        {
            "revision": revision(),
            **options.unusual(),
            "rows": [asdict(row) for row in rows],
            "against_baselines": [asdict(one) for one in leads],
        },
    )


@dataclass(frozen=True, slots=True)
class Row:
    """What one way of telling gave, mean of a shape's traces."""

    trace: str
    blocks: int
    told: str
    saved: Interval
    """As a share of what a policy saves that is told all at once."""
    hits: float
    """The same of block hits."""
    reports_per_s: float
    fills: float
    delayed: float
    """What requests waited longer because of fills, as a share of what was saved."""


def _means(
    found: Sequence[Replayed], whole: Sequence[Replayed]
) -> tuple[Interval, float, float, float, float]:
    pairs = list(zip(found, whole, strict=True))
    saved_s = max(1e-9, sum(one.saved_s for one in found))
    return (
        mean_interval([one.saved_s / max(1e-9, other.saved_s) for one, other in pairs]),
        mean(one.block_hit / max(1e-9, other.block_hit) for one, other in pairs),
        mean(one.reports_per_s for one in found),
        mean(one.fills for one in found),
        sum(one.fill_delay_s for one in found) / saved_s,
    )


def print_live(console: Console, rows: Sequence[Row]) -> None:
    """What is saved told as live, and what it costs."""
    print_sizes(
        console,
        rows,
        "seconds saved, as a share of what a policy saves that is told all at once (mean, 95 %); blocks that "
        "homes sent for the pool; what those delayed, of what was saved",
        _cell,
        no_wrap=True,
    )


def _cell(row: Row) -> str:
    interval = f" ±{row.saved.half:.2f}" if row.saved.half < float("inf") else ""
    fills = f", {row.fills:,.0f}, {row.delayed:.2f}" if row.fills else ""
    return f"{row.saved.mean:.3f}{interval}{fills}"
