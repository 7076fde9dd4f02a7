"""How a simulated node comes by the chunks of a request that are behind its prefix (workload/blend.py)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from functools import partial
from typing import Protocol

from simulator.events import Event, Loop
from simulator.messages import Block


class Fetcher(Protocol):
    """A node's way to blocks beyond its own memory."""

    get_s: list[float]

    def backlog_s(self, home: str) -> float:
        """Return how long a fetch from there waits now."""

    def fetch(self, blocks: Sequence[Block], finished: Callable[[list[str]], None]) -> None:
        """Fetch a chain's longest available prefix; `finished` gets the source of each block."""

    def store(self, blocks: Iterable[Block]) -> None:
        """Keep new blocks, in the background."""


def fetch_chunks(
    loop: Loop, fetcher: Fetcher, wanted: Sequence[tuple[int, Block]]
) -> Generator[Event | float, None, dict[int, str]]:
    """Fetch each for itself, all at the same time; the source of each that could be had, by its place."""
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
