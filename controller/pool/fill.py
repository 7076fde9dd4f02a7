"""Fill: blocks that were admitted and are fetched from their home at once.

One packet asks for all fragments of a block. They end in the switch, so the controller hears nothing of
them; a home that does not hold the block says so. What gets lost is filled by the next request that
passes. The controller therefore only paces what it asks for, and asks once.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from controller.operations import Fill
from controller.pool.pace import Pace
from hostlib.protocol import wire

if TYPE_CHECKING:
    from ipaddress import IPv4Address


class _Job(NamedTuple):
    key: bytes
    fragments: int
    home: IPv4Address


class Fills:
    """The fetches of one switch: while fewer than `max_fragments` were asked for within `interval_s`, one
    block more; the rest waits its turn."""

    def __init__(self, max_fragments: int, interval_s: float, max_waiting: int) -> None:
        self._max_waiting = max_waiting
        self._pace = Pace(max_fragments, interval_s)
        self._jobs: deque[_Job] = deque()

    def __len__(self) -> int:
        return len(self._jobs)

    def start(self, key: bytes, fragments: int, home: IPv4Address) -> bool:
        """Fetch a block; return False if too many wait already."""
        if len(self._jobs) >= self._max_waiting:
            return False
        self._jobs.append(_Job(key, fragments, home))
        return True

    def cancel(self, key: bytes) -> None:
        """Cancel the fetch of a block that has left the pool."""
        self._jobs = deque(job for job in self._jobs if job.key != key)

    def clear(self) -> None:
        """Forget all fetches."""
        self._jobs.clear()

    @property
    def due_s(self) -> float:
        """Return when `poll` has something to send, if nothing happens before."""
        return self._pace.due_s if self._jobs else float("inf")

    def poll(self, now_s: float) -> list[Fill]:
        """Return what to send now."""
        requests: list[Fill] = []
        while self._jobs and self._pace.room(now_s):
            job = self._jobs.popleft()
            requests.append(Fill(job.key, 0, job.fragments, job.home, wire.numbered_from(now_s)))
            self._pace.sent(now_s, job.fragments)
        return requests
