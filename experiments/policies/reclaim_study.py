"""`make policies RECLAIM=yes`: whether evicted blocks are worth sending to homes that forget (`reclaim.py`).

One replica of each block, at homes that forget; on fast links, on links of a tenth, and on SSDs slower than
links. Long chains are looked at by themselves, too: there a block that is lost takes most along with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import mean

from rich.console import Console
from rich.table import Table

from experiments.intervals import Interval, mean_interval
from experiments.parallel import run_all
from experiments.policies.options import Options
from experiments.policies.pools import make_reuse
from experiments.policies.reclaim import MODES, Homes, Spent, spend
from experiments.policies.stores import STORES
from experiments.policies.written import write_json
from experiments.run.result import revision
from workload.cost import DEFAULT_LINK_BIT_S, CostModel
from workload.trace import Trace

HOMES_PER_POOL = (1, 4, 16)
"""Blocks that all storage nodes keep together, in sizes of the pool."""
SLOW_SSD_BYTES_S = 3e9
"""One drive for all that a storage node is asked for; the link takes 25e9."""
MEDIA: tuple[tuple[float, float | None], ...] = (
    (DEFAULT_LINK_BIT_S, None),
    (DEFAULT_LINK_BIT_S / 10, None),
    (DEFAULT_LINK_BIT_S, SLOW_SSD_BYTES_S),
)
"""Rates of a home's link, and of its SSD where it keeps blocks there."""
DEEP_BLOCKS = 32
"""Requests of so many blocks and more are long."""
DEEP_SHARE = 0.1
"""Of a trace's requests at least so many must be long for them to be looked at by themselves."""


@dataclass(frozen=True)
class _Job:
    group: str
    number: int
    blocks: int
    homes_blocks: int
    link_bit_s: float
    ssd_bytes_s: float | None
    mode: str


@dataclass(frozen=True, slots=True)
class Row:
    """One way to treat evicted blocks, mean of a shape's traces; against dropping them."""

    trace: str
    blocks: int
    homes_blocks: int
    """That all homes keep together."""
    link_gbit_s: float
    ssd_gbyte_s: float | None
    mode: str
    waited_s: float
    """What requests waited for computing and fetching."""
    saved: Interval
    """Part of what requests wait for when evicted blocks are dropped."""
    saved_s: Interval
    link_s: Interval
    """Of links, by blocks that were sent home: nobody waits for it."""
    sent: float
    """Blocks."""
    stranded: float
    """Blocks that were computed because one before them was lost."""
    stranded_s: float
    """Part of `waited_s` that this took."""


def deep(trace: Trace) -> Trace | None:
    """The long requests of a trace, if there are enough."""
    requests = tuple(request for request in trace.requests if len(request.blocks) >= DEEP_BLOCKS)
    if len(requests) < DEEP_SHARE * len(trace.requests):
        return None
    return replace(trace, name=f"{trace.name}, from {DEEP_BLOCKS} blocks on", requests=requests)


