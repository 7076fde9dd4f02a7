"""Times of sessions and of groups of requests that wait for the same answer, such as sub-agents."""

from __future__ import annotations

from simulator.spread import Spread, spread
from workload.trace import InSession

Group = tuple[int, ...]
"""Numbers of the requests that all members of a group wait for."""


class SessionTimes:
    """Times of sessions, from the arrivals and first tokens of their requests."""

    def __init__(self) -> None:
        self._sessions: set[int] = set()
        self._began_s: dict[Group, float] = {}
        self._first_token_s: dict[Group, float] = {}
        """Time in seconds of the last first token in each group."""
        self._members: dict[Group, int] = {}

    def came(self, place: InSession, now_s: float) -> None:
        """Note that a request came."""
        self._sessions.add(place.session)
        if place.after:
            self._began_s.setdefault(place.after, now_s)
            self._members[place.after] = self._members.get(place.after, 0) + 1

    def first_token(self, place: InSession, now_s: float) -> None:
        """Note that the first token of a request is there."""
        if place.after:
            self._first_token_s[place.after] = now_s

    @property
    def sessions(self) -> int:
        """Return the number of sessions of which any request came."""
        return len(self._sessions)

    def groups(self) -> Spread:
        """Return the times from a group's first arrival to its last first token, for groups of two or
        more."""
        return spread(
            [
                self._first_token_s[group] - began_s
                for group, began_s in self._began_s.items()
                if self._members[group] > 1 and group in self._first_token_s
            ]
        )
