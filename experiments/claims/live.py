"""Claims live: merging against none, played on the packet-level emulator and simulated as it carries them
out.

    python -m experiments.claims.live --seeds=1,2,3       # as root; about a minute a play

Writes results/claims/live.json. Ratios are times to the first token with merging over those without, seed by
seed. In the emulator readers come at their recorded times, so they do in the simulation, too."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic.dataclasses import dataclass as declared
from rich.table import Table

from commands.command import Screen, run_command
from commands.declarations import DECLARED, OneOf, Within
from commands.intervals import Interval, mean_interval
from commands.options import read
from emulator.result import revision
from experiments.logs import OpenNetworks
from experiments.simulate.emulate import Emulator
from experiments.study.live import played, simulated
from experiments.study.played import MEAN_S
from scenario import GB, Scenario
from topologies.machine_check import check_machine
from workload.cost import make_cost_model

ROWS = {
    "prefill-decode": ("prefill-decode:prefix_tokens=8000", 5),
    "cold-start": ("cold-start:prefix_tokens=8000,own_tokens=500", 9),
    "rollouts": ("rollouts:samples=8,prefix_tokens=8000", 9),
}
"""Name -> shape and nodes: one for the writer, and one for each reader."""
MODES = ("no_pool", "merging")
REQUESTS, LINK_GBIT_S = 60, 100.0


@declared(frozen=True, slots=True, kw_only=True, config=DECLARED)
class LiveOptions:
    """What is played."""

    rows: tuple[Annotated[str, OneOf(ROWS)], ...] = tuple(ROWS)
    """Rows to play."""
    seeds: tuple[Annotated[int, Within(0, 2**31)], ...] = (1, 2, 3)
    """Seeds of the traffic."""
    scale: Annotated[float, Within(1, 1e9)] = 20_000.0
    """Sigma of the emulator."""
    results: Path = Path("results/claims")
    """Folder for live.json."""


def scenario(row: str, seed: int) -> Scenario:
    """One storage node, nodes that each serve one reader of an episode."""
    shape, nodes = ROWS[row]
    block_gb = make_cost_model("llama3-70b-fp8", "h800").block_bytes / GB
    room = {"gpu_gb": 64.5 * block_gb, "dram_gb": 128.5 * block_gb}
    return Scenario().changed(
        workload={
            "shape": shape,
            "requests": REQUESTS,
            "scheduler": "round_robin",
            "seed": seed,
            "loop": "open",
        },
        model={"name": "llama3-70b-fp8", "gpu": "h800"},
        nodes={"count": nodes, "gate": "always", **room},
        network={"link_gbit_s": LINK_GBIT_S},
        storage={"count": 1, "dram_gb": 50_000 * block_gb, "ssd_gb": 50_000 * block_gb},
        pool={"size_gb": 64.5 * block_gb},
    )


def main(arguments: Sequence[str]) -> int:
    """Exit code 0, or 2 where it could not run."""
    return run_command(
        arguments,
        lambda given: read(LiveOptions, given, "experiments.claims.live", __doc__ or ""),
        _run,
    )


def _run(screen: Screen, options: LiveOptions) -> int:
    check_machine()
    options.results.mkdir(parents=True, exist_ok=True)
    opened = OpenNetworks(screen, options.results, {"revision": revision()})
    records: list[dict[str, Any]] = []
    for seed in options.seeds:
        for row in options.rows:
            for mode in MODES if seed % 2 else MODES[::-1]:
                screen.say(f"playing: {row}, {mode}, seed {seed}")
                emulator = Emulator(scenario(row, seed), options.scale)
                found = {"simulated": simulated(emulator, mode), "played": played(emulator, mode, opened)}
                records.append({"row": row, "mode": mode, "seed": seed, **found})
                path = options.results / "live.json"
                path.write_text(json.dumps({"revision": revision(), "plays": records}, indent=1))
    screen.show(_table(records))
    return 0


def ratio(records: Sequence[dict[str, Any]], row: str, kind: str) -> Interval:
    """Return the mean time to the first token with merging over that without, over seeds."""
    times = {(one["seed"], one["mode"]): one[kind][MEAN_S] for one in records if one["row"] == row}
    seeds = {seed for seed, _ in times}
    return mean_interval([times[seed, "merging"] / times[seed, "no_pool"] for seed in sorted(seeds)])


def _table(records: Sequence[dict[str, Any]]) -> Table:
    table = Table("traffic", "live", "simulated", title="time to first token, merging over none")
    for row in dict.fromkeys(one["row"] for one in records):
        table.add_row(row, *(f"{ratio(records, row, kind):.3f}" for kind in ("played", "simulated")))
    return table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
