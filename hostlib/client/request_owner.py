"""Interfaces between an exchange (`hostlib.client.exchange`) and those whose requests it sends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from hostlib.native.lane import Request
from hostlib.protocol import wire

Handler = Callable[[wire.Message, str, float], None]
"""Handler of a message. Its arguments: the message, the address it came from, and the time."""
Taker = Callable[[Sequence[wire.Buffer], int, str, float], "Taken | None"]
"""Handler that takes a run of datagrams at once, if there is one from an index on. Its arguments: the
datagrams, the index, the address they came from, and the time."""


Encoder = Callable[[list[Request[Any]], int, int, float], list[bytes]]
"""Encoder of as many of `requests[at:]` as fit. Its arguments: the requests, `at`, the first sequence number,
and the time."""


class Taken(NamedTuple):
    """A run of datagrams that was dealt with."""

    datagrams: int
    heard: bool
    """Whether the host that they came from sent any of them itself; then they had this epoch."""
    epoch: int


class RequestOwner(Protocol):
    """Owner of requests."""

    @property
    def until_s(self) -> float:
        """Return when it has taken as long as it may."""

    def overdue(self) -> None:
        """End a transfer that has taken as long as it may."""

    def datagrams(self, requests: Sequence[Request[Any]], sequence: int, now_s: float) -> list[bytes]:
        """Return requests as they are sent now, numbered from `sequence` on."""

    def retried(self, request: Request[Any]) -> None:
        """Note that the request was not answered in time, and is queued again."""

    def gave_up(self, request: Request[Any]) -> None:
        """Go on, or end: the request was not answered before its deadline."""

    def silent(self, home: str) -> None:
        """Go on without a home that has been silent for too long; it may be another than this one's."""

    def fallen(self, home: str) -> None:
        """Go on without a home that is down by a new list of members; it may be another than this one's."""
