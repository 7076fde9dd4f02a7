"""make claims: simulate what merging and pools are worth if many readers need the same blocks.

Each claim compares two systems on the same traffic, seed by seed. The command writes
results/claims/summary.json, claims.md and a picture for each kind of traffic. With TRACE, it simulates
recorded sessions of agents too."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from math import exp, log
from pathlib import Path
from typing import Annotated, Any

from pydantic.dataclasses import dataclass as declared

from commands.command import Screen, run_command
from commands.cores import whole_cores
from commands.declarations import DECLARED, OneOf, Variable, Within
from commands.intervals import Interval, mean_interval
from commands.options import read
from commands.parallel import run_all
from commands.trace_options import TraceOptions
from emulator.result import revision
from experiments.claims import ranks
from experiments.claims.cases import CLAIMS, SYSTEMS, WORKS, Work, agents_works, scenario
from experiments.claims.report import Claim, draw, write_table
from scenario import Scenario
from simulator.checks import check
from simulator.compiled import engine
from simulator.simulation import simulate

FIGURES = (
    "ttft_mean_s",
    "ttft_p99_s",
    "group_ttft_s",
    "sessions_per_hour",
    "sent_gb",
    "cache_dollars_per_hour",
)
Figures = Mapping[str, float]


@declared(frozen=True, slots=True, kw_only=True, config=DECLARED)
class ClaimsOptions(TraceOptions):
    """Options of `make claims`, which simulates merging and pools for many readers of the same blocks."""

    traffic: tuple[Annotated[str, OneOf(WORKS)], ...] = tuple(WORKS)
    """Generated traffic to simulate."""
    systems: tuple[Annotated[str, OneOf(SYSTEMS)], ...] = tuple(SYSTEMS)
    """Systems to simulate; a claim needs both of its two."""
    requests: Annotated[int, Within(20, 100_000)] = 170
    """Number of requests of each simulation."""
    seed: Annotated[int, Within(0, 2**31)] = 1
    """First seed."""
    seeds: Annotated[int, Within(2, 31)] = 8
    """Number of simulations of each case, each with a seed of its own."""
    processes: Annotated[int, Within(1, 256), Variable("JOBS")] = min(8, whole_cores())
    """Number of simulations that run at once."""
    results: Path = Path("results/claims")
    """Folder for the results."""


def main(arguments: Sequence[str]) -> int:
    """Run the experiment. Returns exit code 0, or 2 for bad input."""

    def parse(given: Sequence[str]) -> ClaimsOptions:
        return read(ClaimsOptions, given, "weir claims", __doc__ or "")

    return run_command(arguments, parse, _run, interrupted="interrupted")


def _run(screen: Screen, options: ClaimsOptions) -> int:
    works = {name: WORKS[name] for name in options.traffic} | agents_works(options)
    measured = compute(works, options, screen)
    claims = [
        claim(work, one, other, measured)
        for work in works.values()
        for one, other in CLAIMS
        if {one, other} <= set(options.systems)
    ]
    options.results.mkdir(parents=True, exist_ok=True)
    table = write_table(options.results / "claims.md", claims)
    for work in works.values():
        means = {name: _means(measured[work.name, name]) for name in options.systems}
        draw(options.results, work, means)
    (options.results / "ranks.md").write_text("\n".join(ranks.table()) + "\n")
    _write(options.results / "summary.json", options, claims, measured)
    screen.say(f"Written to {table}")
    return 0


def compute(
    works: Mapping[str, Work], options: ClaimsOptions, screen: Screen
) -> dict[tuple[str, str], list[Figures]]:
    """Simulate all; returns figures by traffic and system, in order of seeds."""
    cells = [(work, name) for work in works for name in options.systems]
    jobs = [(*cell, seed) for cell in cells for seed in range(options.seed, options.seed + options.seeds)]

    def scenario_of(job: tuple[str, str, int]) -> Scenario:
        chosen, name, seed = works[job[0]], job[1], job[2]
        trace = {} if chosen.name in WORKS else options.scenario_fields()
        return scenario(chosen, name, options.requests, seed, trace, options.block_tokens)

    for cell in cells:
        check(scenario_of((*cell, options.seed)))
    with screen.progress() as progress:
        task = progress.add_task("simulating", total=len(jobs))
        done = run_all(
            lambda job: _figures(simulate(scenario_of(job))),
            jobs,
            options.processes,
            lambda: progress.advance(task),
        )
    found: dict[tuple[str, str], list[Figures]] = {cell: [] for cell in cells}
    for (traffic, name, _), figures in zip(jobs, done, strict=True):
        found[traffic, name].append(figures)
    return found


def claim(work: Work, one: str, other: str, measured: Mapping[tuple[str, str], Sequence[Figures]]) -> Claim:
    """Return the claim of system `one` over system `other`, from ratios of runs with the same seed."""
    ours, theirs = measured[work.name, one], measured[work.name, other]

    def ratio(name: str) -> Interval:
        pairs = [(mine[name], its[name]) for mine, its in zip(ours, theirs, strict=True)]
        logs = mean_interval([log(a / b) if a > 0 and b > 0 else 0.0 for a, b in pairs])
        return Interval(exp(logs.mean), exp(logs.low), exp(logs.high))

    cost = [_means(side)["cache_dollars_per_hour"] for side in (ours, theirs)]
    return Claim(
        work,
        one,
        other,
        SYSTEMS[one].memory,
        {name: ratio(name) for name in FIGURES[:5]},
        cost[0],
        cost[1],
        len(ours),
    )


def _means(figures: Sequence[Figures]) -> dict[str, float]:
    return {name: sum(one[name] for one in figures) / len(figures) for name in FIGURES}


def _figures(result: Any) -> Figures:
    return {
        "ttft_mean_s": result.ttft_s.mean,
        "ttft_p99_s": result.ttft_s.p99,
        "group_ttft_s": result.group_ttft_s.mean,
        "sessions_per_hour": result.sessions_per_hour,
        "sent_gb": result.storage_egress_bytes / 1e9,
        "cache_dollars_per_hour": result.cache_dollars_per_hour,
    }


def _write(
    path: Path,
    options: ClaimsOptions,
    claims: Sequence[Claim],
    measured: Mapping[tuple[str, str], Sequence[Figures]],
) -> None:
    record = {
        "revision": revision(),
        "engine": engine(),
        "seed": options.seed,
        "seeds": options.seeds,
        "requests": options.requests,
        "claims": [one.record() for one in claims],
        "cells": [
            {"traffic": traffic, "system": name, "runs": list(figures)}
            for (traffic, name), figures in measured.items()
        ],
    }
    path.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
