"""Counters of Weir's client, asked for inside an engine's process."""

from __future__ import annotations

from hostlib.engine import open_pools


def offered_bytes() -> int:
    """Return the bytes of blocks that this process sent to storage nodes and that they acknowledged."""
    return sum(int(pool.stats()["stored_bytes"]) for pool in open_pools())
