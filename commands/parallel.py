"""Jobs spread over the cores of the machine, in forked processes."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any, TypeVar

from commands.interrupt import SIGNALS, one_interrupt

Job = TypeVar("Job")
Result = TypeVar("Result")

_work: Callable[[Any], Any]


def run_all(
    work: Callable[[Job], Result], jobs: Sequence[Job], processes: int, done: Callable[[], None]
) -> list[Result]:
    """Return the results in the order of the jobs; `done` is called after each.

    `work` may be any callable: processes are forked, so neither it nor what it holds is sent to them. An
    exception or interrupt ends running jobs, too.
    """
    context = multiprocessing.get_context("fork")
    others = multiprocessing.active_children()
    with (
        one_interrupt(),
        ProcessPoolExecutor(processes, context, initializer=_prepare, initargs=(work,)) as executor,
    ):
        try:
            futures = [executor.submit(_run, job) for job in jobs]
            for future in as_completed(futures):
                future.result()  # the first failure ends the run
                done()
            return [future.result() for future in futures]
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                if process not in others:
                    process.terminate()
            raise


def _prepare(work: Callable[[Any], Any]) -> None:
    # Ctrl-C reaches all processes of a terminal, several times if one is impatient. An executor takes the
    # interrupt of a job for its result and gives the process another one, so the first process alone decides.
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    global _work  # noqa: PLW0603 - an initializer has nowhere else to leave what the jobs of its process need
    _work = work


def _run(job: Any) -> Any:
    return _work(job)
