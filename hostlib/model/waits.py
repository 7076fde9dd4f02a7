"""Parts of the time that the fetch of a chain took, from the times of its blocks."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hostlib.protocol.transfer import FetchedBlock, FetchedChain

QUEUED, PROBING, MERGED, POOL, HOME = "queued", "probing", "merged", "pool", "home"


def waits(fetched: FetchedChain, began_s: float, ended_s: float) -> dict[str, float]:
    """Return the seconds by what was waited for, as the block that came last tells it; they add up to the
    fetch.

    queued: for the node's own windows. probing: for the first fragment, which says whether and how long the
    block is, and at the end of a chain for who says that there is no more. Then, for the rest of the block:
    pool: for a switch. merged: for replies to other nodes' requests. home ADDRESS: for that storage node.
    """
    spent_s: dict[str, float] = defaultdict(float)
    now_s = began_s
    if fetched.blocks:
        last = max(fetched.blocks, key=lambda block: block.times.done_s)
        times = last.times
        for what, until_s in (
            (QUEUED, times.probe_sent_s),
            (PROBING, times.probed_s),
            (QUEUED, times.body_sent_s),
            (origin(last), times.done_s),
        ):
            if until_s > now_s:  # another request may have asked for the block before this one
                spent_s[what] += until_s - now_s
                now_s = until_s
    spent_s[PROBING] += max(0.0, ended_s - now_s)
    return dict(spent_s)


def origin(block: FetchedBlock) -> str:
    """Return where most of a block's fragments came from."""
    if block.from_pool:
        return POOL
    if 2 * block.merged_fragments > block.fragments:
        return MERGED
    return f"{HOME} {block.times.home}"


def block_record(block: FetchedBlock, depth: int) -> dict[str, Any]:
    """Return a block for a request's record; times are CLOCK_MONOTONIC's."""
    return {
        "key": block.key.hex(),
        "depth": depth,
        "fragments": block.fragments,
        "pool_fragments": block.pool_fragments,
        "merged_fragments": block.merged_fragments,
        **block.times._asdict(),
    }
