"""Sizes of coded blocks: drawn by key, alike everywhere, as large on average as was measured."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workload.compression import (
    CPU,
    CPU_CORES,
    INSTANT,
    NONE,
    RECORD,
    BlockSizes,
    Compression,
    CompressionError,
    codecs,
    coding_s,
    find_compression,
)
from workload.keys import KeySpace

KEYS = [key for number in range(400) for key in KeySpace().chain(range(10 * number, 10 * number + 10))]
HALVES = Compression("halves", 0, (0.4, 0.5, 0.6), 1e6, 2e6)
RECORDED = [
    (name, int(level))
    for name, codec in json.loads(RECORD.read_text())["codecs"].items()
    for level in codec["levels"]
]


@pytest.mark.parametrize(("codec", "level"), RECORDED)
def test_every_recorded_codec_can_be_used(codec: str, level: int) -> None:
    found = find_compression(codec, level)
    assert found is not None
    assert list(found.shares) == sorted(found.shares)
    assert 0.05 < found.shares[0] <= found.shares[-1] < 1.0
    assert found.encode_bytes_per_s > 0
    assert found.decode_bytes_per_s > 0


@pytest.mark.parametrize(("codec", "level"), RECORDED)
def test_blocks_are_as_large_on_average_as_was_measured(codec: str, level: int) -> None:
    measured = json.loads(RECORD.read_text())["codecs"][codec]["levels"][str(level)]["mean_share"]
    sizes = BlockSizes(65, find_compression(codec, level))
    drawn = [sizes.fragments(key) for key in KEYS]
    assert sum(drawn) / len(drawn) == pytest.approx(65 * measured, rel=0.01)
    assert sizes.mean_fragments == pytest.approx(65 * measured, rel=0.01)
    assert max(drawn) <= sizes.most_fragments <= 65


def test_the_default_level_is_the_codecs() -> None:
    assert find_compression("cachegen") == find_compression("cachegen", 3)
    assert {"cachegen", "kivi", "fp8", "zstd"} <= set(codecs())


def test_a_key_has_one_size_for_all() -> None:
    sizes = [BlockSizes(65, replace(HALVES)) for _ in range(2)]
    assert [sizes[0].fragments(key) for key in KEYS] == [sizes[1].fragments(key) for key in KEYS]
    assert BlockSizes(65, HALVES).fragments(bytes(range(16))) == 30


@given(st.binary(min_size=16, max_size=16), st.integers(1, 200))
def test_no_block_is_larger_than_the_largest(key: bytes, plain: int) -> None:
    sizes = BlockSizes(plain, HALVES)
    assert 1 <= sizes.fragments(key) <= sizes.most_fragments <= plain


def test_rounding_to_whole_fragments_keeps_the_mean() -> None:
    sizes = BlockSizes(5, HALVES)
    drawn = [sizes.fragments(key) for key in KEYS]
    assert set(drawn) == {2, 3}
    assert sum(drawn) / len(drawn) == pytest.approx(2.5, rel=0.02)


def test_without_a_codec_all_blocks_are_alike() -> None:
    sizes = BlockSizes(32)
    assert {sizes.fragments(key) for key in KEYS} == {32}
    assert (sizes.most_fragments, sizes.mean_fragments, sizes.stored_share) == (32, 32.0, 1.0)
    assert find_compression(NONE) is None


def test_a_model_that_keeps_8_bits_gains_half_as_much() -> None:
    assert BlockSizes(32, HALVES, 2.0).stored_share == pytest.approx(0.5)
    tight = replace(HALVES, shares=(0.2, 0.25, 0.3))
    assert BlockSizes(32, tight, 1.0).stored_share == pytest.approx(0.5)


def test_a_codec_that_makes_blocks_larger_is_refused() -> None:
    with pytest.raises(CompressionError, match=r"halves at level 0 .* no smaller \(1\.00 times\) .* 1 bytes"):
        BlockSizes(32, HALVES, 1.0)


@pytest.mark.parametrize(
    ("codec", "level", "complaint"),
    [
        ("gzip", None, r"no codec 'gzip': choose one of none, "),
        ("kivi", 3, r"kivi has no level 3: choose one of 8, 4, 2"),
        (NONE, 1, r"a level needs a codec"),
    ],
)
def test_what_does_not_exist_is_refused(codec: str, level: int | None, complaint: str) -> None:
    with pytest.raises(CompressionError, match=complaint):
        find_compression(codec, level)


def test_coding_takes_the_measured_time_shared_by_the_cores() -> None:
    assert coding_s(HALVES, CPU, 1e6) == pytest.approx((2.0 / CPU_CORES, 1.0 / CPU_CORES))
    assert coding_s(HALVES, INSTANT, 1e6) == (0.0, 0.0)
    assert coding_s(None, CPU, 1e6) == (0.0, 0.0)
    with pytest.raises(CompressionError, match="choose one of cpu, instant"):
        coding_s(HALVES, "fpga", 1e6)
