"""Options and counters of a storage node."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class StorageOptions:
    """Options of a storage node."""

    address: str = ""
    """Address of the node itself; empty if it has no peers."""
    link_bit_s: float = 0.0
    """Turns what is queued into a backlog in ms; 0 for unlimited."""
    ssd_bytes_per_s: float = 0.0
    """Rate of the modelled device in bytes per second; 0 for unlimited."""
    read_ahead_blocks: int = 0
    controller: str | None = None
    """Address of who is told, by HELLO, that this node lives."""


@dataclass(slots=True)
class StorageStats:
    """Counters of a storage node, in messages."""

    gets: int = 0
    retries: int = 0
    """GETs that were asked before."""
    bypasses: int = 0
    """GETs past the pool."""
    repairs: int = 0
    """GETs because the pool's value was wrong."""
    fills: int = 0
    """GETs on behalf of a pool."""
    values: int = 0
    not_found: int = 0
    puts: int = 0
    reclaims: int = 0
    """PUTs on their way out of a pool."""
    stats: int = 0
    deletes: int = 0
    lists: int = 0
    refused: int = 0
    other_writes: int = 0
    """GETs for another write of a block than is here, or another length."""
    unreadable: int = 0
    """Blocks that the disk could not give back."""
    unexpected: int = 0
    overloaded: int = 0
    """GETs refused, and acknowledgements left out, because too much waited for the disk."""
    malformed: dict[str, int] = field(default_factory=dict)
    """Messages that could not be read, by reason."""
