"""Which storage node is a key's home: rendezvous hashing over the nodes' addresses.

Every host computes the same home without asking anyone, whatever the order of its list, and a node
that leaves moves only its own keys (Thaler and Ravishankar, "Using name-based mappings to increase
hit rates", IEEE/ACM Transactions on Networking 6(1), 1998).
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def home_of(key: bytes, nodes: Sequence[str]) -> str:
    """The address in `nodes` with the highest hash together with `key`."""
    return max(nodes, key=lambda node: (blake2b(node.encode(), key=key, digest_size=8).digest(), node))
