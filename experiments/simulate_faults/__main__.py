"""make simulate-faults: whole systems with random faults, one after the other, in virtual time.

Each seed is one run: 4 nodes, 4 storage nodes or none, one switch or four, a controller, all of it the
real code. SEED=n or PLAN=file.json repeats one run exactly. HOURS=8 runs seed after seed on one core, and
goes on where it ended.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic.dataclasses import dataclass

from commands.command import Screen, run_command
from commands.cores import whole_cores
from commands.declarations import DECLARED, Existing, Within
from commands.options import read
from commands.parallel import run_all
from emulator.result import PROGRAM, revision
from experiments.simulate_faults import plan as plans
from experiments.simulate_faults.control import DEFINES
from experiments.simulate_faults.night import Night
from experiments.simulate_faults.page import write_page
from experiments.simulate_faults.plan import Plan
from experiments.simulate_faults.run import RunOutcome, run
from experiments.simulate_faults.shrink import shrink
from topologies.engines import Artifacts, make_engine

COMMAND = "PYTHONHASHSEED=0 .venv/bin/python -m experiments.simulate_faults"
RESULTS = Path("results/simulate-faults")
SHRINKS = 3
"""Failing seeds that are made smaller; a run fails the same way often enough."""


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class SimulateFaultsOptions:
    """Options of simulated faults, in the order of `OPTIONS`."""

    seeds: Annotated[int, Within(1, 1_000_000)] = 100
    """Number of runs."""
    first: Annotated[int, Within(0, 1 << 31)] = 1
    """The first run's seed."""
    operations: Annotated[int, Within(1, 10_000_000)] = 10_000
    """GETs and PUTs of each."""
    seed: Annotated[int | None, Within(0, 1 << 31)] = None
    """Seed of a single run, in place of many runs."""
    plan: Annotated[Path | None, Existing()] = None
    """File of a plan that a failed run left, to run it alone."""
    processes: Annotated[int, Within(1, 1024)] = whole_cores()
    """Runs at once."""
    tries: Annotated[int, Within(0, 100_000)] = 100
    """Runs spent on making a failed one smaller."""
    hours: Annotated[float | None, Within(0.001, 10_000)] = None
    """Instead: seeds from FIRST on, on one core, for so long; a second call goes on where the first
    ended."""


def main(arguments: Sequence[str]) -> int:
    """Exit code 0: all promises kept; 1: not; 2: it could not run."""
    program = "weir simulate-faults"
    return run_command(
        arguments,
        lambda given: read(SimulateFaultsOptions, given, program, __doc__ or ""),
        _simulate,
        interrupted="interrupted",
    )


def _simulate(screen: Screen, options: SimulateFaultsOptions) -> int:
    logging.disable(logging.WARNING)  # that switches and controllers go is what is tried
    if options.hours is not None:
        return _play_night(screen, options, options.hours)
    jobs = _jobs(options)
    with tempfile.TemporaryDirectory() as folder:
        artifacts = make_engine("embedded").compile(PROGRAM, DEFINES, Path(folder))
        outcomes = _run_all(screen, options, jobs, artifacts)
        _report(screen, options, outcomes)
        failed = [job for job, outcome in zip(jobs, outcomes, strict=True) if outcome.violations]
        if options.plan is None:
            for job in failed[:SHRINKS]:
                _explain(screen, options, _plan_of(job, options), artifacts)
    return 1 if failed else 0


def _play_night(screen: Screen, options: SimulateFaultsOptions, hours: float) -> int:
    """Exit code 0 if nothing was broken, also when it is interrupted and called again."""
    night = Night(RESULTS, revision(), options.operations)
    try:
        with tempfile.TemporaryDirectory() as folder, screen.progress() as progress:
            artifacts = make_engine("embedded").compile(PROGRAM, DEFINES, Path(folder))
            bar = progress.add_task("seconds", total=round(3600 * hours), completed=round(night.took_s))
            for outcome in night.play(hours, options.first, lambda seed: _run_seed(seed, options, artifacts)):
                progress.update(bar, completed=round(night.took_s))
                for violation in outcome.violations[:1]:
                    screen.show(f"[bold red]seed {outcome.seed}[/]: {violation}")
    finally:
        said = night.summary()
        (RESULTS / "night.json").write_text(json.dumps(said, indent=1) + "\n")
        screen.show(", ".join(f"{name} {value}" for name, value in said.items()))
    return 1 if said["failed"] else 0


