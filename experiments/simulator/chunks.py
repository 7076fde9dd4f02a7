"""How a simulated node comes by the chunks of a request that are behind its prefix (workload/blend.py)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from experiments.simulator.events import Event, Loop
from experiments.simulator.messages import Block

if TYPE_CHECKING:
    from experiments.simulator.node import Fetcher


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
