"""Running a function in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

Found = TypeVar("Found")


def in_own_thread(work: Callable[[], Found]) -> Found:
    """Return what `work` returns, or raise what it raises. An interrupt does not wait for it.

    libcachesim keeps random numbers for each thread, and they begin alike in each. So LHD, Hyperbolic and
    CACHEUS decide the same each time when they are made and asked in a new thread.
    """
    done: Future[Found] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    Thread(target=run, daemon=True).start()
    return done.result()
