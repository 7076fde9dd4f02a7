"""Counters of what the control plane itself costs, which the question whether the pool pays depends on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(slots=True)
class Costs:
    """Messages of one P4Runtime session; each field is written by one thread only."""

    sessions: int = 0
    """Times that a session was set up."""
    p4runtime_writes: int = 0
    """Write requests."""
    p4runtime_updates: int = 0
    """Updates in them."""
    p4runtime_update_errors: int = 0
    """Updates that the switch refused."""
    p4runtime_reads: int = 0
    """Read requests."""
    entities_read: int = 0
    """Entities that came back."""
    digest_lists: int = 0
    digests: int = 0
    packet_ins: int = 0
    packet_outs: int = 0
    messages_dropped: int = 0
    """Stream messages that found the controller's queue full."""
    rpc_bytes_sent: int = 0
    """Bytes of P4Runtime messages, without those that gRPC and TCP add."""
    rpc_bytes_received: int = 0
    stream_bytes_sent: int = 0
    stream_bytes_received: int = 0


@dataclass(slots=True)
class PoolCounts:
    """Counters of one pool."""

    admitted: int = 0
    evicted: int = 0
    reclaimed: int = 0
    """Evicted blocks that were sent to their home, which did not hold them, and acknowledged."""
    held_elsewhere: int = 0
    """Evicted blocks that their home held already, as it said when it got the first fragment."""
    stubs: int = 0
    """Evicted blocks that were not worth the transfer: only the policy's memory of them stays."""
    dropped: int = 0
    """Evicted blocks that were removed at once, as configured or because too many others were on their way.
    """
    not_whole: int = 0
    """Evicted blocks of which some fragments were never filled."""
    reclaims_failed: int = 0
    """Evicted blocks that should have been sent, but nobody acknowledged them."""
    reclaim_requests: int = 0
    """Fragments of evicted blocks that the switch was asked to send."""
    reclaim_bytes: int = 0
    """Frames of those fragments that were acknowledged, and of the acknowledgements."""
    expected: int = 0
    """Blocks of which a node said that it will put them."""
    hints: int = 0
    """Hints of nodes that were heard."""
    hints_done: int = 0
    """Hinted blocks that were retained, or that left."""
    fills: int = 0
    """Blocks fetched on admission."""
    not_found: int = 0
    """Fetched blocks that their home did not hold."""
    over_quota: int = 0
    """Evicted blocks that a tenant gave up for another of its own, as it held as much as it may."""
    in_the_way: int = 0
    """Evicted blocks that lay between free slots which another block needed in one piece."""
    no_slot: int = 0
    """Admissions that found no free slots."""
    refused: int = 0
    """Admissions that the switch refused, such as for a full table."""
    elsewhere: int = 0
    """Reports of blocks that another switch on their way should keep."""
    misfits: int = 0
    """Reports of blocks with more fragments than the pool gives a block."""
    hits: int = 0
    """Requests for resident blocks, in blocks."""
    subscriptions: int = 0
    """Requests that asked for what else there is of their prefix."""
    group_changes: int = 0
    """Multicast groups of subscribers set or removed."""
    pushes: int = 0
    """Blocks that were multicast to their subscribers unasked."""
    read_backs: int = 0
    """Times that the switch's entries were read back and compared."""


def add_up(parts: Iterable[Costs | PoolCounts]) -> dict[str, int]:
    """Return the sums by name."""
    total: dict[str, int] = {}
    for part in parts:
        for name, value in asdict(part).items():
            total[name] = total.get(name, 0) + value
    return total
