"""The sigma that a machine can carry."""

import subprocess
from dataclasses import replace

import pytest

from experiments.run import capacity
from experiments.run.capacity import (
    IDLE_SAMPLE_S,
    Capacity,
    Demand,
    busiest,
    choose_sigma,
    demand_of,
    measure,
)
from workload.trace import Request

BLOCK_BYTES = 84e6
FAST = Capacity(idle_cores=16.0, fragment_us=6.4)
SLOW = Capacity(idle_cores=1.5, fragment_us=10.7)
DEMAND = Demand(mean_blocks_s=125.0, busiest_blocks_s=600.0, link_bit_s=800e9)


def sigma(machine: Capacity, demand: Demand = DEMAND, least: float = 5000.0) -> float:
    return choose_sigma(machine, demand, BLOCK_BYTES, least, 1.0)


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
    measured = measure()
    assert 0.1 < measured.fragment_us < 10_000
    assert 0 < measured.idle_cores <= measured.cores


def test_the_three_processes_that_take_most_of_the_machine_are_named() -> None:
    taken = {1: ("idle", 0.1), 2: ("python", 0.2), 3: ("gcc", 0.9), 4: ("sh", 0.5), 5: ("tar", 0.3)}
    before = {pid: (name, 100.0) for pid, (name, _) in taken.items()}
    now = {pid: (name, 100.0 + cores * IDLE_SAMPLE_S) for pid, (name, cores) in taken.items()}
    named = busiest(before, now | {6: ("new", 50.0)})
    assert named == tuple(
        f"{name} ({taken[pid][1]} cores, process {pid})" for pid, name in ((3, "gcc"), (4, "sh"), (5, "tar"))
    )


@pytest.mark.timeout(120)
def test_who_keeps_the_machine_busy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """However little of a busy machine it gets."""
    monkeypatch.setattr(capacity, "BUSY_CORES", 0.0)
    monkeypatch.setattr(capacity, "MOST_NAMED", 1_000_000)
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as busy:
        try:
            named = capacity.sample_load()[1]
        finally:
            busy.kill()
    assert any(one.startswith("sh (") and f"process {busy.pid})" in one for one in named)
