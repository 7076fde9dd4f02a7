"""Proof by leaving out: constants chosen on all families of traces but one, measured on that one.

Families are the generated shapes, the adversarial ones, and the quarters by time of a trace, if one is given.
Each has several members (seeds, or quarters), so a figure has an interval. The best baseline of each member
and size is chosen afterwards, by what it saved there: no online policy could have known it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean

from rich.console import Console
from rich.table import Table

from controller.policies.reuse import Reuse
from controller.policies.reuse_parts import Tuning
from experiments.intervals import mean_interval
from experiments.parallel import run_all
from experiments.policies.pools import BELADY, CACHES, OWN, PolicyPool, make_pool
from experiments.policies.replay import replay
from workload.adversarial import ADVERSARIAL
from workload.cost import CostModel
from workload.generate import generate
from workload.shapes import SHAPES
from workload.trace import Trace

SEEDS = 5
QUARTERS = 4
CANDIDATES = (
    Tuning(),
    Tuning(fade_ticks=1024.0),
    Tuning(prior_reuses=4.0, margin=0.1),
)
BASELINES = tuple(name for name in (*OWN, *CACHES) if name not in ("reuse", BELADY))


@dataclass(frozen=True)
class Member:
    """One trace of a family."""

    family: str
    trace: Trace


@dataclass(frozen=True)
class Run:
    """One replay: a member, a size, and a baseline by name or a candidate by number."""

    member: int
    blocks: int
    contender: str | int


@dataclass(frozen=True)
class Held:
    """What the policy did on a family that its constants were not chosen on, against the best baseline."""

    family: str
    blocks: int
    candidate: int
    saved: float
    """Mean ratio of the seconds saved to the best baseline's."""
    saved_interval: float
    """Half of its 95 % interval."""
    hits: float
    """Mean ratio of the block hits to those of the baseline that hits most."""
    worst: float
    """Least ratio of seconds saved among the members."""
    shipped: float
    """Mean ratio of seconds saved with the constants as they are, whatever was chosen."""
    best: str
    """The baselines that were best."""


def quarters(trace: Trace) -> list[Trace]:
    """A trace in parts of equal time, each from an empty pool."""
    width_s = trace.duration_s / QUARTERS
    parts = []
    for number in range(QUARTERS):
        begin_s = number * width_s
        end_s = math.inf if number == QUARTERS - 1 else begin_s + width_s
        requests = tuple(
            replace(request, arrival_s=request.arrival_s - begin_s)
            for request in trace.requests
            if begin_s <= request.arrival_s < end_s
        )
        if requests:
            parts.append(replace(trace, name=f"{trace.name} quarter {number + 1}", requests=requests))
    return parts


def members_of(seed: int, requests: int, trace: Trace | None, shapes: Iterable[str]) -> list[Member]:
    """All traces, by family."""
    generated = [
        Member(shape, generate(shape, number, requests))
        for shape in shapes
        for number in range(seed, seed + SEEDS)
    ]
    return generated + [Member("trace", part) for part in (quarters(trace) if trace is not None else [])]


def cross(
    members: Sequence[Member],
    sizes: Sequence[int],
    cost: CostModel,
    processes: int,
    done: Callable[[], None],
) -> list[Held]:
    """Replay everything, then leave each family out in turn."""
    jobs = jobs_of(members, sizes)

    def run(job: Run) -> tuple[float, float]:
        trace = members[job.member].trace
        if isinstance(job.contender, str):
            pool = make_pool(job.contender, job.blocks, trace, cost)
        else:
            pool = PolicyPool(Reuse(job.blocks, cost, tuning=CANDIDATES[job.contender]))
        result = replay(trace, str(job.contender), job.blocks, pool, cost)
        return result.saved_s, result.block_hit

    measured = dict(zip(jobs, run_all(run, jobs, processes, done), strict=True))
    families = list(dict.fromkeys(member.family for member in members))
    return [held for family in families for held in _leave_out(family, members, sizes, measured)]


