"""Where the blocks of requests come from, as people read it."""

from __future__ import annotations


def answering(lends: bool) -> str:
    """Return who answers what no pool does: storage nodes, or nodes that lend one another their memory."""
    return "lending node" if lends else "storage node"


def sources(lends: bool) -> dict[str, str]:
    """Return the sources by their names in records, from the nearest."""
    return {
        "gpu": "GPU memory",
        "dram": "local DRAM",
        "pool": "pool in the switch",
        "remote": answering(lends),
        "recomputed": "recomputed",
    }
