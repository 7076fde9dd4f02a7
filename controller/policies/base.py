"""Base class of policies: events in, decisions out, never more blocks or slots than the capacity."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar

from controller.policies.capacity import Capacity
from controller.policies.events import (
    WHOLE_END,
    Admit,
    Decision,
    Demoted,
    Event,
    Evict,
    Found,
    Hits,
    HomeLoad,
    Key,
    Lost,
    Miss,
    Pin,
    Unpin,
)

NOTHING: tuple[Decision, ...] = ()


class Policy(ABC):
    """Decides which blocks the pool holds. Subclasses keep their own record of what is in the pool."""

    name: ClassVar[str]

    def __init__(self, capacity_blocks: int, capacity_slots: int | None = None) -> None:
        """Set the capacity. Without `capacity_slots` all blocks are alike, and only their number counts."""
        if capacity_blocks < 1:
            raise ValueError(f"a pool holds at least one block, not {capacity_blocks}")
        self.capacity_blocks, self.capacity_slots = capacity_blocks, capacity_slots
        self.capacity = Capacity(capacity_blocks, capacity_slots)
        """What is held; subclasses say what enters and leaves."""
        self.pinned: set[Key] = set()

    def handle(self, event: Event) -> Sequence[Decision]:
        """Take any event; the decisions are to be carried out in their order. A block takes a slot at least,
        whatever is said of its length. ValueError: a number of times or fragments that cannot be."""
        match event:
            case Miss():
                _require_times(event)
                _require_fragments(event)
                return self.miss(event if event.fragments > 0 else event._replace(fragments=1))
            case Hits():
                _require_times(event)
                self.hits(event)
            case HomeLoad():
                self.home_load(event)
            case Lost():
                self.lost(event)
            case Found():
                _require_fragments(event)
                return self.found(event if event.fragments > 0 else event._replace(fragments=1))
            case Pin():
                self.pinned.add(event.key)
            case Unpin():
                self.pinned.discard(event.key)
            case Demoted():
                return self.demoted(event)
        return NOTHING

    @abstractmethod
    def __contains__(self, key: object) -> bool:
        """Return whether the pool holds the block, as far as decisions and reports go."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of blocks in the pool."""

    @abstractmethod
    def __iter__(self) -> Iterator[Key]:
        """Iterate over the keys of the blocks in the pool."""

    @abstractmethod
    def miss(self, event: Miss) -> Sequence[Decision]:
        """Decide about a block that was asked for and is not in the pool: admit it or not, and evict what
        for."""

    @abstractmethod
    def hits(self, event: Hits) -> None:
        """Note that a block was asked for that was in the pool; it may have left since."""

    @abstractmethod
    def lost(self, event: Lost) -> None:
        """Forget that the pool holds the block."""

    @abstractmethod
    def found(self, event: Found) -> Sequence[Decision]:
        """Keep a block that the pool turned out to hold, making room, or evict it."""

    def demoted(self, event: Demoted) -> Sequence[Decision]:
        """Evict a block that will not be asked for soon, unless it is pinned."""
        if event.key not in self or event.key in self.pinned:
            return NOTHING
        self.lost(Lost(event.key, event.now_s))
        return (Evict(event.key, 0.0),)

    def home_load(self, event: HomeLoad) -> None:  # noqa: B027 - most policies don't ask for the load
        """Note that the wait at a storage node changed."""


def _require_times(event: Miss | Hits) -> None:
    if not 0 < event.times < WHOLE_END:
        raise ValueError(f"a block cannot be asked for {event.times} times: {event}")


def _require_fragments(event: Miss | Found) -> None:
    if event.fragments >= WHOLE_END:
        raise ValueError(f"a block cannot have {event.fragments} fragments: {event}")


class QueuePolicy(Policy):
    """A policy that admits every miss and differs from others only in its choice of a victim."""

    @abstractmethod
    def _add(self, key: Key, count: int) -> None:
        """Note that a block entered the pool, asked for `count` times."""

    @abstractmethod
    def _touch(self, key: Key, count: int) -> None:
        """Note that a block in the pool was asked for `count` times."""

    @abstractmethod
    def _remove(self, key: Key) -> None:
        """Note that a block leaves the pool."""

    @abstractmethod
    def _victims(self) -> Iterator[Key]:
        """Give blocks in the pool, those to evict first first.

        It is read until there is room, and then left; it may change the policy's record on the way, but not
        what is in the pool. What it gave leaves by `_remove` afterwards, unless that is pinned, or there is
        no room even without all of them.
        """

    def miss(self, event: Miss) -> Sequence[Decision]:
        if event.key in self:
            self._touch(event.key, event.times)
            return NOTHING
        return self._admit(event.key, event.times, event.fragments)

    def hits(self, event: Hits) -> None:
        if event.key in self:
            self._touch(event.key, event.times)

    def lost(self, event: Lost) -> None:
        if event.key in self:
            self._leave(event.key)

    def found(self, event: Found) -> Sequence[Decision]:
        if event.key in self:
            return NOTHING
        decisions = self._admit(event.key, 1, event.fragments)
        # What is in the pool already needs no admission; without room for it, it has to go.
        return decisions[:-1] if decisions else (Evict(event.key),)

    def _admit(self, key: Key, count: int, fragments: int) -> Sequence[Decision]:
        """Admit a block, and evict as many as have to leave for it; do nothing if that is not enough."""
        capacity, victims, slots = self.capacity, list[Key](), 0
        if not capacity.fits(fragments):
            for other in self._victims():
                if other not in self.pinned:
                    victims.append(other)
                    slots += capacity.fragments(other)
                    if capacity.fits(fragments, len(victims), slots):
                        break
            else:
                return NOTHING
        for victim in victims:
            self._leave(victim)
        capacity.entered(key, fragments)
        self._add(key, count)
        return (*map(Evict, victims), Admit(key))

    def _leave(self, key: Key) -> None:
        self.capacity.left(key)
        self._remove(key)
