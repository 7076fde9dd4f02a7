"""What `make policies` does besides the usual tables: CROSS (cross-validation) and EXPLAIN."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Console

from emulator.result import revision
from experiments.policies.cross import cross, quarters_of
from experiments.policies.cross_tables import print_cross, write_cross
from experiments.policies.explain import explain_log, explain_trace
from experiments.policies.options import Options
from experiments.policies.replay_cache import generated
from workload.cost import CostModel
from workload.shapes import COMPARED_SHAPES
from workload.trace import Trace

Progress = Callable[[int], Callable[[], None]]
"""Given the number of jobs, what to call after each."""


def run_cross(console: Console, options: Options, cost: CostModel, progress: Progress) -> None:
    """Leave each family of traces out in turn."""
    shapes = tuple(COMPARED_SHAPES) if options.shapes_are_default else options.shapes
    seeds, trace = range(options.seed, options.seed + options.seeds), options.load_file()
    drawn = [
        generated(shape, seed, options.requests, options.generated_tokens)
        for shape in shapes
        for seed in seeds
    ]
    members = [*drawn, *quarters_of(trace)]
    done = progress(len(members))
    folder = options.results / "cross"
    held = cross(members, options.blocks, cost, options.processes, done, folder, options.links)
    write_cross(options.results / "cross.json", held, {"revision": revision(), **options.unusual()})
    print_cross(console, held)


def run_explain(console: Console, options: Options, traces: Sequence[Trace], cost: CostModel) -> None:
    """The story of one block: at each size, or in the live pool that a log is of; raises ExplainError."""
    if options.events is not None:
        explain_log(console, options.events, options.explain, options.blocks, cost)
        return
    for blocks in options.blocks:
        for trace in traces:
            explain_trace(console, trace, options.explain, blocks, cost, options.links)
