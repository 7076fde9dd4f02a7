"""The invariants of every policy, checked at every event."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from controller.policies.base import Policy
from controller.policies.events import Admit, Decision, Event, Evict, Found, Key, Lost, Miss


class InvariantError(AssertionError):
    """A policy broke a rule that all of them keep."""


class Checked:
    """Passes events on to a policy and follows its decisions: capacity, pins, and that both records agree."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._held: set[Key] = set()
        self._fragments: dict[Key, int] = {}
        """Of every block whose size was told; a block that comes with another is taken to be like it."""

    def __contains__(self, key: object) -> bool:
        return key in self._held

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._held)

    def handle(self, event: Event) -> Sequence[Decision]:
        """As Policy.handle; raises InvariantError."""
        if isinstance(event, Lost):
            self._held.discard(event.key)
        if isinstance(event, Miss | Found) and event.key not in self._held:
            self._fragments[event.key] = event.fragments
        if isinstance(event, Found):
            self._held.add(event.key)
        decisions = self.policy.handle(event)
        for decision in decisions:
            self._follow(decision, event)
        self._require(len(self._held) <= self.policy.capacity_blocks, "holds more than its capacity", event)
        self._require(self._slots_fit(), "holds more slots than its capacity", event)
        self._require(len(self.policy) == len(self._held), "lost count of what it holds", event)
        self._require(
            (event_key(event) in self.policy) == (event_key(event) in self._held), "is unsure", event
        )
        return decisions

    def check_all(self) -> None:
        """Compare the whole content; too slow for every event."""
        if set(self.policy) != self._held:
            raise InvariantError(f"{self.policy.name}: its content is not what its decisions say")

    def _follow(self, decision: Decision, event: Event) -> None:
        if isinstance(decision, Admit):
            self._require(decision.key not in self._held, f"admits {decision.key!r} twice", event)
            self._require(len(self._held) < self.policy.capacity_blocks, "admits before it evicts", event)
            self._held.add(decision.key)
            if isinstance(event, Miss):
                self._fragments[decision.key] = event.fragments
            self._require(self._slots_fit(), "admits before there are slots", event)
        elif isinstance(decision, Evict):
            self._require(
                decision.key in self._held, f"evicts {decision.key!r}, which it does not hold", event
            )
            pinned = decision.key in self.policy.pinned and not isinstance(event, Found)
            self._require(not pinned, f"evicts {decision.key!r}, which is pinned", event)
            self._held.remove(decision.key)

    def _slots_fit(self) -> bool:
        slots = self.policy.capacity_slots
        return slots is None or sum(self._fragments[key] for key in self._held) <= slots

    def _require(self, holds: bool, complaint: str, event: Event) -> None:
        if not holds:
            raise InvariantError(f"{self.policy.name} {complaint}, at {event}")


def event_key(event: Event) -> Key | None:
    """The block an event is about, None for the load of a home."""
    return getattr(event, "key", None)
