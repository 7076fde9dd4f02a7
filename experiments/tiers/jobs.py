"""The simulations of a run, and their execution in parallel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

from commands.parallel import run_all
from experiments.tiers.options import TiersOptions
from experiments.tiers.scenarios import Result, play
from workload.trace import Trace

Job = tuple[int, str, str, str]
"""Index of the trace in the run, rule, gate and prefetch."""


def make_jobs(traces: int, options: TiersOptions) -> list[Job]:
    """Return a job for every combination on every trace."""
    return list(product(range(traces), options.tiers, options.gate, options.prefetch))


def run_jobs(
    jobs: Sequence[Job], traces: Sequence[Trace], options: TiersOptions, done: Callable[[], None]
) -> list[Result]:
    """Return the results in the order of the jobs; `done` is called after each."""

    def run(job: Job) -> Result:
        trace, tiers, gate, prefetch = job
        return play(traces[trace], options, tiers, gate, prefetch)

    return run_all(run, jobs, options.jobs, done)
