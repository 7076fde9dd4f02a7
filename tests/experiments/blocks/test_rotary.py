"""Keys that are turned on are those that the new positions would have given."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from experiments.blocks.rotary import rotate

KEYS = np.random.default_rng(0).standard_normal((3, 10, 64)).astype(np.float32)


@given(st.integers(0, 500), st.integers(0, 500))
def test_turns_add_up(first: int, second: int) -> None:
    places = np.arange(10)
    once = rotate(KEYS, places + first + second, 32, 1000.0)
    twice = rotate(rotate(KEYS, places + first, 32, 1000.0), np.full(10, second), 32, 1000.0)
    assert np.allclose(once, twice, atol=2e-4)


@given(st.integers(0, 400))
def test_what_is_turned_back_is_as_before_and_lengths_stay(by: int) -> None:
    turned = rotate(KEYS, np.full(10, by), 32, 1000.0)
    assert np.allclose(rotate(turned, np.full(10, -by), 32, 1000.0), KEYS, atol=1e-5)
    assert np.allclose(np.square(turned).sum(), np.square(KEYS).sum(), rtol=1e-5)


def test_products_of_turned_vectors_depend_on_their_distance_alone() -> None:
    query, key = KEYS[0, :1], KEYS[1, :1]
    near = [
        float((rotate(query, np.array([at + 7]), 32, 1e4) * rotate(key, np.array([at]), 32, 1e4)).sum())
        for at in (0, 90)
    ]
    assert abs(near[0] - near[1]) < 1e-3
