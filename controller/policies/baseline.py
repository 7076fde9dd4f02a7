"""Published policies from the libcachesim package, behind the interface of a policy.

libcachesim does not say what it evicts, so after each admission every block of the pool is looked up: fine
for the hundreds or few thousand blocks of a switch, too slow for replays of large pools, which ask the
cache itself (`experiments/policies/caches.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from controller.policies.base import NOTHING, Policy
from controller.policies.events import Admit, Decision, Evict, Found, Hits, Key, Lost, Miss

BASELINES = {
    "arc": "ARC",
    "s3fifo": "S3FIFO",
    "lirs": "LIRS",
    "mq": "MQ",
    "gdsf": "GDSF",
    "2q": "TwoQ",
    "sieve": "Sieve",
}
"""Class names of those libcachesim policies that can look up single blocks and draw no random numbers."""
MIN_BLOCKS = 20
"""Below that, parts of some of these policies have no room, and libcachesim ends the process."""
MAX_TOUCHES = 64
"""Requests that one event can stand for; more say nothing new to these policies."""


class PolicyError(ValueError):
    """A policy that does not exist or cannot be made; the message says which exist, or what is missing."""


def load_libcachesim(policy: str) -> Any:
    """Return the module libcachesim; raises PolicyError, which names the policy, where it is absent."""
    try:
        import libcachesim
    except ImportError as error:
        raise PolicyError(
            f"the policy {policy} needs the Python package libcachesim, which can't be imported ({error}): "
            "make setup-all installs it on x86-64. The policies reuse, lru, lfu and fifo need no package"
        ) from None
    return libcachesim


class Baseline(Policy):
    """A policy of libcachesim, asked and looked up only: some of them hang after single blocks were removed.

    So the cache may hold blocks that the pool lost, and the pool pinned blocks that the cache evicted; the
    pool is then smaller by these for a while, never larger. They count blocks, not slots: a block for which
    the pool has no slots left is not admitted until they evict others.
    """

    name = "libcachesim"

    def __init__(self, name: str, capacity_blocks: int, capacity_slots: int | None = None) -> None:
        super().__init__(capacity_blocks, capacity_slots)
        self.name = name  # type: ignore[misc]  # the class stands for many policies
        libcachesim = load_libcachesim(name)
        # By default its hash table takes 128 MB, and 0.2 s to make.
        hashpower = capacity_blocks.bit_length() + 3
        self._cache = getattr(libcachesim, BASELINES[name])(capacity_blocks, hashpower=hashpower)
        self._request = libcachesim.Request()
        self._request.obj_size = 1
        self._held: dict[Key, None] = {}

    def __contains__(self, key: object) -> bool:
        return key in self._held

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._held)

    def miss(self, event: Miss) -> Sequence[Decision]:
        if event.key in self._held:
            self._touch(event.key, event.now_s, event.times)
            return NOTHING
        return self._admit(event.key, event.now_s, event.fragments)

    def hits(self, event: Hits) -> None:
        if event.key in self._held:
            self._touch(event.key, event.now_s, event.times)

    def lost(self, event: Lost) -> None:
        if event.key in self._held:
            self._leave(event.key)

    def found(self, event: Found) -> Sequence[Decision]:
        if event.key in self._held:
            return NOTHING
        decisions = self._admit(event.key, event.now_s, event.fragments)
        # What is in the pool already needs no admission; if it was not let in, it has to go.
        return decisions[:-1] if event.key in self._held else (*decisions, Evict(event.key))

    def _touch(self, key: Key, now_s: float, times: int) -> None:
        for _ in range(min(times, MAX_TOUCHES)):
            self._ask(key, now_s)

    def _leave(self, key: Key) -> None:
        del self._held[key]
        self.capacity.left(key)

    def _admit(self, key: Key, now_s: float, fragments: int) -> Sequence[Decision]:
        self._ask(key, now_s)
        gone = [other for other in self._held if other not in self.pinned and not self._has(other)]
        for other in gone:
            self._leave(other)
        evictions = [Evict(other) for other in gone]
        if not self.capacity.fits(fragments) or not self._has(key):
            return evictions
        self._held[key] = None
        self.capacity.entered(key, fragments)
        return [*evictions, Admit(key)]

    def _ask(self, key: Key, now_s: float) -> None:
        self._request.obj_id = object_id(key)
        self._request.clock_time = int(now_s)
        self._cache.get(self._request)

    def _has(self, key: Key) -> bool:
        self._request.obj_id = object_id(key)
        return self._cache.find(self._request, False) is not None


def object_id(key: Key) -> int:
    """Return a number for libcachesim: a trace's own id, or 63 bits of a key, which is a hash already."""
    return key if isinstance(key, int) else int.from_bytes(key[:8], "little") >> 1
