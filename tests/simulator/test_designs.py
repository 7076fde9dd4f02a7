"""Hints before a fetch, requests before blocks, warm nodes, and a switch in front of a pool read directly."""

from functools import cache
from typing import Any

import pytest

from commands.toml_file import ScenarioError
from experiments.simulate.emulate import Emulator
from hostlib.model.gate import HINTS
from scenario import Scenario
from simulator.front import Front
from simulator.link import Link
from simulator.messages import Block
from simulator.money import bill
from simulator.result import SimResult
from simulator.simulation import simulate

once = cache(simulate)
"""Simulates a scenario that several tests look at only once."""

CROWD: dict[str, dict[str, Any]] = {
    "workload": {"requests": 300, "load": 16.0, "scheduler": "locality"},
    "model": {"gpu": "h800", "block_tokens": 512},
    "nodes": {"count": 32, "gpu_gb": 16.0, "dram_gb": 64.0, "gate": "compare"},
    "storage": {"count": 1, "ssd_gb": 0.0},
    "pool": {"memory": "none"},
}


def play(**changed: dict[str, Any]) -> SimResult:
    """32 nodes and one storage node, with changes."""
    merged = {table: {**CROWD.get(table, {}), **changed.get(table, {})} for table in {*CROWD, *changed}}
    return once(Scenario().changed(**merged))


def test_nodes_that_ask_first_do_not_fetch_from_a_jammed_home() -> None:
    first: dict[str, dict[str, Any]] = {"network": {"requests_first": True}}
    blind, told = play(**first), play(nodes={"hints": "homes"}, **first)
    recomputing = play(nodes={"gate": "never"})
    assert blind.ttft_s.mean > 1.5 * recomputing.ttft_s.mean
    assert told.ttft_s.mean < 0.75 * blind.ttft_s.mean
    assert told.blocks["remote"] < blind.blocks["remote"]


def test_nodes_that_ask_first_over_slow_links_are_no_later_than_if_they_computed() -> None:
    """Where a block takes longer to fetch than to compute, whatever of the chain nobody has."""
    traffic: dict[str, Any] = {"shape": "rag", "reuse": 0.85, "load": 1.2}
    changed: dict[str, dict[str, Any]] = {
        "workload": traffic,
        "model": {"name": "qwen3-32b"},
        "network": {"link_gbit_s": 62.0, "requests_first": True},
    }
    lent: dict[str, dict[str, Any]] = {"storage": {"kind": "peers"}, "direct": {"peer_share": 0.98}}
    few: dict[str, Any] = {"count": 6, "hints": "homes"}
    fetching = play(nodes=few, **changed, **lent)
    assert fetching.ttft_s.mean < 1.001 * play(nodes={"count": 6, "gate": "never"}, **changed).ttft_s.mean


def test_what_is_asked_first_waits_at_links_as_anything_else_does() -> None:
    nodes = {"hints": "homes"}
    behind, before = play(nodes=nodes), play(nodes=nodes, network={"requests_first": True})
    assert behind.ttft_s.mean > 1.5 * before.ttft_s.mean


def test_a_switch_tells_what_its_pool_holds() -> None:
    pool = {"memory": "dram", "size_gb": 256.0}
    told = play(nodes={"hints": "switch"}, pool=pool)
    assert told.blocks["pool"] > 0
    assert told.ttft_s.mean < play(nodes={"hints": "homes"}).ttft_s.mean


def test_requests_that_wait_for_no_block_are_answered_sooner() -> None:
    one_queue, two = (
        play(nodes={"gate": "always"}),
        play(nodes={"gate": "always"}, network={"requests_first": True}),
    )
    assert two.get_s.mean < 0.9 * one_queue.get_s.mean


def test_warm_nodes_find_what_the_past_used() -> None:
    cold, warm = play(nodes={"hints": "homes"}), play(nodes={"hints": "homes", "warm": "there"})
    assert warm.blocks["dram"] > cold.blocks["dram"]
    assert warm.ttft_s.mean < cold.ttft_s.mean


def test_a_push_by_multicast_takes_a_home_link_once_and_unicast_once_for_each_node() -> None:
    sent = {
        kind: play(nodes={"warm": kind, "warm_gb": 2.0}).storage_egress_bytes
        for kind in ("no", "multicast", "unicast")
    }
    pushed_bytes = 2.0e9 - 2.0e9 % play().block_bytes
    assert sent["unicast"] - sent["multicast"] > 20 * pushed_bytes