def run_reclaim(
    console: Console,
    options: Options,
    traces: Sequence[Trace],
    cost: CostModel,
    progress: Callable[[int], Callable[[], None]],
) -> None:
    """Replay all, print a table for each way, and write `reclaim.json`."""
    groups = _groups(options, traces)
    jobs = [
        _Job(group, number, blocks, homes * blocks, *media, mode)
        for group, members in groups.items()
        for blocks in options.blocks
        for media in MEDIA
        for homes in HOMES_PER_POOL
        for mode in MODES
        for number in range(len(members))
    ]

    def run(job: _Job) -> Spent:
        trace = groups[job.group][job.number]
        policy = make_reuse(job.blocks, trace, cost, link_bit_s=job.link_bit_s)
        homes = Homes(max(1, job.homes_blocks // STORES), job.link_bit_s, job.ssd_bytes_s)
        return spend(trace, policy, homes, job.mode, cost)

    done = dict(zip(jobs, run_all(run, jobs, options.processes, progress(len(jobs))), strict=True))
    rows = [_row(jobs_of_one, done) for jobs_of_one in _by_row(jobs)]
    print_reclaim(console, rows)
    write_json(
        options.results / "reclaim.json",
        {"revision": revision(), **options.unusual(), "rows": [asdict(row) for row in rows]},
    )


def _groups(options: Options, traces: Sequence[Trace]) -> dict[str, list[Trace]]:
    groups = {trace.name: [trace] for trace in traces}
    if options.trace is None:
        seeds = range(options.seed, options.seed + options.seeds)
        groups = {shape: [options.draw(shape, n) for n in seeds] for shape in options.shapes}
    for name, members in list(groups.items()):
        longs = [long for member in members if (long := deep(member)) is not None]
        if len(longs) == len(members):
            groups[f"{name}, from {DEEP_BLOCKS} blocks on"] = longs
    return groups


def _by_row(jobs: Sequence[_Job]) -> list[list[_Job]]:
    rows: dict[_Job, list[_Job]] = {}
    for job in jobs:
        rows.setdefault(replace(job, number=0), []).append(job)
    return list(rows.values())


def _row(jobs: Sequence[_Job], done: Mapping[_Job, Spent]) -> Row:
    one, found = jobs[0], [done[job] for job in jobs]
    dropped = [done[replace(job, mode=MODES[0])] for job in jobs]
    saved_s = [drop.waited_s - spent.waited_s for drop, spent in zip(dropped, found, strict=True)]
    return Row(
        one.group,
        one.blocks,
        one.homes_blocks,
        one.link_bit_s / 1e9,
        None if one.ssd_bytes_s is None else one.ssd_bytes_s / 1e9,
        one.mode,
        mean(spent.waited_s for spent in found),
        mean_interval([s / max(1e-9, drop.waited_s) for s, drop in zip(saved_s, dropped, strict=True)]),
        mean_interval(saved_s),
        mean_interval([spent.send_s for spent in found]),
        mean(spent.sent for spent in found),
        mean(spent.stranded for spent in found),
        mean(spent.stranded_s for spent in found),
    )


def print_reclaim(console: Console, rows: Sequence[Row]) -> None:
    """A table for each way of treating evicted blocks but dropping them."""
    dropped = {_place(row): row for row in rows if row.mode == MODES[0]}
    for mode in MODES[1:]:
        table = Table(title=f"{mode}: what requests wait for (computing, fetching), against dropping; 95 %")
        for column in (
            "trace",
            "pool",
            "all homes",
            "Gbit/s",
            "SSD GB/s",
            "dropping",
            "saved",
            "saved s",
            "link s",
            "sent",
            "stranded, dropping",
            "stranded",
        ):
            table.add_column(column, justify="left" if column == "trace" else "right")
        for row in rows:
            if row.mode != mode:
                continue
            drop = dropped[_place(row)]
            table.add_row(
                row.trace,
                f"{row.blocks:,}",
                f"{row.homes_blocks:,}",
                f"{row.link_gbit_s:g}",
                "" if row.ssd_gbyte_s is None else f"{row.ssd_gbyte_s:g}",
                f"{drop.waited_s:.1f} s",
                f"{100 * row.saved:+.2f} %",
                f"{row.saved_s:+.2f}",
                f"{row.link_s:.2f}",
                f"{row.sent:,.0f}",
                f"{drop.stranded:,.0f}, {drop.stranded_s:.1f} s",
                f"{row.stranded:,.0f}, {row.stranded_s:.1f} s",
            )
        console.print(table)
    console.print(
        "link s: of links to homes, by blocks sent there; nobody waits for that. stranded: blocks computed "
        "although the pool or a home held them, because one before them was lost.",
        highlight=False,
        soft_wrap=True,
    )


def _place(row: Row) -> tuple[str, int, int, float, float | None]:
    return row.trace, row.blocks, row.homes_blocks, row.link_gbit_s, row.ssd_gbyte_s
