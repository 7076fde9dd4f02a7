"""Studies of `make policies` beside the usual tables: CROSS (cross-validation), SESSION_HINTS and EXPLAIN."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from emulator.result import revision
from experiments.policies.cross import cross
from experiments.policies.cross_tables import print_cross, write_cross
from experiments.policies.explain import explain_log, explain_trace
from experiments.policies.hints import STRATEGIES, replay_hints, report
from experiments.policies.options import PoliciesOptions
from experiments.policies.replay_cache import Member, generated, recorded
from workload.cost import CostModel
from workload.session_service import SESSIONS
from workload.shapes import COMPARED_SHAPES
from workload.trace import Trace, TraceError

Progress = Callable[[int], Callable[[], None]]
"""Function from the number of jobs to what is called after each of them."""


def run_cross(console: Console, options: PoliciesOptions, cost: CostModel, progress: Progress) -> None:
    """Leave each source of traces out in turn; print and write the result."""
    shapes = tuple(COMPARED_SHAPES) if options.shapes_are_default else options.shapes
    drawn = [
        generated(shape, seed, options.requests, options.generated_tokens)
        for shape in shapes
        for seed in options.all_seeds
    ]
    members = [
        *drawn,
        *(member for path in options.all_sources for member in recorded_members(path, options)),
    ]
    done = progress(len(members))
    folder = options.results / "cross"
    held_out = cross(members, options.blocks, cost, options.processes, done, folder, options.links)
    write_cross(options.results / "cross.json", held_out, {"revision": revision(), **options.non_defaults()})
    print_cross(console, held_out)


def run_hints(console: Console, options: PoliciesOptions, cost: CostModel, progress: Progress) -> None:
    """Measure what hints of nodes save; print and write the result.

    Raises TraceError, also for a trace without sessions.
    """
    traces = [trace for seed in options.all_seeds if (trace := options.read_trace(seed)) is not None]
    for trace in traces:
        if trace.schema.name != SESSIONS:
            raise TraceError(f"{trace.name}: SESSION_HINTS needs recorded sessions, which this has not")
    done = progress(len(options.blocks) * len(STRATEGIES) * len(traces))
    results = replay_hints(traces, options.blocks, cost, options.processes, done, options.links)
    about = {"revision": revision(), "seed": options.seed, **options.non_defaults()}
    report(console, results, options.results / "hints.json", about)


def recorded_members(path: Path, options: PoliciesOptions) -> Iterator[Member]:
    """Yield a recorded trace as one member, or recorded sessions as one for each seed; raises TraceError."""
    for number in options.all_seeds:
        trace = replace(options, trace=path).read_trace(number)
        assert trace is not None
        yield recorded(path.stem, number, trace)
        if trace.schema.name != SESSIONS:
            return


def run_explain(console: Console, options: PoliciesOptions, traces: Sequence[Trace], cost: CostModel) -> None:
    """Print the history of one block at each size, or in the live pool of an
    event log; raises ExplainError."""
    if options.events is not None:
        explain_log(console, options.events, options.explain, options.blocks, cost)
        return
    for blocks in options.blocks:
        for trace in traces:
            explain_trace(console, trace, options.explain, blocks, cost, options.links)
