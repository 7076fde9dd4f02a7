from __future__ import annotations

from collections import Counter
from hashlib import blake2b

import pytest

from hostlib.protocol.homes import home_of, home_order

NODES = ["10.0.0.101", "10.0.0.102", "10.0.0.103"]
KEYS = [blake2b(bytes([n % 256, n // 256]), digest_size=16).digest() for n in range(3000)]


def test_the_order_of_the_list_does_not_matter() -> None:
    assert [home_of(key, NODES) for key in KEYS] == [home_of(key, NODES[::-1]) for key in KEYS]


def test_keys_spread_evenly() -> None:
    counts = Counter(home_of(key, NODES) for key in KEYS)
    assert all(900 < counts[node] < 1100 for node in NODES)


@pytest.mark.parametrize("gone", NODES)
def test_a_node_that_leaves_moves_only_its_own_keys(gone: str) -> None:
    rest = [node for node in NODES if node != gone]
    for key in KEYS:
        if home_of(key, NODES) != gone:
            assert home_of(key, rest) == home_of(key, NODES)


def test_the_order_begins_with_the_home_and_survives_who_leaves() -> None:
    for key in KEYS[:300]:
        order = home_order(key, NODES)
        assert order[0] == home_of(key, NODES)
        for gone in NODES:
            rest = [node for node in NODES if node != gone]
            assert home_order(key, rest) == [node for node in order if node != gone]
