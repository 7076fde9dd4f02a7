"""Routers that follow prefixes: what they know, and when."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from commands.toml_file import ScenarioError
from scenario import Scenario
from scenario.hardware import Routing
from simulator.budget import Budget
from simulator.events import Event, Loop
from simulator.money import bill
from simulator.prefix_routing import LongestPrefix, LongestRules, Worker, shared_out
from simulator.simulation import _Run, prepare, simulate
from simulator.system import System
from simulator.watched_routing import WatchedNode, WatchedRouter
from simulator.workload import Demand
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
    shares = shared_out({0: 1.0, 1: 1.0, 2: 1e-9}, 32)
    assert len(shares) == 32
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


@pytest.mark.parametrize(("seconds", "follows"), [(1.0, True), (Routing().window_s + 1, False)])
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


def _in(system: System, seconds: float) -> Event:
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


def test_such_routers_know_nothing_of_nodes_that_work_in_steps() -> None:
    with pytest.raises(ScenarioError, match="does not know what nodes"):
        simulate(Scenario().changed(workload={"scheduler": "load_reports"}, nodes={"decode": "steps"}))


ALL_RULES = {"rules": "longest", "hashes": 64, "admitted": 1, "report_s": 0.0, "gather_s": 0.0, "leaves": 1}


def informed(count: int, **options: object) -> tuple[LongestRules, list[WatchedNode], Loop]:
    """Switches with a rule for each block of 16 tokens, before workers that report at once."""
    loop, nodes = Loop(), [WatchedNode() for _ in range(count)]
    given = ALL_RULES | {"hash_tokens": 16, "report_tokens": 1} | options
    return LongestRules(loop, nodes, 16, 1, Routing(**given), pinned=True), nodes, loop  # type: ignore[arg-type]


def held(router: LongestRules, node: int, blocks: list[int]) -> None:
    """A worker has computed this prompt."""
    while (route := router.assign(request(blocks))).node != node:
        router.answered(route.number)
    router.prefilled(route.number)
    router.answered(route.number)


def test_the_longest_rule_wins_unless_its_worker_has_more_to_do_than_the_others_lack() -> None:
    router, nodes, loop = informed(4)
    held(router, 2, [1, 2, 3])
    assert router.assign(request([1, 2, 3, 4])).node == 2
    assert router.assign(request([1, 9])).node == 2
    nodes[2].add(47)  # of the 48 tokens that the others lack
    after(loop, 0.001)
    assert router.assign(request([1, 2, 3, 4])).node == 2
    nodes[2].add(2)
    after(loop, 0.001)
    assert router.assign(request([1, 2, 3, 4])).node != 2


def test_rules_follow_reports_of_load_after_their_time() -> None:
    router, nodes, loop = informed(2, gather_s=0.5)
    held(router, 0, [1])
    nodes[0].add(1000)
    after(loop, 0.4)
    assert router.assign(request([1])).node == 0
    after(loop, 0.2)
    assert router.assign(request([1])).node == 1


@pytest.mark.parametrize("late", [False, True])
def test_a_report_that_would_come_too_early_is_made_late_or_never(late: bool) -> None:
    router, nodes, loop = informed(2, report_s=0.1, late_reports=late)
    held(router, 0, [1])
    nodes[0].add(1000)
    nodes[0].add(-1000)
    after(loop, 0.2)
    assert router.assign(request([1])).node == (0 if late else 1)


def after(loop: Loop, seconds: float) -> None:
    """Let so much time pass."""
    event = loop.event()
    loop.after(seconds, event.succeed)
    loop.run(until=event)


@pytest.mark.parametrize("decode", [False, True])
def test_what_nodes_were_sent_is_their_load_until_it_is_done(decode: bool) -> None:
    nodes = [WatchedNode(), WatchedNode()]
    router = WatchedRouter(LongestPrefix(2, 16), nodes, lambda node, request: 30 + node, decode)
    routes = [router.assign(Request(0.0, 32, 7, (n, -n))) for n in (1, 2)]
    answer = 7 if decode else 0
    assert [node.load_tokens for node in nodes] == [30 + answer, 31 + answer]
    router.prefilled(routes[1].number)
    assert [node.load_tokens for node in nodes] == [30 + answer, answer]
    router.answered(routes[1].number)
    assert [node.load_tokens for node in nodes] == [30 + answer, 0]


NODES = {"count": 6, "dram_gb": 64.0}
KEPT: dict[str, dict[str, object]] = {"nodes": NODES | {"gate": "never"}}
LENT: dict[str, dict[str, object]] = {"nodes": NODES | {"gate": "compare"}, "storage": {"kind": "peers"}}


@pytest.mark.parametrize("scheduler", ["longest_prefix", "load_reports", "pinned_reports"])
@pytest.mark.parametrize("rules", ["first", "longest"])
@pytest.mark.parametrize("memory", [KEPT, LENT], ids=["kept", "lent"])
@pytest.mark.parametrize("decode", ["apart", "batched"])
def test_nodes_with_gpus_serve_what_routers_send_them_and_report_no_more_than_they_were_sent(
    scheduler: str, rules: str, memory: dict[str, dict[str, object]], decode: str
) -> None:
    scenario, demand = prepare(
        Scenario()
        .changed(
            workload={"shape": "agents", "requests": 60, "load": 2.0, "scheduler": scheduler},
            routing={"rules": rules, "buckets": 64},
        )
        .changed(**memory)
        .changed(nodes={"decode": decode})
    )
    system = System(scenario, demand)
    router = system.router._live
    assert isinstance(router, WatchedRouter)
    most = sum(each.input_tokens + each.output_tokens for each in demand.requests)
    loads: list[int] = []
    for node in router._workers:

        def told(node: Worker = node, report: Callable[[], None] = node.on_load) -> None:
            loads.append(node.load_tokens)
            report()

        node.on_load = told
    _Run(system).to_the_end()
    assert sum(len(node.records) for node in system.nodes) == 60
    assert all(0 <= load <= most for load in loads)
    assert len(loads) >= 120
    assert all(node.load_tokens == 0 for node in router._workers)


def test_switches_that_route_cost_what_programmable_ones_cost_more_and_a_pool_in_them_only_its_memory() -> (
    None
):
    scenario = Scenario().changed(nodes={"gate": "never"}, pool={"memory": "none"})
    assert bill(scenario, 8).cache == 0
    assert bill(scenario.changed(workload={"scheduler": "longest_prefix"}), 8).cache == 0
    routed = bill(scenario.changed(workload={"scheduler": "load_reports"}), 8)
    assert routed.cache == pytest.approx(8 * 16_000 / (4 * 8760))
    both = scenario.changed(nodes={"gate": "compare"}, pool={"memory": "dram", "size_gb": 256.0})
    pooled = bill(both, 8).pool
    assert pooled == bill(both.changed(workload={"scheduler": "load_reports"}), 8).pool
