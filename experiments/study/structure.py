"""Objections to how the programs are built, each with what is counted in their sources, or tried."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from experiments.simulator.direct import DirectClient, DirectPool
from experiments.simulator.events import Loop
from experiments.simulator.messages import Block
from experiments.simulator.scenario import Direct
from experiments.study.results import ROOT

EXPERIMENTS = ROOT / "experiments"
QUEUES = ("heapq", "simpy", "sched", "selectors")
"""Modules of which an event simulator is made, or time that waits for nobody."""
SIMULATOR = "experiments/simulator/"
OTHER_QUEUES = {
    "experiments/policies/told.py": "what a controller's pool is told in a replay: sketch cells and late "
    "reports, no nodes, GPUs or links",
    "experiments/simulate_faults/virtual_time.py": "hosts, controller and pipeline themselves in virtual "
    "time, to look for broken promises",
    "experiments/faults/shim.py": "frames that a live link holds back",
    "experiments/run/traces/files.py": "captures of several links, in order of time",
}
"""Files besides the simulator's that have a queue by time, and what for."""
BLOCK_BYTES = 84e6
LAYERED = "machine that an emulation runs on"
"""Part of the name of the contract in pyproject.toml that keeps the emulator's machine out of the parts."""


def structure() -> Iterator[tuple[str, str]]:
    """Objections and figures."""
    yield "A direct pool reserved adapters before its lookup, and reads and writes shared a link", _direct()
    yield "make tiers was a second simulator", one_simulator()
    yield "Options were parsed in several places", _one_parser()
    yield "Four modules drew plots, each with helpers of its own", _one_plotter()
    yield "The emulator's machine ran through every simulated part", _layered()


@cache
def imported(path: Path) -> frozenset[str]:
    """Names of all modules that a file imports, those of members included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return frozenset(found)


def importing(folder: Path, *modules: str) -> list[str]:
    """Files below a folder that import any of these modules, or a part of one."""
    return sorted(
        path.relative_to(ROOT).as_posix()
        for path in folder.rglob("*.py")
        if any(name == one or name.startswith(f"{one}.") for name in imported(path) for one in modules)
    )


def read_times_s() -> tuple[float, float, float]:
    """Of a direct pool: a block's read alone, the same while the same server writes another one, and when
    its adapter begins to bring the first, each after the request."""
    times = []
    for writes in (False, True):
        loop = Loop()
        pool = DirectPool(loop, Direct(), BLOCK_BYTES, 1)
        one, other = (Block(key, 0, b"", "store1", (1,)) for key in (b"read", b"written"))
        pool.preload([one])
        client = DirectClient(loop, pool, 0)
        if writes:
            client.store([other])
        client.fetch([one], lambda _: None)
        times.append(client.get_s[0])
        began_s = pool.readers[0].free_s - BLOCK_BYTES / pool.readers[0].bytes_per_s
    return times[0], times[1], began_s


def _direct() -> str:
    alone_s, beside_s, began_s = read_times_s()
    return (
        f"a block of {BLOCK_BYTES / 1e6:.0f} MB takes {1e3 * alone_s:.3f} ms to read alone and "
        f"{1e3 * beside_s:.3f} ms while the same server writes one; its adapter is taken "
        f"{1e6 * began_s:.2f} µs after the request, where the lookup takes {1e6 * Direct().lookup_s:.2f}"
    )


def one_simulator() -> str:
    """Who has a queue of events."""
    tiers = EXPERIMENTS / "tiers"
    own, playing = importing(tiers, *QUEUES), importing(tiers, "experiments.simulator")
    others = [path for path in importing(EXPERIMENTS, *QUEUES) if not path.startswith(SIMULATOR)]
    told = "; ".join(f"{path} ({OTHER_QUEUES.get(path, 'another simulator')})" for path in others)
    return (
        f"its scenarios are played by experiments/simulator ({', '.join(playing)}); {len(own)} of its "
        f"{len(list(tiers.glob('*.py')))} modules have a queue of events (tests/experiments/tiers/"
        f"test_scenarios.py). Of all of experiments/ besides the simulator have one: {told or 'none'}"
    )


def _one_parser() -> str:
    parsers = importing(EXPERIMENTS, "argparse", "optparse", "getopt", "click")
    return f"options are parsed by {len(parsers)} module of experiments/: {', '.join(parsers)}"


def _one_plotter() -> str:
    pictures = importing(EXPERIMENTS, "matplotlib.pyplot")
    pages = importing(EXPERIMENTS, "plotly.offline")
    return (
        f"pictures are written by {len(pictures)} module ({', '.join(pictures)}), pages by "
        f"{len(pages)} ({', '.join(pages)})"
    )


def _layered() -> str:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (mine,) = (one for one in contracts if LAYERED in one["name"])
    parts, machine = mine["source_modules"], mine["forbidden_modules"]
    files = [ROOT / f"{part.replace('.', '/')}.py" for part in parts]
    knowing = sum(any(name.startswith(tuple(machine)) for name in imported(path)) for path in files)
    return (
        f"{knowing} of {len(parts)} modules of parts import it or its table; make lint refuses one that does"
    )
