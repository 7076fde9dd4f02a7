"""Work in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

Found = TypeVar("Found")


def in_own_thread(work: Callable[[], Found]) -> Found:
    """Return what `work` returns, or raise what it raises. An interrupt does not wait for it.

    libcachesim's random numbers are a thread's own and begin alike in each. Made in a new one and asked in a
    new one, LHD, Hyperbolic and CACHEUS decide the same each time, whatever was replayed before.
    """
    done: Future[Found] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    Thread(target=run, daemon=True).start()
    return done.result()
