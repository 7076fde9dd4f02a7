"""Patterns: who asks for what."""

from collections import Counter

import pytest

from experiments.incast.patterns import PATTERNS, Burst, bursts, distinct_blocks
from workload.keys import KeySpace

NODES = ("node1", "node2", "node3")


def made(pattern: str, label: str = "a", seed: int = 1, count: int = 3, blocks: int = 8) -> list[Burst]:
    return bursts(pattern, NODES, blocks, count, seed, label, KeySpace())


def test_the_same_blocks_for_all_in_every_burst() -> None:
    for burst in made("same"):
        assert burst == made("same")[0]
        assert len(distinct_blocks(burst)) == 8


def test_blocks_of_their_own() -> None:
    for burst in made("different"):
        assert len(distinct_blocks(burst)) == 8 * len(NODES)


def test_the_zipf_mix_prefers_the_first_prefixes() -> None:
    drawn = Counter(
        chain for burst in made("zipf", count=200) for chains in burst.values() for chain in chains
    )
    counts = [count for _, count in drawn.most_common()]
    assert len(counts) == 16
    assert counts[0] > 4 * counts[-1]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_node_asks_for_as_many_different_blocks(pattern: str) -> None:
    for burst in made(pattern):
        for chains in burst.values():
            assert len({key for chain in chains for key in chain}) == 8


@pytest.mark.parametrize("pattern", PATTERNS)
def test_points_share_no_block_and_are_repeatable(pattern: str) -> None:
    assert made(pattern) == made(pattern)
    one, other, third = (made(pattern, *which) for which in (("a", 1), ("b", 1), ("a", 2)))
    blocks = [{key for burst in which for key in distinct_blocks(burst)} for which in (one, other, third)]
    assert not blocks[0] & blocks[1]
    assert not blocks[0] & blocks[2]
