"""Sources of the blocks of requests, with their names for people."""

from __future__ import annotations


def answering(lends: bool) -> str:
    """Return the name of the hosts that answer GETs which no pool answers.

    They are storage nodes, or nodes that lend one another their memory.
    """
    return "lending node" if lends else "storage node"


def sources(lends: bool) -> dict[str, str]:
    """Return the sources from the nearest on: the name in records, and the name for people."""
    return {
        "gpu": "GPU memory",
        "dram": "local DRAM",
        "pool": "pool in the switch",
        "remote": answering(lends),
        "recomputed": "recomputed",
    }
