"""Bounds and counters of a client."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hostlib.client.health import HealthOptions
from hostlib.client.node_window import NodeWindowOptions
from hostlib.native.lane_options import LaneOptions
from hostlib.protocol.seal import new_content


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """Bounds of a client; times in seconds."""

    lane: LaneOptions = field(default_factory=LaneOptions)
    node: NodeWindowOptions = field(default_factory=NodeWindowOptions)
    health: HealthOptions = field(default_factory=HealthOptions)
    probe_window: int = 16
    """Probes in flight to one home once their window has opened (`LaneOptions`), never fewer than it began
    with: what the pool answers must not wait behind what the home is asked for."""
    tick_s: float = 0.02
    """Seconds between looks for timeouts while something in flight may be late."""
    max_transfers: int = 4096
    """Blocks in transfer at once; more are refused with OverloadedError."""
    corrupt_limit: int = 3
    """Wrong values of one block after which it is given up."""
    repairs_per_s: float = 32.0
    """Reports that the pool is wrong, over a longer time; twice as many at once. Above that, wrong values are
    asked for past the pool without a report."""
    relist_s: float = 2.0
    """Seconds for which a PUT to a silent home waits for a list of members without that home. Where no
    controller makes lists, the PUT fails at once."""
    blackout_s: float = 5.0
    """Seconds for which a transfer waits if all of several homes are silent: a switch may restart, or this
    node's own link may be down."""
    transfer_s: float = 45.0
    """Most seconds that one transfer takes from when it is asked for, whatever arrives meanwhile; and
    `fragment_s` longer for each of its fragments."""
    fragment_s: float = 0.01
    multicast: bool = True
    """Whether switches on the way copy a PUT to all of its homes; else each gets its own from here."""
    asks_past_pool: bool = False
    """Whether homes alone answer what is asked about blocks (STAT), not the pools on the way to them."""
    controller: str | None = None
    """Address of the controller, who is asked for the list of members at the start and when there is a newer
    one; None where there is none."""
    latencies_kept: int = 200_000
    new_content: Callable[[], int] = new_content
    """Makes the content id of a write; where a run is to be repeated exactly, from a seed."""

    def longest_s(self, fragments: int) -> float:
        """Return how long a transfer of so many fragments may take."""
        return self.transfer_s + fragments * self.fragment_s


@dataclass(slots=True)
class ClientStats:
    """Counters of a client: fragments unless the name says blocks."""

    blocks_fetched: int = 0
    blocks_put: int = 0
    blocks_deleted: int = 0
    pools_untold: int = 0
    """Deletions that the controller did not say to be known to all switches."""
    pools_hinted: int = 0
    """Hints that a pool carries out, as the controller said."""
    blocks_joined: int = 0
    """Wanted while another task of this node was already fetching them."""
    not_found: int = 0
    timeouts: int = 0
    """Blocks given up because their homes did not answer."""
    overloaded: int = 0
    """Blocks refused because the queue was full."""
    refused: int = 0
    """Blocks that a home refused to keep or could not give back."""
    corrupt: int = 0
    """Values that failed their check: a fragment's checksum, its tag, or its length."""
    corrupt_blocks: int = 0
    """Blocks given up because they were wrong past the pool too."""
    repairs: int = 0
    """Wrong values of the pool that were reported."""
    failovers: int = 0
    """Blocks asked for at another home because the one asked was silent."""
    homes_suspected: int = 0
    """Times that a home fell silent."""
    from_pool: int = 0
    from_home: int = 0
    merged: int = 0
    retransmits: int = 0
    put_again: int = 0
    """Blocks offered anew to a home that lost a part of them."""
    late: int = 0
    """Replies that nobody waits for (any more): duplicates, and answers to abandoned requests."""
    unexpected: int = 0
    """Well-formed messages that a client does not take."""
    malformed: dict[str, int] = field(default_factory=dict)
    """Messages that could not be read, by reason."""


class RateLimit:
    """Limit of `per_s` over a longer time and of twice as many at once; `allows` counts."""

    def __init__(self, per_s: float) -> None:
        self._per_s = per_s
        self._left = self._most = 2 * per_s
        self._now_s = 0.0

    def allows(self, now_s: float) -> bool:
        """Return whether one more is within the limit."""
        self._left = min(self._most, self._left + (now_s - self._now_s) * self._per_s)
        self._now_s = now_s
        if self._left < 1:
            return False
        self._left -= 1
        return True
