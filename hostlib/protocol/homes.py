"""Storage nodes that are a key's homes, by rendezvous hashing over their addresses.

Every host computes the same order without asking anyone, whatever the order of its list, and a node that
leaves moves only its own keys (Thaler and Ravishankar, "Using name-based mappings to increase hit rates",
IEEE/ACM Transactions on Networking 6(1), 1998).
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def home_of(key: bytes, nodes: Sequence[str]) -> str:
    """Return the address in `nodes` with the highest hash together with `key`."""
    return max(_weighed(key, nodes))[1]


def home_order(key: bytes, nodes: Sequence[str]) -> list[str]:
    """Return all addresses in `nodes`, the highest hash first: a block's R homes are the first R that are
    up."""
    return [node for _, node in sorted(_weighed(key, nodes), reverse=True)]


def _weighed(key: bytes, nodes: Sequence[str]) -> list[tuple[bytes, str]]:
    return [(blake2b(node.encode(), key=key, digest_size=8).digest(), node) for node in nodes]