def test_a_front_merges_what_is_on_its_way_and_serves_what_it_keeps() -> None:
    one, other = (Block(name, 0, b"", "store1", (1,)) for name in (b"a", b"b"))
    device, memory = Link("device", 1e9, 0.0), Link("memory", 1e10, 0.0)
    merging = Front(0, memory, 1e9)
    assert merging.send(one, device, 0.0) == merging.send(one, device, 0.5)
    assert merging.merged == 1
    assert merging.send(one, device, 2.0)[1] == pytest.approx(3.0)
    keeping = Front(1, Link("memory", 1e10, 0.0), 1e9)
    keeping.send(one, device, 10.0)
    assert keeping.send(one, device, 20.0)[1] == pytest.approx(20.1)
    keeping.send(other, device, 30.0)
    assert keeping.send(one, device, 40.0)[1] == pytest.approx(41.0)
    assert keeping.served == 1


def test_a_front_is_billed_as_the_switch_that_it_is() -> None:
    plain = Scenario().changed(storage={"kind": "direct"}, pool={"size_gb": 256.0})
    merging, pool = (plain.changed(direct={"front": front}) for front in ("merge", "pool"))
    hours = plain.prices.years * 8760
    assert bill(plain, 1).pool == 0
    assert bill(merging, 1).pool == pytest.approx(16_000 / hours)
    assert bill(pool, 2).pool == pytest.approx(2 * (16_000 + 4 * 256) / hours)


@pytest.mark.parametrize(
    ("field", "nodes"),
    [("nodes.hints", {"hints": "homes", "gate": "always"}), ("nodes.warm", {"warm": "there"})],
)
def test_the_emulator_refuses_what_it_does_not_have(field: str, nodes: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError, match=f"^{field}: the emulator has"):
        Emulator(Scenario().changed(nodes=nodes), 20_000.0)


@pytest.mark.parametrize("hints", HINTS)
def test_the_emulators_nodes_ask_as_those_of_the_scenario(hints: str) -> None:
    emulator = Emulator(Scenario().changed(nodes={"hints": hints, "gate": "compare"}), 20_000.0)
    assert emulator.run.options.hints == hints
    assert emulator.matched(True).nodes.hints == hints


@pytest.mark.parametrize("fill", ["on_the_way", "idle"])
def test_the_emulators_pool_is_filled_as_the_simulated_one(fill: str) -> None:
    emulator = Emulator(Scenario().changed(control={"fill": fill}), 20_000.0)
    assert emulator.run.options.control.fill == fill


@pytest.mark.parametrize("first", [False, True])
def test_the_emulator_has_the_queues_of_the_scenario(first: bool) -> None:
    emulator = Emulator(Scenario().changed(network={"requests_first": first}), 20_000.0)
    assert emulator.run.fabric.requests_first == first
    assert all(emulator.matched(pool).network.requests_first == first for pool in (False, True))


LENT: dict[str, Any] = {"storage": {"kind": "peers"}, "direct": {"front": "switches"}}


def test_where_nodes_lend_the_emulator_has_no_storage_nodes_and_an_index() -> None:
    emulator = Emulator(Scenario().changed(nodes={"hints": "homes", "gate": "compare"}, **LENT), 20_000.0)
    assert emulator.run.options.lends
    assert emulator.run.fabric.answering == emulator.run.fabric.nodes
    assert (emulator.run.options.hints, emulator.run.options.eviction) == ("answers", "drop")
    carried = emulator.matched(pool=True)
    assert carried.lends
    assert carried.nodes.hints == "homes"
    assert carried.machine.batch_fragments > 1


def test_the_emulators_lenders_are_asked_for_by_an_index_alone() -> None:
    scenario = Scenario().changed(nodes={"hints": "answers", "gate": "compare"}, **LENT)
    assert Emulator(scenario, 20_000.0).matched(pool=True).nodes.hints == "homes"
    scenario = Scenario().changed(nodes={"hints": "switch", "gate": "compare"}, **LENT)
    with pytest.raises(ScenarioError, match=r"^nodes\.hints: where nodes lend, an index"):
        Emulator(scenario, 20_000.0)


def test_the_emulators_nodes_lend_past_switches() -> None:
    with pytest.raises(ScenarioError, match=r"^storage\.kind: the emulator has storage nodes, or nodes that"):
        Emulator(Scenario().changed(storage={"kind": "peers"}), 20_000.0)
