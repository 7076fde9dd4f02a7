"""The designs live: each played on the packet-level emulator, and simulated as that emulator carries it out.

    python -m experiments.study.live --seeds=1,2,3 --designs=...      # as root; about 45 s a play

What was played is kept in RESULTS and not played again; table and report have everything that is there,
and `make study` takes it into its own report. Designs follow one another, forwards and backwards by seed.
Times are real seconds to the first token.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic.dataclasses import dataclass
from rich.table import Table as Shown

from commands.command import Screen, run_command
from commands.declarations import DECLARED, OneOf, Within
from commands.options import read
from emulator.emulation import Emulation
from emulator.evaluate import evaluate
from emulator.result import PROGRAM, revision
from experiments.logs import OpenNetworks
from experiments.page import Page
from experiments.page.report import NAME
from experiments.simulate.emulate import Emulator
from experiments.study.panels.live import live, live_table
from experiments.study.played import (
    DESIGNS,
    MEAN_S,
    P99_S,
    PLAYED,
    RECORDS,
    RESULTS,
    SIMULATED,
    Design,
    Live,
    complaints,
    gains,
    read_records,
    record_name,
)
from experiments.study.report import add_panel, shown_rows
from experiments.study.results import code_hash
from scenario import GB, Scenario
from scenario.modes import MODES
from scenario.tables import SWITCHES
from simulator.simulation import simulate
from topologies.engines import make_engine
from topologies.machine_check import check_machine

BLOCK_GB = 512 * 327_680 / GB
"""Of llama3-70b, two bytes a value."""
NODES, STORES, REQUESTS, LINK_GBIT_S = 8, 1, 240, 100.0
"""One home on a slow link: of the settings that were simulated first, that in which designs differ most."""
GPU_BLOCKS, DRAM_BLOCKS, POOL_BLOCKS, STORE_BLOCKS = 64, 128, 512, 50_000
LENT_DRAM_BLOCKS = 256
"""Of a node that lends: in sum 2,048, about what the requests ask for (1,600 to 2,300 blocks, each counted
once). Simulated before anything was played, seeds 1 to 3 and 901: half of it (as where there is a storage
node) leaves 0.5 to 2.4 % more to compute, and more of it changes nothing."""
NEVER = 0x8000
"""A count of misses that no block reaches, so that nothing is admitted."""
TITLE = "The designs live, each beside its simulation"


def scenario(design: Design, seed: int) -> Scenario:
    """Agents on eight nodes, with one storage node unless nodes lend."""

    def room(blocks: int) -> float:
        return (blocks + 0.5) * BLOCK_GB

    made = replace(Scenario(), name=design.label).changed(
        workload={"shape": "agents", "requests": REQUESTS, "scheduler": "locality", "seed": seed},
        model={
            "name": "llama3-70b",
            "gpu": "h800",
            "codec": "cachegen" if design.coded else "none",
            "coder": "instant",
        },
        nodes={
            "count": NODES,
            "gpu_gb": room(GPU_BLOCKS),
            "dram_gb": room(DRAM_BLOCKS),
            "gate": design.gate,
            "hints": design.hints,
            "joining": design.joining,
        },
        network={"link_gbit_s": LINK_GBIT_S, "requests_first": design.requests_first},
        storage={"count": STORES, "dram_gb": room(STORE_BLOCKS), "ssd_gb": room(STORE_BLOCKS)},
        pool={"size_gb": room(POOL_BLOCKS)},
        control={"push": design.push},
    )
    if not design.lends:
        return made
    return made.changed(
        nodes={"dram_gb": room(LENT_DRAM_BLOCKS)}, storage={"kind": "peers"}, direct={"front": SWITCHES}
    )


def simulated(emulator: Emulator, mode: str) -> dict[str, float]:
    """Return what the simulator makes of it."""
    matched = emulator.matched(mode != "no_pool")
    if mode == "merging":
        matched = matched.changed(control={"report_count": NEVER})
    found = simulate(matched)
    return {
        MEAN_S: found.ttft_s.mean,
        P99_S: found.ttft_s.p99,
        "from_pool": found.blocks["pool"],
        "from_hosts": found.blocks["remote"],
        "pushed": found.pushed_blocks,
        "taken": found.taken_blocks,
    }


def played(emulator: Emulator, mode: str, opened: OpenNetworks) -> dict[str, Any]:
    """Return what the emulator measured."""
    run = emulator.run
    engine = make_engine("embedded")
    with opened(run.fabric, engine) as network:
        artifacts = engine.compile(PROGRAM, run.defines, network.directory)
        measured = Emulation(run, network, artifacts).play(MODES[mode], _silent)
    ttfts = [
        record["ttft_s"] * emulator.speed
        for worker in measured.workers.values()
        for record in worker["records"]
        if record["ttft_s"] is not None
    ]
    result = evaluate(measured)
    return {
        MEAN_S: sum(ttfts) / len(ttfts),
        P99_S: emulator.speed * result.ttft_ms.p99 / 1000,
        "completed": result.completed,
        "from_pool": result.blocks.pool,
        "from_hosts": result.blocks.remote,
        "asked_s": emulator.speed * sum(map(_asked_s, measured.workers.values())),
        "pushed": measured.controller["pushes"],
        "taken": sum(worker["pushed"]["taken"] for worker in measured.workers.values()),
        "complaints": list(result.complaints),
        "revision": revision(),
    }


def _asked_s(worker: Mapping[str, Any]) -> float:
    """For which its requests waited until homes, or the index of nodes that lend, said who holds what."""
    gate, lent = worker["gate"], worker["lent"]
    return (gate["asked_s"] if gate else 0.0) + (lent["index"]["asked_s"] if lent else 0.0)


def _silent(completed: int, total: int, blocks: dict[str, int]) -> None:
    """Progress that nobody wants to see."""


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class LiveOptions:
    """What is played."""

    designs: tuple[Annotated[str, OneOf(DESIGNS)], ...] = tuple(DESIGNS)
    """Joined by commas."""
    seeds: tuple[Annotated[int, Within(0, 2**31)], ...] = (1, 2, 3)
    """Joined by commas."""
    scale: Annotated[float, Within(1, 1e9)] = 20_000.0
    """Sigma of the emulator."""
    minutes: Annotated[float, Within(0, 10_000)] = 60.0
    """After which no play is begun; 0: simulations only."""
    results: Path = RESULTS
    """Folder for what was played."""


def main(arguments: Sequence[str]) -> int:
    """Exit code 0, or 2 where it could not run."""
    return run_command(
        arguments,
        lambda given: read(LiveOptions, given, "experiments.study.live", __doc__ or ""),
        _run,
    )


def in_turns(designs: Sequence[str], seeds: Sequence[int]) -> Iterator[tuple[str, int]]:
    """Yield all designs of a seed side by side, every other seed backwards: what drifts favours none."""
    for turn, seed in enumerate(seeds):
        for key in designs if turn % 2 == 0 else reversed(designs):
            yield key, seed


def _run(screen: Screen, options: LiveOptions) -> int:
    began_s = time.monotonic()
    found = read_records(options.results)
    opened = OpenNetworks(screen, options.results, {"revision": revision()})
    turns = list(in_turns(options.designs, options.seeds))
    for key, seed in turns:
        record = found.setdefault(record_name(key, seed), {})
        if record.get("code") != code_hash():
            emulator = Emulator(scenario(DESIGNS[key], seed), options.scale)
            record |= {SIMULATED: simulated(emulator, DESIGNS[key].mode), "code": code_hash()}
            _keep(options.results, found)
    for key, seed in turns:
        record = found[record_name(key, seed)]
        if PLAYED not in record and time.monotonic() - began_s < 60 * options.minutes:
            check_machine()
            screen.say(f"playing: {DESIGNS[key].label}, seed {seed}")
            emulator = Emulator(scenario(DESIGNS[key], seed), options.scale)
            record[PLAYED] = played(emulator, DESIGNS[key].mode, opened)
            _keep(options.results, found)
    _show(screen, options, found)
    return 0


def _keep(folder: Path, found: dict[str, dict[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RECORDS).write_text(json.dumps(found, indent=1))


def _show(screen: Screen, options: LiveOptions, found: dict[str, dict[str, Any]]) -> None:
    """All that was played, in the terminal and as a page."""
    panel = live(found)
    screen.show(_shown(found))
    for complaint in complaints(found):
        screen.warn(complaint)
    page = Page(TITLE)
    page.text(f"revision: {revision()}; engine: embedded; sigma: {options.scale:g}.")
    add_panel(page, panel)
    page.write(options.results / NAME)
    screen.say(f"Report: {options.results / NAME}")


SHORT = {"seeds": "seeds", "live_mean_s": "mean, s", "simulated_mean_s": "sim.", "live_p99_s": "p99, s",
    "simulated_p99_s": "sim."}  # fmt: skip
"""Columns of the page's table that a terminal has room for, beside what is gained."""


def _shown(found: Live) -> Shown:
    """Each design that was played, as a terminal has room for it."""
    shown = Shown("design", title=TITLE, title_justify="left")
    for title in (*SHORT.values(), "sooner", "sim."):
        shown.add_column(title, justify="right")
    gained = {gain.design.label: gain for gain in gains(found)}
    table = live_table(found).flat()
    for row in shown_rows(table):
        cells = dict(zip(table.columns, row, strict=True))
        label, gain = str(cells["design"]), gained.get(str(cells["design"]))
        sooner = (gain.live, gain.simulated) if gain else (None, None)
        texts = [f"{part:+.1%}" if part is not None else "" for part in sooner]
        shown.add_row(label, *(str(cells[name]) for name in SHORT), *texts)
    return shown


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
