"""Routers that follow prefixes: what they know, and when."""

import json
from pathlib import Path

import pytest

from experiments.simulator.budget import Budget
from experiments.simulator.events import Loop
from experiments.simulator.prefix_routing import BUCKETS, WINDOW_S, LongestPrefix, _buckets
from experiments.simulator.scenario import Scenario
from experiments.simulator.schema import ScenarioError
from experiments.simulator.simulation import prepare, simulate
from experiments.simulator.system import System
from experiments.simulator.workload import Demand
from workload.trace import Request


def request(blocks: list[int]) -> Request:
    return Request(0.0, 16 * len(blocks), 1, tuple(blocks))


def test_a_prefix_is_known_when_a_request_has_been_answered() -> None:
    router = LongestPrefix(4, 16)
    first = router.assign(request([1, 2]))
    assert router.assign(request([1, 2])).node != first.node
    router.answered(first.number)
    assert router.assign(request([1, 3])).node == first.node
    assert router.assign(request([7])).node == 2  # each in turn


def test_the_longest_prefix_wins_then_the_first_worker() -> None:
    router = LongestPrefix(4, 16)
    routes = [router.assign(request(blocks)) for blocks in ([1], [1], [1, 2])]
    for route in routes:
        router.answered(route.number)
    assert router.assign(request([1, 9])).node == 0
    assert router.assign(request([1, 2, 3])).node == 2


def test_blocks_that_are_not_full_are_nobodys() -> None:
    router = LongestPrefix(4, 16)
    partial = Request(0.0, 20, 1, (1, 2))
    router.answered(router.assign(partial).number)
    router.answered(router.assign(Request(0.0, 32, 1, (1, 5))).number)
    assert router.assign(Request(0.0, 15, 1, (1,))).node == 1  # nothing of it is full: the next in turn


def test_buckets_are_shared_out_by_weight_and_each_has_one() -> None:
    shares = _buckets({0: 1.0, 1: 1.0, 2: 1e-9})
    assert len(shares) == BUCKETS
    assert shares.count(2) == 1
    assert abs(shares.count(0) - shares.count(1)) <= 1


def test_who_fits_passes_a_larger_one_that_waits() -> None:
    loop = Loop()
    budget = Budget(loop, 100)
    assert budget.take(80) is None
    large, small = budget.take(60), budget.take(30)
    assert large is not None
    assert small is not None
    assert budget.wanted == 90
    budget.give(80)
    assert budget.used == 90  # both, now
    assert budget.take(50) is not None
    assert budget.take(5) is None


def workers(folder: Path, count: int, gap_ms: int) -> Scenario:
    """Requests of one prefix of 512 tokens, at eight workers behind switches."""
    lines = [
        {"timestamp": n * gap_ms, "input_length": 512, "output_length": 100, "hash_ids": [1]}
        for n in range(count)
    ]
    trace = folder / "trace.jsonl"
    trace.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return Scenario().changed(
        workload={"trace": str(trace), "requests": count, "start_s": 0.0, "scheduler": "load_reports"},
        model={"block_tokens": 16},
        nodes={"count": 8, "decode": "budget", "gate": "never"},
    )


def test_switches_bring_a_prefix_to_whoever_was_not_busy_by_the_last_report(tmp_path: Path) -> None:
    scenario, demand = prepare(workers(tmp_path, 300, 5))
    system = System(scenario, demand)
    router = system.router
    first = router.route(demand.requests[0], None)
    assert first is not None
    node = first.node
    system.nodes[node].budget.take(5000)  # type: ignore[attr-defined]
    system.nodes[node].on_load()  # type: ignore[attr-defined]
    router.prefilled(first)
    router.answered(first)
    system.loop.run(until=_in(system, 1.0))
    later = [router.route(each, None) for each in demand.requests]
    counts = [sum(route is not None and route.node == place for route in later) for place in range(8)]
    assert counts[node] < 300 / 8 / 2
    assert sum(counts) == 300


@pytest.mark.parametrize(("seconds", "follows"), [(1.0, True), (WINDOW_S + 1, False)])
def test_a_rule_follows_loads_only_while_its_prefix_was_told_of_lately(
    tmp_path: Path, seconds: float, follows: bool
) -> None:
    scenario, demand = prepare(workers(tmp_path, 300, 5))
    system = System(scenario, demand)
    router = system.router
    for request in demand.requests:
        route = router.route(request, None)
        assert route is not None
        router.prefilled(route)
        router.answered(route)
    system.loop.run(until=_in(system, seconds))
    before = _shares(system, demand)
    most = before.index(max(before))
    system.nodes[most].budget.take(5000)  # type: ignore[attr-defined]
    system.nodes[most].on_load()  # type: ignore[attr-defined]
    system.loop.run(until=_in(system, 1.0))
    assert (_shares(system, demand)[most] < before[most] / 2) is follows


def _shares(system: System, demand: Demand) -> list[int]:
    routes = [system.router.route(each, None) for each in demand.requests]
    return [sum(route is not None and route.node == place for route in routes) for place in range(8)]


def _in(system: System, seconds: float) -> object:
    event = system.loop.event()
    system.loop.after(seconds, event.succeed)
    return event


def test_a_prefix_comes_to_all_workers_and_is_found_there(tmp_path: Path) -> None:
    result = simulate(workers(tmp_path, 200, 20))
    assert result.completed == 200
    assert 0.9 < result.found_share < 1


def test_pinned_a_prefix_stays_where_it_is_held_first(tmp_path: Path) -> None:
    spread = simulate(workers(tmp_path, 200, 20))
    pinned = simulate(workers(tmp_path, 200, 20).changed(workload={"scheduler": "pinned_reports"}))
    assert len(set(spread.served_by)) == 8
    assert max(map(pinned.served_by.count, range(8))) > 2 * max(map(spread.served_by.count, range(8)))
    assert len(pinned.served_by) == 200
    assert pinned.found_share > spread.found_share
    assert "served_by" not in pinned.to_dict()


def test_such_routers_need_workers_that_report() -> None:
    with pytest.raises(ScenarioError, match="learns from workers"):
        simulate(Scenario().changed(workload={"scheduler": "load_reports"}))
