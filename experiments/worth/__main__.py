"""make worth: pools of plain, 8-bit and CacheGen's blocks, with prefixes only and with blended chunks."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Annotated, Any

from pydantic.dataclasses import dataclass

from commands.command import Screen, run_command
from commands.declarations import DECLARED, Existing, OneOf, Variable, Within
from commands.intervals import Interval, mean_interval
from commands.options import read
from commands.parallel import run_all
from controller.policies import OWN_POLICIES
from emulator.result import revision
from experiments.worth.cells import BLEND, CODECS, GPU, MODEL, PREFIX, Cell, Cluster, Figures, play
from experiments.worth.page import cells_table, write_page
from experiments.worth.verdicts import Found, blended, compressed
from simulator.compiled import engine
from workload.blend import DEFAULT_SHARE
from workload.compression import CODERS, INSTANT
from workload.generate import generate
from workload.shapes import PLAYED_SHAPES
from workload.trace_files import load_trace


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class WorthOptions:
    """Workloads, pools and cluster of the comparison."""

    shapes: tuple[Annotated[str, OneOf(PLAYED_SHAPES)], ...] = ("chat", "agents", "rag", "passages")
    """Shapes of generated traces."""
    trace: Annotated[Path | None, Existing()] = None
    """Trace file to play as well; a trace that names no chunks is played with prefixes only."""
    blocks: tuple[Annotated[int, Within(1, 1_000_000)], ...] = (300, 1000, 3000, 10_000, 30_000)
    """Sizes of the pool, in plain blocks of 512 tokens."""
    requests: Annotated[int, Within(10, 1_000_000)] = 1000
    """Number of requests of each workload."""
    seeds: Annotated[int, Within(2, 100)] = 3
    """Number of seeds of each workload; with a TRACE, of its scheduling."""
    load: Annotated[float, Within(0.001, 1000)] = 4.0
    """Rate of the requests, relative to the workload's own."""
    link_gbit_s: Annotated[float, Within(0.1, 10_000), Variable("LINK_GBIT")] = 200.0
    """Rate of a link, Gbit/s."""
    gpu_gb: Annotated[float, Within(1, 1e6)] = 16.0
    """GPU memory for blocks, of a node."""
    dram_gb: Annotated[float, Within(0, 1e6)] = 32.0
    """DRAM for blocks, of a node."""
    policy: Annotated[str, OneOf(OWN_POLICIES)] = "reuse"
    """Policy of the pool."""
    coder: Annotated[str, OneOf(CODERS)] = INSTANT
    """Coder, which decides how long decoding takes."""
    blend_share: Annotated[float, Within(0, 1)] = DEFAULT_SHARE
    """Share of blended chunks' tokens that is recomputed."""
    processes: Annotated[int, Within(1, 256)] = 1
    """Number of simulations at once."""
    results: Path = Path("results/worth")
    """Folder for summary.json."""

    @property
    def cluster(self) -> Cluster:
        """Return what all cells have in common."""
        return Cluster(
            requests=self.requests,
            load=self.load,
            link_gbit_s=self.link_gbit_s,
            gpu_gb=self.gpu_gb,
            dram_gb=self.dram_gb,
            policy=self.policy,
            coder=self.coder,
            share=self.blend_share,
            trace="" if self.trace is None else str(self.trace.resolve()),
        )


def main(arguments: Sequence[str]) -> int:
    """Run the comparison and return the exit code: 0, or 2 for bad input."""
    return run_command(arguments, parse, _work)


def parse(arguments: Sequence[str]) -> WorthOptions:
    """Return the options from the command line and the environment; raises OptionError."""
    return read(WorthOptions, arguments, "weir worth", __doc__ or "")


def cells_of(options: WorthOptions) -> list[Cell]:
    """Return the cells in the order of the workloads; chunks are blended only if the workload names them."""
    chunked = {shape: generate(shape, 1, 10).has_chunks for shape in options.shapes}
    if options.trace is not None:
        chunked[traced(options)] = load_trace(options.trace).has_chunks
    return [
        Cell(workload, blocks, codec, reuse)
        for workload, has_chunks in chunked.items()
        for reuse in ((PREFIX, BLEND) if has_chunks else (PREFIX,))
        for blocks, codec in itertools.product(options.blocks, CODECS)
    ]


def traced(options: WorthOptions) -> str:
    """Return the name of the workload that is in a file, which no shape has; "" without a file."""
    if options.trace is None:
        return ""
    return options.trace.name if options.trace.stem in options.shapes else options.trace.stem


def _work(screen: Screen, options: WorthOptions) -> int:
    cells = cells_of(options)
    jobs = list(itertools.product(cells, range(1, options.seeds + 1)))
    cluster, from_file = options.cluster, traced(options)

    def simulated(job: tuple[Cell, int]) -> Figures:
        return play(job[0], cluster, job[1], from_file)

    with screen.progress() as progress:
        task = progress.add_task("simulating", total=len(jobs))
        played = run_all(simulated, jobs, options.processes, lambda: progress.advance(task))
    each = iter(played)
    found: Found = {cell: [next(each) for _ in range(options.seeds)] for cell in cells}
    rows = [cell._asdict() | intervals(found[cell]) for cell in cells]
    verdicts = {"compressed": list(compressed(found)), "blended": list(blended(found))}
    about = {"model": MODEL, "gpu": GPU, **asdict(options.cluster), "seeds": options.seeds}
    about |= {"trace": from_file, "revision": revision(), "engine": engine()}
    screen.show(cells_table(rows, options.seeds))
    options.results.mkdir(parents=True, exist_ok=True)
    summary = options.results / "summary.json"
    plain = {"about": about, "cells": rows, **verdicts}
    summary.write_text(json.dumps(plain, indent=1, default=_plain) + "\n")
    page = write_page(options.results, about, rows, verdicts)
    screen.say(f"Written to {summary}; to look at: {page}")
    return 0


def intervals(runs: Sequence[Figures]) -> dict[str, Any]:
    """Return the means of each figure with their 95 % intervals."""
    return {one.name: mean_interval([getattr(run, one.name) for run in runs]) for one in fields(Figures)}


def _plain(value: object) -> object:
    if isinstance(value, Interval):
        return asdict(value)
    raise TypeError(f"{value!r} is not written to a summary")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
