"""The waits of a fetch add up to it, and name what the last block waited for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.model.waits import block_record, waits
from hostlib.protocol.transfer import FetchedBlock, FetchedChain, FetchTimes

KEY = bytes(16)


def block(*moments_s: float, pool: int = 0, merged: int = 0) -> FetchedBlock:
    return FetchedBlock(KEY, b"", 32, pool, merged, FetchTimes._make((*moments_s, "10.0.0.9")))


def test_the_block_that_came_last_tells_what_was_waited_for() -> None:
    chain = FetchedChain([block(0.0, 1.0, 3.0, 4.0, 9.0), block(0.0, 0.0, 1.0, 1.0, 2.0)], None)
    assert waits(chain, 0.0, 9.0) == pytest.approx({"queued": 2.0, "probing": 2.0, "home 10.0.0.9": 5.0})


@pytest.mark.parametrize(
    ("pool", "merged", "origin"), [(20, 0, "pool"), (0, 20, "merged"), (0, 16, "home 10.0.0.9")]
)
def test_most_of_the_fragments_say_where_a_block_came_from(pool: int, merged: int, origin: str) -> None:
    chain = FetchedChain([block(0.0, 0.0, 0.0, 0.0, 2.0, pool=pool, merged=merged)], None)
    assert waits(chain, 0.0, 2.0)[origin] == 2.0


def test_a_chain_that_ends_without_a_block_was_probed() -> None:
    assert waits(FetchedChain([], None), 1.0, 1.5) == {"probing": 0.5}


def test_a_block_that_another_request_asked_for_earlier_is_not_waited_for_before_one_s_own_time() -> None:
    chain = FetchedChain([block(0.0, 1.0, 2.0, 2.0, 6.0)], None)
    assert waits(chain, 5.0, 6.0) == {"home 10.0.0.9": 1.0, "probing": 0.0}


@given(st.lists(st.floats(0, 100), min_size=7, max_size=7), st.integers(0, 32), st.integers(0, 32))
def test_waits_add_up_to_the_fetch(moments_s: list[float], pool: int, merged: int) -> None:
    began_s, *times_s, ended_s = sorted(moments_s)
    chain = FetchedChain([block(*times_s, pool=pool, merged=merged)], None)
    found = waits(chain, began_s, ended_s)
    assert sum(found.values()) == pytest.approx(ended_s - began_s)
    assert all(wait_s >= 0 for wait_s in found.values())


def test_a_block_s_record_has_its_key_and_times() -> None:
    record = block_record(block(0.0, 1.0, 2.0, 3.0, 4.0, pool=3), depth=5)
    assert record["key"] == KEY.hex()
    assert (record["depth"], record["pool_fragments"]) == (5, 3)
    assert (record["wanted_s"], record["done_s"], record["home"]) == (0.0, 4.0, "10.0.0.9")
