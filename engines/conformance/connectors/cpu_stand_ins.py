"""Stand-ins for the CUDA calls of connectors, on a CPU.

There a step is over when it returns, so events and streams have nothing to wait for. Nothing of what a
connector stores, names or finds is changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class DoneEvent:
    """An event that has always happened."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def record(self, *_: Any) -> None:
        """Do nothing."""

    def synchronize(self) -> None:
        """Do nothing."""

    def wait(self, *_: Any) -> None:
        """Do nothing."""

    def query(self) -> bool:
        """Return whether it has happened."""
        return True

    def elapsed_time(self, _: Any) -> float:
        """Return 0 milliseconds: copies are made when they are asked for."""
        return 0.0


class NoStream:
    """A stream whose work is done at once."""

    def wait_stream(self, _: Any) -> None:
        """Do nothing."""

    def wait_event(self, _: Any) -> None:
        """Do nothing."""


@contextmanager
def _stream(_: Any) -> Iterator[None]:
    yield


def install() -> None:
    """Put the stand-ins where connectors look for CUDA's."""
    import torch
    from vllm.platforms import current_platform

    torch.cuda.Event = DoneEvent
    kind = type(current_platform)
    kind.Stream = NoStream
    kind.current_stream = staticmethod(NoStream)
    kind.stream = staticmethod(_stream)
