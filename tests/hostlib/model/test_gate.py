"""The gate's arithmetic, and what ages of the reports that it rests on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.model.gate import Gate, Load
from workload.cost import make_cost_model

COST = make_cost_model(gpu="h800")
BLOCK_S = COST.fetch_s(COST.block_bytes, 200e9)
IDLE = Load(lambda home: 0.0)


def gate(block_s: float = BLOCK_S) -> Gate:
    return Gate(COST.prefill_s, 512, block_s)


def admits(
    count: int, load: Load, homes: list[str] | None = None, first: int = 0, block_s: float = BLOCK_S
) -> int:
    depths = list(range(first, first + count))
    return gate(block_s).admits(depths, homes or ["a"] * count, first + count, load)


def test_an_idle_network_is_faster_than_prefill() -> None:
    assert admits(10, IDLE) == 10


def test_a_slow_link_is_not() -> None:
    assert admits(10, IDLE, block_s=10 * BLOCK_S) == 0


def test_it_agrees_with_the_arithmetic_of_the_cost_model() -> None:
    for rate_bit_s in (10e9, 25e9, 40e9, 50e9, 100e9, 200e9):
        for count in (1, 5, 50):
            block_s = COST.fetch_s(COST.block_bytes, rate_bit_s)
            pays = count * block_s <= COST.prefill_s(count * COST.block_tokens)
            assert admits(count, IDLE, block_s=block_s) == (count if pays else 0)


def test_a_wait_at_the_home_closes_it_for_short_chains_first() -> None:
    waits = Load(lambda home: 0.1)
    assert admits(4, waits) == 0
    assert admits(40, waits) == 40


def test_a_wait_for_the_gpu_hides_a_wait_at_the_home() -> None:
    assert admits(4, Load(lambda home: 0.1, gpu_s=0.2)) == 4


def test_decoding_counts_behind_the_transfer_of_its_last_block_and_one_after_the_other() -> None:
    computed_s = COST.prefill_s(10 * 512)
    chain = list(range(10)), ["a"] * 10, 10
    assert Gate(COST.prefill_s, 512, BLOCK_S, 0.05 * computed_s).admits(*chain, IDLE) == 10
    slow = Gate(COST.prefill_s, 512, BLOCK_S, 0.15 * computed_s)  # ten of them are slower than computing
    assert slow.admits(*chain, IDLE) == 0
    assert slow.admits(*chain, Load(lambda home: 0.0, gpu_s=1.6 * computed_s)) == 10


def test_what_waits_to_be_decoded_counts() -> None:
    some = Gate(COST.prefill_s, 512, BLOCK_S, 1e-6)
    assert some.admits([0, 1, 2, 3], ["a"] * 4, 4, Load(lambda home: 0.0, coder_s=10.0)) == 0


def test_what_the_node_has_asked_for_waits_before_what_it_asks_now() -> None:
    assert admits(4, Load(lambda home: 0.0, link_s=0.1)) == 0


def test_what_lies_behind_a_busy_home_is_computed() -> None:
    waits = Load(lambda home: 2.0 if home == "busy" else 0.0)
    assert admits(10, waits, ["idle"] * 6 + ["busy"] * 4) == 6


def test_homes_send_side_by_side_but_the_nodes_link_is_one() -> None:
    computed_s = COST.prefill_s(2 * 512)
    block_s = computed_s / 2 * 0.99
    assert admits(2, IDLE, ["a", "b"], block_s=block_s) == 2
    assert admits(2, IDLE, ["a", "b"], block_s=block_s * 1.05) == 0


def test_a_block_that_closes_a_hole_saves_what_is_held_behind_it() -> None:
    wait = Load(lambda home: 0.1)
    assert gate().admits([0], ["a"], 1, wait) == 0
    assert gate().admits([0], ["a"], 20, wait) == 1


def test_what_is_nowhere_behind_a_block_is_not_saved_with_it() -> None:
    wait = Load(lambda home: 0.1)
    assert gate().admits(list(range(20)), ["a"], 20, wait) == 0
    assert gate().admits([0, *range(19, 40)], ["a"], 40, wait) == 1  # 18 blocks behind it are held


def test_decisions_are_counted() -> None:
    counted = gate()
    waits = Load(lambda home: 2.0 if home == "busy" else 0.0)
    counted.admits([0, 1], ["a", "a"], 2, waits)
    counted.admits([0, 1], ["a", "busy"], 2, waits)
    counted.admits([0, 1], ["busy", "a"], 2, waits)
    assert counted.admits([], [], 2, waits) == 0
    stats = counted.stats
    assert (stats.opened, stats.narrowed, stats.closed, stats.refused_blocks) == (1, 1, 1, 3)


@given(
    homes=st.lists(st.sampled_from("abc"), min_size=1, max_size=30),
    waits=st.fixed_dictionaries({home: st.floats(0, 3) for home in "abc"}),
    link_s=st.floats(0, 1),
    gpu_s=st.floats(0, 3),
    first=st.integers(0, 100),
)
def test_it_never_admits_what_is_slower_than_computing(
    homes: list[str], waits: dict[str, float], link_s: float, gpu_s: float, first: int
) -> None:
    count = admits(len(homes), Load(waits.__getitem__, link_s, gpu_s), homes, first)
    fetch_s = max(
        [link_s + count * BLOCK_S]
        + [waits[home] + homes[:count].count(home) * BLOCK_S for home in set(homes[:count])]
    )
    if count:
        assert fetch_s <= gpu_s + COST.prefill_s(count * 512, first * 512) + 1e-9
    elif gpu_s > max(waits.values()) + link_s + len(homes) * BLOCK_S:
        pytest.fail("a fetch that the GPU's queue hides was refused")
