"""Link in one direction, first come first served, cut through."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

AT_ONCE_S: Final = 1e-9
"""Longest wait in seconds that counts as rounding: a message right behind another finds the link free."""

Passage = tuple[float, float]
"""Times at which a message's first fragment, when a switch begins to send it on, and its last bit reach the
far end of a link."""


class Link:
    """Link on which messages follow one another at `bytes_per_s`; what arrives more slowly leaves more
    slowly."""

    __slots__ = ("bytes_per_s", "free_s", "latency_s", "longest_wait_s", "name", "sent_bytes")

    def __init__(self, name: str, bytes_per_s: float, latency_s: float) -> None:
        self.name = name
        self.bytes_per_s = bytes_per_s
        self.latency_s = latency_s
        self.free_s = 0.0
        """Time in seconds at which all that was sent so far has left."""
        self.sent_bytes = 0.0
        self.longest_wait_s = 0.0

    def wait_s(self, now_s: float) -> float:
        """Return how many seconds a message that is sent now waits for its turn."""
        return max(0.0, self.free_s - now_s)

    def pass_by(self, size_bytes: float) -> float:
        """Send something small before all that waits, which is delayed by as much; return the seconds it
        takes."""
        self.sent_bytes += size_bytes
        taken_s = size_bytes / self.bytes_per_s
        self.free_s += taken_s
        return taken_s + self.latency_s

    def send(self, now_s: float, size_bytes: float, head_bytes: float, tail_s: float = 0.0) -> Passage:
        """Queue a message and return its passage.

        Its last bit is here at `tail_s`; its head is its first `head_bytes`.
        """
        # Most of a simulation's time is spent here: comparisons instead of min and max.
        begin_s = self.free_s
        if begin_s < now_s:
            begin_s = now_s
        elif begin_s - now_s > self.longest_wait_s:
            self.longest_wait_s = begin_s - now_s
        self.sent_bytes += size_bytes
        first_s = (head_bytes if head_bytes < size_bytes else size_bytes) / self.bytes_per_s
        head_s = begin_s + first_s
        end_s = self.free_s = begin_s + size_bytes / self.bytes_per_s
        if end_s < tail_s:
            end_s = tail_s
        return (head_s if head_s < end_s else end_s) + self.latency_s, end_s + self.latency_s


def send_at_once(links: Iterable[Link], now_s: float, size_bytes: float) -> float:
    """Queue a small message on all links of a way now; return when its last bit is at the end."""
    tail_s = 0.0
    for link in links:
        # The same as Link.send, without a call for each link.
        end_s = link.free_s
        if end_s < now_s:
            end_s = now_s
        elif end_s - now_s > link.longest_wait_s:
            link.longest_wait_s = end_s - now_s
        link.sent_bytes += size_bytes
        link.free_s = end_s = end_s + size_bytes / link.bytes_per_s
        tail_s = (end_s if end_s > tail_s else tail_s) + link.latency_s
    return tail_s


def send_through(
    links: Sequence[Link], first: int, now_s: float, size_bytes: float, head_bytes: float, tail_s: float
) -> tuple[int, float, float]:
    """Queue a message on the links of a way, from `first` on, up to one where it waits for its turn.

    Returns the index of that link, or of the last one, and when head and tail are at its end.
    """
    last = len(links) - 1
    least_bytes = head_bytes if head_bytes < size_bytes else size_bytes
    for place in range(first, len(links)):
        link = links[place]
        begin_s = link.free_s
        waits = begin_s > now_s + AT_ONCE_S
        # The same as Link.send, without a call for each link.
        if begin_s < now_s:
            begin_s = now_s
        elif begin_s - now_s > link.longest_wait_s:
            link.longest_wait_s = begin_s - now_s
        link.sent_bytes += size_bytes
        head_s = begin_s + least_bytes / link.bytes_per_s
        link.free_s = end_s = begin_s + size_bytes / link.bytes_per_s
        if end_s < tail_s:
            end_s = tail_s
        now_s = (head_s if head_s < end_s else end_s) + link.latency_s
        tail_s = end_s + link.latency_s
        if waits and place < last:
            return place, now_s, tail_s
    return last, now_s, tail_s
