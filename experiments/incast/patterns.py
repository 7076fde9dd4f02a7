"""Patterns of requests: the same prefix, prefixes of each node's own, or a Zipf mix. Pure and seeded.

A prefix is a chain of blocks. Every point of the experiment has prefixes of its own, so that no block of an
earlier point helps a later one. Within a point every burst asks for the same prefixes; with zipf, each burst
draws them anew from the same set.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from workload.keys import KeySpace

SAME, DIFFERENT, ZIPF = PATTERNS = ("same", "different", "zipf")

ZIPF_PREFIXES = 16
ZIPF_EXPONENT = 1.0
ZIPF_CHAIN_BLOCKS = 4

Chain = tuple[bytes, ...]
Burst = dict[str, list[Chain]]
"""Chains that each node asks for, by node."""


def bursts(
    pattern: str, nodes: Sequence[str], blocks: int, count: int, seed: int, label: str, key_space: KeySpace
) -> list[Burst]:
    """Return `count` bursts of requests for `blocks` blocks a node; equal arguments give equal bursts."""
    random = Random(f"{seed} {label}")

    def chain(length: int) -> Chain:
        return tuple(key_space.chain(random.getrandbits(62) for _ in range(length)))

    if pattern == SAME:
        prefix = chain(blocks)
        return [{node: [prefix] for node in nodes}] * count
    if pattern == DIFFERENT:
        own: Burst = {node: [chain(blocks)] for node in nodes}
        return [own] * count
    prefixes = [chain(ZIPF_CHAIN_BLOCKS) for _ in range(max(ZIPF_PREFIXES, blocks // ZIPF_CHAIN_BLOCKS))]
    wanted = max(1, blocks // ZIPF_CHAIN_BLOCKS)
    return [{node: _draw(random, prefixes, wanted) for node in nodes} for _ in range(count)]


def _draw(random: Random, prefixes: Sequence[Chain], wanted: int) -> list[Chain]:
    """Draw distinct prefixes; the n-th has the weight n ** -ZIPF_EXPONENT."""
    left = list(enumerate(prefixes, 1))
    drawn = []
    for _ in range(wanted):
        weights = [rank**-ZIPF_EXPONENT for rank, _ in left]
        (picked,) = random.choices(range(len(left)), weights)
        drawn.append(left.pop(picked)[1])
    return drawn


def distinct_blocks(burst: Burst) -> set[bytes]:
    """Return the keys of all blocks that any node asks for."""
    return {key for chains in burst.values() for chain in chains for key in chain}
