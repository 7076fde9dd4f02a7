"""Claims of merging over no pool, run on the packet-level emulator and simulated under the same conditions.

    python -m experiments.claims.live --seeds=1,2,3       # as root; about a minute a run

The command writes results/claims/live.json, and goes on where it was interrupted. It warns of runs with which
the machine did not keep up, and repeats them the next time. Ratios are times to the first token with merging
over those without, seed by seed. In the emulator readers come at their recorded times, and so they do in the
simulation."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic.dataclasses import dataclass as declared
from rich.table import Table

from commands.command import Screen, run_command
from commands.declarations import DECLARED, OneOf, Within
from commands.intervals import Interval, mean_interval
from commands.options import read
from emulator.emulation import Emulation
from emulator.evaluate import evaluate
from emulator.result import PROGRAM, revision
from experiments.logs import OpenNetworks
from experiments.simulate.emulate import Emulator
from scenario import GB, Scenario
from scenario.modes import MODES as PLAYED
from simulator.simulation import simulate
from topologies.engines import make_engine
from topologies.machine_check import check_machine
from workload.cost import make_cost_model

ROWS = {
    "prefill-decode": ("prefill-decode:prefix_tokens=8000", 5),
    "cold-start": ("cold-start:prefix_tokens=8000,own_tokens=500", 9),
    "rollouts": ("rollouts:samples=8,prefix_tokens=8000", 9),
}
"""Shape and number of nodes by row: one node for the writer, and one for each reader."""
Record = dict[str, Any]
"""Record of one run: row, mode, seed and scale, with the figures simulated and measured ("played")."""
MODES = ("no_pool", "merging")
REQUESTS, LINK_GBIT_S = 60, 100.0
MEAN_S = "mean_s"
"""Key of the mean time to the first token, in seconds at real scale."""
NEVER = 0x8000
"""Number of misses that no block reaches, so that nothing is admitted."""


@declared(frozen=True, slots=True, kw_only=True, config=DECLARED)
class LiveOptions:
    """Options of `python -m experiments.claims.live`."""

    rows: tuple[Annotated[str, OneOf(ROWS)], ...] = tuple(ROWS)
    """Rows to run."""
    seeds: tuple[Annotated[int, Within(0, 2**31)], ...] = (1, 2, 3)
    """Seeds of the traffic."""
    scale: Annotated[float, Within(1, 1e9)] = 50_000.0
    """Sigma of the emulator."""
    results: Path = Path("results/claims")
    """Folder for live.json."""


def scenario(row: str, seed: int) -> Scenario:
    """Return a row's scenario: one storage node, and a node for the writer and for each reader."""
    shape, nodes = ROWS[row]
    block_gb = make_cost_model("llama3-70b-fp8", "h800").block_bytes / GB
    memory = {"gpu_gb": 64.5 * block_gb, "dram_gb": 128.5 * block_gb}
    return Scenario().changed(
        workload={
            "shape": shape,
            "requests": REQUESTS,
            "scheduler": "round_robin",
            "seed": seed,
            "loop": "open",
        },
        model={"name": "llama3-70b-fp8", "gpu": "h800"},
        nodes={"count": nodes, "gate": "always", **memory},
        network={"link_gbit_s": LINK_GBIT_S},
        storage={"count": 1, "dram_gb": 50_000 * block_gb, "ssd_gb": 50_000 * block_gb},
        pool={"size_gb": 64.5 * block_gb},
    )


def main(arguments: Sequence[str]) -> int:
    """Run what is missing and print the table. Returns exit code 0, or 2 if it could not run."""
    return run_command(
        arguments,
        lambda given: read(LiveOptions, given, "experiments.claims.live", __doc__ or ""),
        _run,
    )


