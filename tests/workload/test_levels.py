"""Ladders: what is stored of a block at several levels, and what has none."""

from __future__ import annotations

import pytest

from workload.compression import BlockSizes, CompressionError, find_compression
from workload.levels import ADAPTIVE, LADDERS, Ladder, find_ladder, level_key, make_sizes

KEY = bytes(range(16))


def test_each_level_of_a_block_is_a_block_of_its_own() -> None:
    keys = {level_key(key, level) for key in (KEY, bytes(16)) for level in range(6)} | {KEY, bytes(16)}
    assert len(keys) == 14
    assert all(len(key) == 16 for key in keys)


def test_every_host_makes_the_same_keys() -> None:
    """Golden: nodes and storage nodes of different versions meet in one pool."""
    assert level_key(KEY, 3).hex() == "da15b3412b3c53a466776faff089b8d8"


@pytest.mark.parametrize("codec", LADDERS)
def test_a_ladder_goes_from_large_to_small_and_takes_the_memory_of_all(codec: str) -> None:
    ladder = find_ladder(codec, 65, 2.0)
    shares = [one.stored_share for one in ladder.levels]
    assert shares == sorted(shares, reverse=True)
    assert [level for _, level in ladder.numbers] == list(LADDERS[codec])
    assert ladder.codec == codec
    assert ladder.all_levels_share == pytest.approx(sum(shares))
    assert ladder.all_levels_share == pytest.approx(len(shares) * ladder.stored_share)
    assert ladder.most_fragments == ladder.levels[0].most_fragments
    assert ladder.mean_fragments == pytest.approx(65 * ladder.stored_share, rel=0.01)


def test_what_is_stored_of_a_block_is_itself_or_each_of_its_levels() -> None:
    ladder = find_ladder("cachegen", 65, 2.0)
    stored = dict(ladder.stored(KEY))
    assert stored == {
        level_key(KEY, level): BlockSizes(65, find_compression("cachegen", level)).fragments(KEY)
        for level in LADDERS["cachegen"]
    }
    assert dict(BlockSizes(65).stored(KEY)) == {KEY: 65}


def test_a_level_is_a_number_or_adaptive() -> None:
    assert isinstance(make_sizes("kivi", ADAPTIVE, 65, 2.0), Ladder)
    assert make_sizes("kivi", 2, 65, 2.0) == BlockSizes(65, find_compression("kivi", 2))
    assert make_sizes("none", None, 65, 2.0) == BlockSizes(65)


@pytest.mark.parametrize(
    ("codec", "level", "value_bytes", "complaint"),
    [
        ("none", ADAPTIVE, 2.0, "codec none does not have: choose one of cachegen, kivi"),
        ("zstd", ADAPTIVE, 2.0, "codec zstd does not have"),
        ("h264", ADAPTIVE, 2.0, "a codec 'h264' does not have"),
        ("kivi", ADAPTIVE, 1.0, "kivi at level 8 makes blocks no smaller"),
        ("kivi", "best", 2.0, "a whole number or adaptive, not 'best'"),
    ],
)
def test_what_has_no_ladder_is_refused(codec: str, level: str, value_bytes: float, complaint: str) -> None:
    with pytest.raises(CompressionError, match=complaint):
        make_sizes(codec, level, 65, value_bytes)
