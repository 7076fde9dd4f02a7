"""Interrupts: Ctrl-C and similar signals end every experiment through KeyboardInterrupt, so that it cleans
up.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def raise_on_signals() -> None:
    """Raise KeyboardInterrupt on SIGINT, SIGTERM and SIGHUP.

    SIGINT is set, too: a shell starts background processes with it ignored.
    """
    for number in SIGNALS:
        signal.signal(number, _interrupt)


def end_on_interrupt() -> None:
    """Make Ctrl-C end this process without a message, until `raise_on_signals` is called."""
    signal.signal(signal.SIGINT, lambda number, frame: os._exit(130))


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@contextmanager
def one_interrupt() -> Iterator[None]:
    """Let only the first handled signal in the block raise KeyboardInterrupt, and ignore later ones.

    So the clean-up that the first one begins is not interrupted. Use it in the main thread.
    """
    handled = {number: signal.getsignal(number) for number in SIGNALS}
    handled = {number: handler for number, handler in handled.items() if callable(handler)}
    interrupted = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        if not interrupted:
            interrupted = True
            raise KeyboardInterrupt

    for number in handled:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in handled.items():
            signal.signal(number, handler)