def _run(screen: Screen, options: LiveOptions) -> int:
    check_machine()
    options.results.mkdir(parents=True, exist_ok=True)
    path = options.results / "live.json"
    opened = OpenNetworks(screen, options.results, {"revision": revision()})
    records = [one for one in _stored_runs(path) if one["scale"] == options.scale and not complaints(one)]
    for row, mode, seed in _turns(options):
        if any((row, mode, seed) == (one["row"], one["mode"], one["seed"]) for one in records):
            continue
        screen.say(f"running: {row}, {mode}, seed {seed}")
        emulator = Emulator(scenario(row, seed), options.scale)
        found = {"simulated": simulated(emulator, mode), "played": played(emulator, mode, opened)}
        records.append({"row": row, "mode": mode, "seed": seed, "scale": options.scale, **found})
        path.write_text(json.dumps({"revision": revision(), "plays": records}, indent=1))
        for complaint in complaints(records[-1]):
            screen.warn(f"{row}, {mode}, seed {seed}: {complaint}")
    screen.show(_table(records))
    return 0


def simulated(emulator: Emulator, mode: str) -> dict[str, float]:
    """Return the simulator's figures for the scenario as the emulator runs it."""
    matched = emulator.matched(mode != "no_pool")
    if mode == "merging":
        matched = matched.changed(control={"report_count": NEVER})
    return {MEAN_S: simulate(matched).ttft_s.mean}


def played(emulator: Emulator, mode: str, opened: OpenNetworks) -> Record:
    """Return what the emulator measured, and the reasons why it does not count."""
    run = emulator.run
    engine = make_engine("embedded")
    with opened(run.fabric, engine) as network:
        artifacts = engine.compile(PROGRAM, run.defines, network.directory)
        measured = Emulation(run, network, artifacts).play(PLAYED[mode], lambda *_: None)
    ttfts = [
        record["ttft_s"] * emulator.speed
        for worker in measured.workers.values()
        for record in worker["records"]
        if record["ttft_s"] is not None
    ]
    return {MEAN_S: sum(ttfts) / len(ttfts), "complaints": list(evaluate(measured).complaints)}


def _turns(options: LiveOptions) -> Iterator[tuple[str, str, int]]:
    """Yield row, mode and seed of all runs. The two modes of a pair follow each other, in either order."""
    for seed in options.seeds:
        for row in options.rows:
            for mode in MODES if seed % 2 else MODES[::-1]:
                yield row, mode, seed


def _stored_runs(path: Path) -> list[Record]:
    """Return the runs that are in the file, so that an interrupted command goes on."""
    return list(json.loads(path.read_text())["plays"]) if path.exists() else []


def complaints(record: Record) -> Sequence[str]:
    """Return the reasons why a run does not count, such as that the machine did not keep up."""
    found: Sequence[str] = record["played"]["complaints"]
    return found


def ratios(records: Sequence[Record], row: str, kind: str) -> dict[int, float]:
    """Return the mean time to the first token with merging over that without, by seed.

    `kind` is "played" or "simulated". Seeds without both runs are left out.
    """
    times = {(one["seed"], one["mode"]): one[kind][MEAN_S] for one in records if one["row"] == row}
    whole = sorted({seed for seed, _ in times if all((seed, mode) in times for mode in MODES)})
    return {seed: times[seed, "merging"] / times[seed, "no_pool"] for seed in whole}


def compared(records: Sequence[Record], row: str) -> tuple[Interval, Interval, Interval]:
    """Return the ratio live, the ratio simulated and their difference, as means over at least one seed."""
    live, ours = (ratios(records, row, kind) for kind in ("played", "simulated"))
    difference = [live[seed] - ours[seed] for seed in live]
    return mean_interval(list(live.values())), mean_interval(list(ours.values())), mean_interval(difference)


def _table(records: Sequence[Record]) -> Table:
    """Return the table of all rows; live and simulated agree if the difference's interval contains 0."""
    columns = ("traffic", "seeds", "live", "simulated", "apart", "agree")
    table = Table(*columns, title="time to first token, merging over none")
    for row in dict.fromkeys(one["row"] for one in records):
        seeds = len(ratios(records, row, "played"))
        if not seeds:
            continue
        live, ours, difference = compared(records, row)
        agree = "yes" if difference.low <= 0.0 <= difference.high else "no"
        table.add_row(row, str(seeds), f"{live:.3f}", f"{ours:.3f}", f"{difference:+.3f}", agree)
    return table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
