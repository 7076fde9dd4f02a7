"""The sigma that a machine can carry."""

import subprocess
from dataclasses import replace

import pytest

from experiments.run.capacity import Capacity, Demand, choose_sigma, demand_of, measure
from workload.trace import Request

BLOCK_BYTES = 84e6
FAST = Capacity(idle_cores=16.0, fragment_us=6.4)
SLOW = Capacity(idle_cores=1.5, fragment_us=10.7)
DEMAND = Demand(mean_blocks_s=125.0, busiest_blocks_s=600.0, link_bit_s=800e9)


def sigma(capacity: Capacity, demand: Demand = DEMAND, least: float = 5000.0) -> float:
    return choose_sigma(capacity, demand, BLOCK_BYTES, least, 1.0)


def test_a_fast_machine_carries_the_most_detailed_model() -> None:
    assert sigma(FAST) == 5000.0


def test_a_slow_or_busy_machine_gets_a_larger_sigma() -> None:
    assert sigma(SLOW) > sigma(FAST)
    assert sigma(Capacity(SLOW.idle_cores / 4, SLOW.fragment_us)) > sigma(SLOW)


def test_a_hopeless_machine_still_leaves_a_block_a_fragment() -> None:
    assert BLOCK_BYTES / sigma(Capacity(0.1, 1e6)) >= 512


def test_what_the_network_takes_by_itself_is_not_there_for_fragments() -> None:
    assert sigma(replace(SLOW, background_cores=1.2)) > sigma(SLOW)
    assert replace(SLOW, background_cores=9.0).fragments_per_s > 0


def test_no_second_moves_more_than_the_links_do() -> None:
    narrow = Demand(DEMAND.mean_blocks_s, DEMAND.busiest_blocks_s, link_bit_s=1e9)
    assert sigma(SLOW, narrow) < sigma(SLOW)


def test_demand_is_all_blocks_that_requests_name() -> None:
    requests = [Request(0.1, 512, 1, (1,)), Request(0.9, 1024, 1, (1, 2)), Request(3.5, 512, 1, (3,))]
    demand = demand_of(requests, 1e9)
    assert (demand.mean_blocks_s, demand.busiest_blocks_s) == (1.0, 3.0)
    assert demand_of([], 1e9).mean_blocks_s == 0.0


@pytest.mark.timeout(120)
def test_the_machine_is_measured_by_moving_blocks() -> None:
    capacity = measure()
    assert capacity.idle_cores > 0
    assert 0.1 < capacity.fragment_us < 10_000
    assert 0 < capacity.idle_cores <= capacity.cores


@pytest.mark.timeout(120)
def test_who_keeps_the_machine_busy_is_named() -> None:
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as busy:
        try:
            # Where many are busy, only the busiest are named: until this one is among them.
            named = False
            for _ in range(20):
                named = named or any(f"process {busy.pid})" in one for one in measure().others)
                if named:
                    break
        finally:
            busy.kill()
    assert named
