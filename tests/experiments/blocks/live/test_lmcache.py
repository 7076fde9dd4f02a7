"""LMCache's own coder against our `bins`: the same values, fewer bytes (make test-blocks)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("torch", reason="make test-blocks")
pytest.importorskip("lmcache", reason="make test-blocks")

import numpy as np

from experiments.blocks.lmcache import LmCacheCoder, large_model_bins, lmcache_bins
from kvcodec import decode, encode
from tests.kvcodec.blocks import block, layout


@pytest.mark.parametrize(("level", "bins"), [(0, lmcache_bins), (1, large_model_bins)])
@pytest.mark.parametrize("layers", [4, 12])
def test_values_are_lmcaches_to_the_last_bit(
    level: int, bins: Callable[[int], tuple[list[int], list[int]]], layers: int
) -> None:
    of = layout(layers=layers, kv_heads=2, head_dim=32)
    kv = block(of, 64)
    coder = LmCacheCoder(of, *bins(layers))
    stream = coder.encode(kv)
    ours = encode(kv, of, "bins", level)
    assert np.array_equal(decode(ours, of), coder.decode(stream))
    assert len(ours) < len(stream)