def jobs_of(members: Sequence[Member], sizes: Sequence[int]) -> list[Run]:
    """All replays, what takes longest first."""
    contenders: list[str | int] = [*range(len(CANDIDATES)), *BASELINES]
    return [
        Run(member, size, contender)
        for contender in contenders
        for size in sorted(sizes, reverse=True)
        for member in range(len(members))
    ]


Measured = dict[Run, tuple[float, float]]


def _ratio(measured: Measured, member: int, size: int, candidate: int, measure: int) -> float:
    best = max(measured[Run(member, size, name)][measure] for name in BASELINES)
    ours = measured[Run(member, size, candidate)][measure]
    return ours / best if best > 0 else 1.0


def _leave_out(
    family: str, members: Sequence[Member], sizes: Sequence[int], measured: Measured
) -> Iterable[Held]:
    inside = [number for number, member in enumerate(members) if member.family == family]
    outside = [number for number in range(len(members)) if number not in inside]

    def score(candidate: int) -> float:
        ratios = [_ratio(measured, m, size, candidate, 0) for m in outside for size in sizes]
        return fmean(math.log(max(ratio, 1e-6)) for ratio in ratios) if ratios else 0.0

    chosen = max(range(len(CANDIDATES)), key=score)
    for size in sizes:
        saved = [_ratio(measured, m, size, chosen, 0) for m in inside]
        hits = [_ratio(measured, m, size, chosen, 1) for m in inside]
        mean = mean_interval(saved)
        shipped = fmean(_ratio(measured, member, size, 0, 0) for member in inside)
        best = [_best(measured, member, size) for member in inside]
        names = ", ".join(sorted(set(best)))
        yield Held(family, size, chosen, mean.mean, mean.half, fmean(hits), min(saved), shipped, names)


def _best(measured: Measured, member: int, size: int) -> str:
    """The baseline that saved most."""
    return max(BASELINES, key=lambda name: measured[Run(member, size, name)][0])


def print_cross(console: Console, held: Sequence[Held]) -> None:
    """The table, then what decides."""
    table = Table(title="reuse / best baseline of each trace: constants chosen on all other families")
    for name in (
        "family",
        "blocks",
        "saved s",
        "95 %",
        "worst",
        "block hits",
        "as shipped",
        "best baselines",
        "constants",
    ):
        table.add_column(name, justify="left" if name in ("family", "best baselines") else "right")
    for row in held:
        table.add_row(
            row.family,
            f"{row.blocks:,}",
            f"{row.saved:.3f}",
            f"±{row.saved_interval:.3f}",
            f"{row.worst:.3f}",
            f"{row.hits:.3f}",
            f"{row.shipped:.3f}",
            row.best,
            str(row.candidate),
        )
    console.print(table)
    for number, candidate in enumerate(CANDIDATES):
        console.print(f"constants {number}: {candidate}", highlight=False)
    for name, rows in (
        ("usual shapes", [row for row in held if row.family in SHAPES]),
        ("adversarial shapes", [row for row in held if row.family in ADVERSARIAL]),
        ("trace", [row for row in held if row.family == "trace"]),
    ):
        if rows:
            mean = mean_interval([row.saved for row in rows])
            least = min(rows, key=lambda row: row.saved)
            where = f"{least.family}, {least.blocks:,} blocks"
            console.print(
                f"{name}: {mean.mean:.3f} ±{mean.half:.3f} on average, at worst {least.saved:.3f} "
                f"±{least.saved_interval:.3f} ({where}), {min(row.worst for row in rows):.3f} on a single "
                f"trace; block hits {min(row.hits for row in rows):.3f} at worst",
                highlight=False,
            )


def write_cross(path: Path, held: Sequence[Held]) -> None:
    """All rows as JSON; an interval that is unknown is null."""
    rows = [
        {name: None if value == math.inf else value for name, value in asdict(row).items()} for row in held
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps({"candidates": [asdict(c) for c in CANDIDATES], "held_out": rows}, indent=1) + "\n"
    )
