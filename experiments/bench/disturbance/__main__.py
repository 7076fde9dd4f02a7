"""make bench WHAT=disturbance: no pool against a pool that is managed but never hit, in turns.

The second costs the machine all that a pool's control plane does, and the traffic is the same: what lies
between their medians is the emulation's own doing. Takes RUNS, MINUTES and all options of `make run`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from pydantic.dataclasses import dataclass
from rich.table import Table

from commands.command import Screen, run_command
from commands.declarations import DECLARED, Unit, Within
from emulator.disturbance import COMPARED, FIGURES, LIMIT, verdict
from emulator.emulation import Emulation
from emulator.evaluate import evaluate
from emulator.options import RunOptions, read_run
from emulator.result import PROGRAM, RunResult, revision
from emulator.scenario import Scenario, make_scenario
from experiments.bench.disturbance.compare import Pair, differences, order_of, passed
from experiments.logs import open_network
from experiments.page import Section, lines, write_report
from scenario.emulation import EmulationTable
from scenario.modes import MODES
from topologies.engines import make_engine
from topologies.machine_check import check_machine

DEFAULT_RUNS = 10
ABOUT = ("seed", "revision", "engine", "trace", "scale", "policy")
LEAST_PAIRS = 2
"""Of which there is an interval."""
NOTHING = "nothing to compare: it is 0 without a pool"


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class DisturbanceOptions(RunOptions):
    """Those of `make run`, and how long it may take."""

    minutes: Annotated[float, Within(0, 10_000), Unit("min")] = 0.0
    """Play fewer RUNS if they would take longer; 0: no limit."""
    emulation: EmulationTable = EmulationTable(results=Path("results/disturbance"))


def main(arguments: Sequence[str]) -> int:
    """Exit code 0: within the limit; 1: outside, undecided, or a pair does not count; 2: it could not run."""
    program = "weir bench disturbance"
    return run_command(
        arguments,
        lambda given: read_run(DisturbanceOptions, given, program, __doc__ or ""),
        _run,
    )


def _run(screen: Screen, options: DisturbanceOptions) -> int:
    check_machine()
    scenario = make_scenario(options)
    runs = options.emulation.runs if options.emulation.runs > 1 else DEFAULT_RUNS
    pairs = _play(screen, scenario, runs, 60 * options.minutes)
    _write(options.emulation.results / "summary.json", scenario, pairs)
    return _report(screen, pairs)


def _play(screen: Screen, scenario: Scenario, runs: int, budget_s: float) -> list[Pair]:
    engine = make_engine(scenario.options.emulation.engine)
    pairs = []
    about = {"revision": revision(), "seed": scenario.options.workload.seed}
    with (
        screen.status("compiling the P4 program") as show,
        open_network(screen, scenario.fabric, engine, scenario.options.emulation.results, about) as network,
    ):
        artifacts = engine.compile(PROGRAM, scenario.defines, network.directory)
        emulation = Emulation(scenario, network, artifacts)
        began_s = time.monotonic()
        for count in range(runs):
            if not another_fits(count, time.monotonic() - began_s, budget_s):
                screen.warn(f"{count} of {runs} pairs: more would take longer than MINUTES")
                break
            played: dict[str, RunResult] = {}
            for mode in order_of(count):
                show(f"pair {count + 1} of {runs}: {mode}")
                played[mode] = evaluate(emulation.play(MODES[mode], lambda *_: None))
            pairs.append(Pair(**played))
            medians = (f"{mode} {played[mode].get_ms.p50:.1f} ms" for mode in COMPARED)
            screen.say(f"pair {count + 1}: GET p50 {', '.join(medians)}")
    return pairs


def another_fits(pairs: int, took_s: float, budget_s: float) -> bool:
    """Return whether another pair that takes as long as the others ends within the budget (0: none)."""
    return pairs < LEAST_PAIRS or not budget_s or took_s * (pairs + 1) / pairs <= budget_s


def _write(path: Path, scenario: Scenario, pairs: Sequence[Pair]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    about = {
        "engine": scenario.options.emulation.engine,
        "trace": scenario.trace.name,
        "seed": scenario.options.workload.seed,
        "scale": scenario.scale.sigma,
        "policy": scenario.options.pool.policy,
        "revision": revision(),
        "limit": LIMIT,
        "differences": {name: asdict(difference) for name, difference in differences(pairs).items()},
        "pairs": [{mode: asdict(getattr(pair, mode)) for mode in COMPARED} for pair in pairs],
    }
    path.write_text(json.dumps(about, indent=1) + "\n")
    _write_page(path.parent, {name: about[name] for name in ABOUT}, pairs)


def _write_page(folder: Path, about: dict[str, object], pairs: Sequence[Pair]) -> None:
    sections = []
    for name, figure in FIGURES.items():
        series = {
            mode: [(number, figure(getattr(pair, mode))) for number, pair in enumerate(pairs, 1)]
            for mode in COMPARED
        }
        rows = [
            [number, *(figure(getattr(pair, mode)) for mode in COMPARED)]
            for number, pair in enumerate(pairs, 1)
        ]
        found = differences(pairs).get(name)
        text = NOTHING
        if found is not None:
            interval = f"{found.mean:+.1%}, 95 % from {found.low:+.1%} to {found.high:+.1%}"
            text = f"Difference {interval}: {verdict(found)}."
        plots = [lines(f"{name}, ms", "pair", series)]
        titles = ["pair", "no pool, ms", "never hit, ms"]
        sections.append(Section(name, name.replace(" ", "-"), titles, rows, plots, text))
    complaints = [text for pair in pairs for mode in COMPARED for text in getattr(pair, mode).complaints]
    write_report(
        folder,
        "make bench WHAT=disturbance: a pool that is managed and never hit",
        about,
        sections,
        complaints,
    )


def _report(screen: Screen, pairs: Sequence[Pair]) -> int:
    found = differences(pairs)
    table = Table("median", "no pool, ms", "never hit, ms", "difference (95 %)", f"limit {LIMIT:.0%}")
    for name, figure in FIGURES.items():
        means = [sum(figure(getattr(pair, mode)) for pair in pairs) / len(pairs) for mode in COMPARED]
        difference = found.get(name)
        said = ["", NOTHING]
        if difference is not None:
            interval = f"{difference.mean:+.1%} ({difference.low:+.1%} to {difference.high:+.1%})"
            said = [interval, verdict(difference)]
        table.add_row(name, *(f"{ms:.2f}" for ms in means), *said)
    screen.show(table)
    last = pairs[-1].phantom
    screen.show(
        f"A run with the pool: {last.digests:,} digests, {last.p4runtime_writes:,} writes, "
        f"{last.controller_cpu_s:.2f} s of CPU in the controller."
    )
    strained = sum(not pair.counts for pair in pairs)
    if strained:
        screen.warn(f"in {strained} of {len(pairs)} pairs the machine did not keep up or requests failed.")
    return 0 if passed(pairs) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