def _run_seed(seed: int, options: SimulateFaultsOptions, artifacts: Artifacts) -> RunOutcome:
    return run(plans.make(seed, options.operations), artifacts)


def _jobs(options: SimulateFaultsOptions) -> list[int | Plan]:
    """Return the seeds, or a plan."""
    if options.plan is not None:
        return [plans.read(options.plan)]
    return (
        [options.seed]
        if options.seed is not None
        else list(range(options.first, options.first + options.seeds))
    )


def _plan_of(job: int | Plan, options: SimulateFaultsOptions) -> Plan:
    return job if isinstance(job, Plan) else plans.make(job, options.operations)


def _run_all(
    screen: Screen, options: SimulateFaultsOptions, jobs: Sequence[int | Plan], artifacts: Artifacts
) -> list[RunOutcome]:
    with screen.progress() as progress:
        bar = progress.add_task("runs", total=len(jobs))

        def play(job: int | Plan) -> RunOutcome:
            return run(_plan_of(job, options), artifacts)

        return run_all(play, jobs, min(options.processes, len(jobs)), partial(progress.advance, bar))


def _report(screen: Screen, options: SimulateFaultsOptions, outcomes: Sequence[RunOutcome]) -> None:
    total: Counter[str] = Counter()
    for outcome in outcomes:
        total.update(outcome.counts)
    cpu_s = sum(outcome.cpu_s for outcome in outcomes)
    failed = [outcome for outcome in outcomes if outcome.violations]
    results = {
        "revision": revision(),
        "runs": len(outcomes),
        "failed": [outcome.seed for outcome in failed],
        "cpu_s": round(cpu_s, 1),
        "virtual_s": round(sum(outcome.virtual_s for outcome in outcomes), 1),
        "counts": dict(sorted(total.items())),
        "outcomes": [asdict(outcome) for outcome in outcomes],
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "summary.json").write_text(json.dumps(results, indent=1) + "\n")
    screen.show(", ".join(f"{name} {count:,}" for name, count in sorted(total.items())))
    screen.show(
        f"{len(outcomes)} runs, {len(failed)} failed; {cpu_s:.0f} s of CPU time for "
        f"{results['virtual_s']:,.0f} s of virtual time; {RESULTS}/summary.json"
    )
    screen.say(f"To look at: {write_page(RESULTS, options.operations, outcomes)}")
    for outcome in failed:
        screen.show(f"[bold red]seed {outcome.seed}[/]: {outcome.violations[0]}")
        if options.plan is None:
            again = f"{COMMAND} --seed {outcome.seed} --operations {options.operations}"
            screen.show(f"  again: {again}")


def _explain(screen: Screen, options: SimulateFaultsOptions, plan: Plan, artifacts: Artifacts) -> None:
    """Make a failed run smaller."""
    with screen.status(f"seed {plan.seed}: making it smaller, in at most {options.tries} runs"):
        small = shrink(plan, lambda candidate: bool(run(candidate, artifacts).violations), options.tries)
    path = RESULTS / f"seed-{plan.seed}.json"
    small.write(path)
    screen.show(
        f"seed {plan.seed} fails with {len(small.faults)} of {len(plan.faults)} faults and "
        f"{len(small.operations)} of {len(plan.operations)} operations: {COMMAND} --plan {path}"
    )
    for fault in small.faults[:10]:
        screen.show(f"  {fault}")


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # or the order of sets would be another each time
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "experiments.simulate_faults", *sys.argv[1:]])
    sys.exit(main(sys.argv[1:]))
