"""Ctrl-C and its like: every experiment ends by way of KeyboardInterrupt, so that it cleans up."""

from __future__ import annotations

import signal
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def raise_on_signals() -> None:
    """Also SIGINT: what a shell starts in the background begins with it ignored."""
    for number in SIGNALS:
        signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
