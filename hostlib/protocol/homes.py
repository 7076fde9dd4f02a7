"""Which storage nodes are a key's homes: rendezvous hashing over the nodes' addresses.

Every host computes the same order without asking anyone, whatever the order of its list, and a node
that leaves moves only its own keys (Thaler and Ravishankar, "Using name-based mappings to increase
hit rates", IEEE/ACM Transactions on Networking 6(1), 1998).
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def home_of(key: bytes, nodes: Sequence[str]) -> str:
    """Return the address in `nodes` with the highest hash together with `key`."""
    home, highest = nodes[0], b""
    for node in nodes:  # `home_order` has the rule; asked for each new block, so without its tuples
        weight = blake2b(node.encode(), key=key, digest_size=8).digest()
        if weight > highest or (weight == highest and node > home):
            home, highest = node, weight
    return home


def home_order(key: bytes, nodes: Sequence[str]) -> list[str]:
    """Return all addresses in `nodes`, the highest hash first: a block's R homes are the first R that are
    up."""
    weighed = [(blake2b(node.encode(), key=key, digest_size=8).digest(), node) for node in nodes]
    weighed.sort(reverse=True)
    return [node for _, node in weighed]
