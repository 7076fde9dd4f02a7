"""Bounds of the blocks of a storage node, what is counted of them, and what becomes of a PUT."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Bounds."""

    max_partial: int = 1024
    """Writes of which some fragments are there; the oldest gives way."""
    max_partial_bytes: int = 256 << 20
    tenant_bytes: int = 0
    """Most bytes of one tenant's blocks; 0 for no limit."""
    max_waiting_bytes: int = 256 << 20
    """Most bytes of blocks on their way to the disk; above that, PUTs are refused for now."""
    retained_share: float = 0.5
    """Share of DRAM that retained blocks of all tenants may have; those of one tenant have half of it."""
    max_retained: int = 65_536
    """Number of blocks that are retained at most."""


@dataclass(slots=True)
class StoreStats:
    """Blocks."""

    dram_hits: int = 0
    ssd_hits: int = 0
    misses: int = 0
    stored: int = 0
    demoted: int = 0
    """Moved from DRAM to SSD."""
    read_ahead: int = 0
    """Moved from SSD to DRAM before anyone asked for them."""
    read_ahead_hits: int = 0
    """Blocks read ahead that were asked for since."""
    read_ahead_unused: int = 0
    """Blocks read ahead that were moved back before anyone asked for them."""
    partial_dropped: int = 0
    """PUTs given up incomplete, to make room for newer ones."""
    lost_from_dram: int = 0
    """Left DRAM and could not be kept on SSD."""
    deleted: int = 0
    """Blocks that were deleted because their writer said so."""
    retained: int = 0
    """Asked for to be retained, and so they are."""
    came_back: int = 0
    """Writes that were put or copied here after they had been deleted, and refused."""


class Kept(Enum):
    """Outcome for a fragment that was put."""

    RECEIVED = 0
    """The block is not whole yet."""
    HELD = 1
    """The block is held, as it was asked for."""
    COMMITTING = 2
    """The block is whole, and on its way to stable storage: see `BlockStore.when_safe`."""
    REFUSED = 3


class PutOutcome(NamedTuple):
    """`write`: the content id of what is held; `reason`: why it is refused."""

    kept: Kept
    write: int = 0
    reason: int = 0


RECEIVED = PutOutcome(Kept.RECEIVED)
