import pytest

from controller.policies.reuse.worth import MAX_PLACES, Worth
from workload.cost import CostModel

COST = CostModel()
TRANSFER_S = COST.fetch_s(COST.block_bytes, 200e9)


def test_a_hit_saves_the_transfer_where_that_is_less() -> None:
    worth = Worth(COST)
    assert worth.seconds[worth.place(1, 0)] == pytest.approx(TRANSFER_S)


def test_over_a_slow_link_it_saves_computing_at_the_depth() -> None:
    worth = Worth(COST, link_bit_s=1e8)
    for depth in (0, 250):
        assert worth.seconds[worth.place(1, depth)] == pytest.approx(COST.block_prefill_s(depth), rel=0.1)


def test_each_home_has_its_link() -> None:
    worth = Worth(COST)
    slow, usual = worth.place(1, 100), worth.place(2, 100)
    worth.home_load(1, 0.0, link_bit_s=20e9)
    worth.home_load(2, 0.0)
    worth.refresh()
    assert worth.seconds[usual] == pytest.approx(TRANSFER_S)
    assert worth.seconds[slow] == pytest.approx(10 * TRANSFER_S)
    assert worth.describe(slow)[2] == pytest.approx(10 * TRANSFER_S)


def test_what_waits_before_a_slow_link_says_nothing_of_fast_ones() -> None:
    worth = Worth(COST)
    fast, other, slow = (worth.place(home, 200) for home in (1, 2, 3))
    for _ in range(3000):
        worth.home_load(1, 0.0, link_bit_s=200e9)
        worth.home_load(3, 5.0, link_bit_s=10e9)
    worth.refresh()
    assert worth.seconds[fast] == worth.seconds[other] == pytest.approx(TRANSFER_S)
    assert worth.seconds[slow] == pytest.approx(COST.block_prefill_s(200), rel=0.1)


def test_what_the_node_says_goes_before_the_model() -> None:
    worth = Worth(COST, link_bit_s=1e8)
    assert worth.seconds[worth.place(1, 0, recompute_s=0.4)] == pytest.approx(0.4, rel=0.1)


def test_each_wait_is_compared_with_computing() -> None:
    worth = Worth(COST)
    shallow, deep = worth.place(1, 0), worth.place(1, 250)
    for _ in range(5000):
        worth.home_load(1, 0.0)
        worth.home_load(1, 10.0)
    worth.refresh()
    for place, depth in ((shallow, 0), (deep, 250)):
        expected = (TRANSFER_S + COST.block_prefill_s(depth)) / 2
        assert worth.seconds[place] == pytest.approx(expected, rel=0.1)
    assert worth.steps[deep] > worth.steps[shallow]


def test_noise_moves_no_block() -> None:
    worth = Worth(COST)
    place, _ = worth.place(1, 0), worth.place(2, 0)
    before = worth.steps[place]
    for wait_s in (0.0001, 0.0003, 0.0002) * 30:
        worth.home_load(1, wait_s)
        worth.refresh()
        assert worth.steps[place] == before


def test_places_are_bounded() -> None:
    worth = Worth(COST)
    for home in range(2 * MAX_PLACES):
        worth.place(home, 3)
        worth.home_load(home, 1.0)
    assert len(worth.seconds) == MAX_PLACES
    worth.refresh()
    assert worth.describe(worth.place(5, 3))[0] == 5


def test_all_are_worth_the_same_if_that_is_wanted() -> None:
    worth = Worth(COST, link_bit_s=1e8, uniform=True)
    assert worth.steps[worth.place(1, 0)] == worth.steps[worth.place(2, 250)]
