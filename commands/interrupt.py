"""End every experiment on Ctrl-C and its like through KeyboardInterrupt, so that it cleans up."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def raise_on_signals() -> None:
    """Also SIGINT: what a shell starts in the background begins with it ignored."""
    for number in SIGNALS:
        signal.signal(number, _interrupt)


def end_on_interrupt() -> None:
    """Have Ctrl-C end this process without a word, until `raise_on_signals`."""
    signal.signal(signal.SIGINT, lambda number, frame: os._exit(130))


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@contextmanager
def one_interrupt() -> Iterator[None]:
    """Within it the first of the signals that are handled raises KeyboardInterrupt and the others do nothing,
    so that what the first one begins to end ends. To be used in the main thread."""
    handled = {number: signal.getsignal(number) for number in SIGNALS}
    handled = {number: handler for number, handler in handled.items() if callable(handler)}
    came = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal came
        if not came:
            came = True
            raise KeyboardInterrupt

    for number in handled:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in handled.items():
            signal.signal(number, handler)
