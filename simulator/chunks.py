"""Fetching of a request's chunks behind its prefix by a simulated node (workload/blend.py)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from functools import partial
from typing import Protocol

from simulator.events import Event, Loop
from simulator.messages import Block


class Fetcher(Protocol):
    """Way of a node to blocks beyond its own memory."""

    get_s: list[float]

    def backlog_s(self, home: str) -> float:
        """Return how many seconds a fetch from this home waits now."""

    def fetch(self, blocks: Sequence[Block], finished: Callable[[list[str]], None]) -> None:
        """Fetch a chain's longest available prefix; `finished` gets the source of each of its blocks."""

    def store(self, blocks: Iterable[Block]) -> None:
        """Store new blocks in the background."""


def fetch_chunks(
    loop: Loop, fetcher: Fetcher, wanted: Sequence[tuple[int, Block]]
) -> Generator[Event | float, None, dict[int, str]]:
    """Fetch all chunks at the same time, each by itself.

    Returns the source of each chunk that was available, by its place.
    """
    done, found = loop.event(), dict[int, str]()
    waiting = len(wanted)

    def finished(place: int, sources: list[str]) -> None:
        nonlocal waiting
        found.update((place, source) for source in sources)
        waiting -= 1
        if not waiting:
            done.succeed()

    for place, block in wanted:
        report: Callable[[list[str]], None] = partial(finished, place)
        fetcher.fetch([block], report)
    yield done
    return found
