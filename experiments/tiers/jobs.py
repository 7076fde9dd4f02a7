"""All replays of a run, over the cores of the machine."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product

from experiments.tiers.options import TiersOptions
from experiments.tiers.replay import Replay, Result
from workload.trace import Trace

Job = tuple[int, str, str, str]
"""A trace by its place in the run, a rule, a gate, a prefetch."""

_traces: Sequence[Trace] = ()
_options: TiersOptions


def make_jobs(traces: int, options: TiersOptions) -> list[Job]:
    """Every combination on every trace."""
    return list(product(range(traces), options.tiers, options.gate, options.prefetch))


def run_jobs(
    jobs: Sequence[Job], traces: Sequence[Trace], options: TiersOptions, done: Callable[[], None]
) -> list[Result]:
    """Results in the order of the jobs; `done` is called after each."""
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(
        options.jobs, context, initializer=_prepare, initargs=(traces, options)
    ) as executor:
        try:
            futures = [executor.submit(_run, job) for job in jobs]
            for _ in as_completed(futures):
                done()
            return [future.result() for future in futures]
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            raise


def _prepare(traces: Sequence[Trace], options: TiersOptions) -> None:
    global _traces, _options
    _traces, _options = traces, options


def _run(job: Job) -> Result:
    trace, tiers, gate, prefetch = job
    return Replay(_traces[trace], _options, tiers, gate, prefetch).run()
