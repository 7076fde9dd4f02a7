"""The designs live: each played on the packet-level emulator, and simulated as that emulator carries it out.

    python -m experiments.study.live SEEDS=1,2,3 DESIGNS=...      # as root; about 45 s a play

What was played is kept in RESULTS and not played again; the table at the end has everything that is there.
Times are real seconds to the first token. A push has no counterpart: the simulator pushes what the past used
most when a run begins, the live controller what nodes keep asking for.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from experiments.command import Screen, run_command
from experiments.intervals import Interval, mean_interval
from experiments.logs import OpenNetworks
from experiments.options import Option, OptionError, number, parse_into
from experiments.run.emulation import Emulation
from experiments.run.evaluate import evaluate
from experiments.run.modes import MODES
from experiments.run.result import revision
from experiments.simulator.emulate import PROGRAM, Emulator
from experiments.simulator.scenario import GB, Scenario
from experiments.simulator.simulation import simulate
from topologies.engines import make_engine
from topologies.network import check_root

BLOCK_GB = 512 * 327_680 / GB
"""Of llama3-70b, two bytes a value."""
NODES, STORES, REQUESTS, LINK_GBIT_S = 8, 1, 240, 100.0
"""One home on a slow link: of the settings that were simulated first, that in which designs differ most."""
GPU_BLOCKS, DRAM_BLOCKS, POOL_BLOCKS, STORE_BLOCKS = 64, 128, 512, 50_000
NEVER = 0x8000
"""A count of misses that no block reaches, so that nothing is admitted."""


@dataclass(frozen=True, slots=True)
class Design:
    """One of those that are compared."""

    label: str
    against: str
    """The design without it."""
    mode: str
    gate: str = "compare"
    coded: bool = False
    push: bool = False


FORWARDS, CODED = "no_pool", "coded"
DESIGNS = {
    FORWARDS: Design("the switch forwards", "", "no_pool"),
    "ungated": Design("nodes fetch without a gate", FORWARDS, "no_pool", gate="always"),
    "merging": Design("merging alone", FORWARDS, "merging"),
    "pool": Design("merging and pool", FORWARDS, "pool"),
    "push": Design("pool, and hot prefixes pushed", "pool", "pool", push=True),
    CODED: Design("blocks compressed fourfold", FORWARDS, "no_pool", coded=True),
    "coded_pool": Design("blocks compressed fourfold, pool", CODED, "pool", coded=True),
}


def scenario(design: Design, seed: int) -> Scenario:
    """Agents on eight nodes with one storage node."""

    def room(blocks: int) -> float:
        return (blocks + 0.5) * BLOCK_GB

    return replace(Scenario(), name=design.label).changed(
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
        },
        network={"link_gbit_s": LINK_GBIT_S},
        storage={"count": STORES, "dram_gb": room(STORE_BLOCKS), "ssd_gb": room(STORE_BLOCKS)},
        pool={"size_gb": room(POOL_BLOCKS)},
    )


def simulated(emulator: Emulator, design: Design) -> dict[str, float] | None:
    """What the simulator makes of it; None where it has no such thing."""
    if design.push:
        return None
    matched = emulator.matched(design.mode != "no_pool")
    if design.mode == "merging":
        matched = matched.changed(control={"report_count": NEVER})
    found = simulate(matched)
    return {"mean_s": found.ttft_s.mean, "p99_s": found.ttft_s.p99}


def played(emulator: Emulator, design: Design, opened: OpenNetworks) -> dict[str, Any]:
    """What the emulator measured."""
    run = emulator.run
    if design.push:
        run = replace(run, options=replace(run.options, push=True))
    engine = make_engine("embedded")
    with opened(run.fabric, engine) as network:
        artifacts = engine.compile(PROGRAM, run.defines, network.directory)
        measured = Emulation(run, network, artifacts).play(MODES[design.mode], _silent)
    ttfts = [
        record["ttft_s"] * emulator.speed
        for worker in measured.workers.values()
        for record in worker["records"]
        if record["ttft_s"] is not None
    ]
    result = evaluate(measured)
    return {
        "mean_s": sum(ttfts) / len(ttfts),
        "p99_s": emulator.speed * result.ttft_ms.p99 / 1000,
        "completed": result.completed,
        "from_pool": result.blocks.pool,
        "complaints": list(result.complaints),
    }


def _silent(completed: int, total: int, blocks: dict[str, int]) -> None:
    """Progress that nobody wants to see."""


Found = Mapping[str, Mapping[str, Any]]
"""By design and seed, "merging 1": what was played, with `simulated` beside it."""


def values(found: Found, design: str, world: str, figure: str) -> dict[int, float]:
    """One figure by seed; `world` is "played" or "simulated"."""
    mine = {}
    for name, record in found.items():
        key, _, seed = name.partition(" ")
        part = record[world]
        if key == design and part is not None:
            mine[int(seed)] = float(part[figure])
    return mine


def gain(found: Found, design: str, world: str) -> Interval | None:
    """How much sooner its mean first token is than without it, seed by seed."""
    with_it = values(found, design, world, "mean_s")
    without = values(found, DESIGNS[design].against, world, "mean_s")
    seeds = sorted(with_it.keys() & without.keys())
    return mean_interval([1 - with_it[seed] / without[seed] for seed in seeds]) if seeds else None


def table(found: Found) -> str:
    """Each design that was played, as Markdown."""
    lines = [
        "| design | seeds | mean first token live, s | simulated, s | sooner live than without | simulated | "
        "p99 live; simulated, s |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for key, design in DESIGNS.items():
        live = values(found, key, "played", "mean_s")
        if not live:
            continue
        against = f" (against: {DESIGNS[design.against].label})" if design.against else ""
        cells = [
            design.label + against,
            str(len(live)),
            _mean(live),
            _mean(values(found, key, "simulated", "mean_s")),
            _share(gain(found, key, "played")) if design.against else "",
            _share(gain(found, key, "simulated")) if design.against else "",
            f"{_mean(values(found, key, 'played', 'p99_s'))}; "
            f"{_mean(values(found, key, 'simulated', 'p99_s'))}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _mean(mine: Mapping[int, float]) -> str:
    return f"{sum(mine.values()) / len(mine):.3f}" if mine else "none"


def _share(found: Interval | None) -> str:
    if found is None:
        return "none"
    return (
        f"{found.mean:+.1%} ({found.low:+.1%} to {found.high:+.1%})"
        if found.half < 10
        else f"{found.mean:+.1%}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOptions:
    """What is played."""

    designs: tuple[str, ...]
    seeds: tuple[int, ...]
    scale: float
    results: Path


def _designs(text: str) -> tuple[str, ...]:
    names = tuple(name for name in text.split(",") if name)
    for name in names:
        if name not in DESIGNS:
            raise OptionError(f"there is no design {name!r}: name some of {', '.join(DESIGNS)}")
    return names


def _seeds(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",") if part)
    except ValueError:
        raise OptionError(f"seeds are whole numbers joined by commas, not {text!r}") from None


_OPTIONS = (
    Option("DESIGNS", _designs, tuple(DESIGNS), f"joined by commas, of {', '.join(DESIGNS)}; default: all"),
    Option("SEEDS", _seeds, (1, 2, 3), "joined by commas"),
    Option("SCALE", number(1, 1e9), 20_000.0, "sigma of the emulator"),
    Option("RESULTS", Path, Path("results/designs"), "folder for what was played"),
)


def main(arguments: Sequence[str]) -> int:
    """Exit code 0, or 2 where it could not run."""
    return run_command(
        arguments,
        lambda given: parse_into(LiveOptions, _OPTIONS, given, "experiments.study.live", __doc__ or ""),
        _run,
    )


def _run(screen: Screen, options: LiveOptions) -> int:
    file = options.results / "designs.json"
    found: dict[str, dict[str, Any]] = json.loads(file.read_text()) if file.exists() else {}
    opened = OpenNetworks(screen, options.results, {"revision": revision()})
    for seed in options.seeds:
        for key in options.designs:
            name = f"{key} {seed}"
            if name in found:
                continue
            check_root()
            screen.say(f"playing: {DESIGNS[key].label}, seed {seed}")
            emulator = Emulator(scenario(DESIGNS[key], seed), options.scale)
            found[name] = {
                "played": played(emulator, DESIGNS[key], opened),
                "simulated": simulated(emulator, DESIGNS[key]),
                "revision": revision(),
            }
            options.results.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(found, indent=1))
    print(table(found))
    for name, record in found.items():
        for complaint in record["played"]["complaints"]:
            screen.warn(f"{name}: {complaint}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
