"""Purchases at equal cost: what is not used is not billed, nothing pays that something cheaper beats."""

import pytest

from experiments.study.designs import DECODERS, INSTANT_KV, MOST_DECODERS, NO_CHOICE
from experiments.study.plan import points
from experiments.study.rivals import (
    Purchase,
    faster_than,
    purchases,
)
from experiments.study.systems import (
    BOUND,
    MEMORY_GB,
    POOLS,
    ROUTED,
    ROUTED_AT_ONCE,
    ROUTINGS,
    Setting,
    routed,
    system,
)
from simulator.money import bill
from tests.experiments.study.made import of_runs, run, sample
from tests.slow import rest_slow


@pytest.mark.parametrize("stores", [1, 2, 4, 8, 16])
def test_memory_is_held_while_storage_nodes_vary(stores: int) -> None:
    scenario = system("stores", Setting(stores=stores))
    assert scenario.storage.count == stores
    assert scenario.storage.count * scenario.storage.dram_gb == MEMORY_GB


@pytest.mark.parametrize("nodes", [32, 46, 60, 128])
def test_all_rivals_of_a_fan_in_have_the_same_fabric(nodes: int) -> None:
    fabrics = {
        (scenario.network.topology, scenario.network.leaves, scenario.network.spines)
        for stores in (1, 2, 4, 8, 16)
        for name in ("recompute", "distributed", "cxl", "stores", "switch")
        for scenario in [system(name, Setting(nodes=nodes, stores=stores))]
    }
    assert len(fabrics) == 1


def test_recomputing_is_not_billed_for_storage_that_it_does_not_use() -> None:
    assert bill(system("recompute", Setting()), 1).cache == 0
    assert bill(system("stores", Setting()), 1).cache == pytest.approx(1.4695, abs=1e-3)
    assert bill(system("stores", Setting(stores=8)), 1).cache == pytest.approx(3.1381, abs=1e-3)


def labels(sweep: str, value: object) -> set[str]:
    """What is played at one place."""
    found = points(Setting(), None, quick=False)
    return {point.label for point in found if (point.sweep, point.value) == (sweep, value)}


@pytest.mark.parametrize("nodes", rest_slow([16], [16, 32, 46, 60]))
def test_no_rival_is_held_back_to_two_storage_nodes_one_scheduler_or_one_rate(nodes: int) -> None:
    numbers = ("1 storage node", *(f"{count} storage nodes" for count in (2, 4, 8, 16)))
    assert labels("rivals", nodes) >= {
        *(f"{number}, coded, adapters decode (ShadowServe-like)" for number in numbers),
        "distributed DRAM (Mooncake-like), conductor",
        "CXL pool (Beluga-like), conductor",
        "the nodes' own DRAM, lent, RDMA as measured",
        "the nodes' own DRAM, lent, over TCP",
    }
    decoding = [
        point.scenario
        for point in points(Setting(), None, quick=False)
        if (point.sweep, point.value, point.system) == ("rivals", nodes, "smartnic")
    ]
    assert sorted(one.storage.count for one in decoding) == [1, 2, 4, 8, 16]
    assert {one.storage.count * one.storage.dram_gb for one in decoding} == {MEMORY_GB}


def test_round_robin_is_played_with_every_pool_and_batched_decode_with_every_baseline() -> None:
    for nodes in (16, 32, 46):
        assert labels("designs", nodes) >= {
            "CXL pool (Beluga-like), round robin",
            "recompute always, round robin",
            "distributed DRAM (Mooncake-like), round robin",
        }
    assert labels("engine", 32) >= {
        f"{name}, decoding on the same GPUs"
        for name in (
            "CXL pool (Beluga-like)",
            "the nodes' own DRAM, lent",
            "distributed DRAM (Mooncake-like)",
        )
    }


def test_every_number_of_storage_nodes_is_a_rival_with_and_without_pool() -> None:
    found = {
        (point.system, point.setting.stores)
        for point in points(Setting(), None, quick=False)
        if point.sweep == "rivals" and point.value == 60
    }
    assert found >= {(name, stores) for name in ("stores", "switch") for stores in (1, 2, 4, 8, 16)}
    assert found >= {("recompute", 2), ("distributed", 2), ("cxl", 2), ("smartnic", 2)}


@pytest.mark.parametrize(("model", "share"), [("llama3-70b-fp8", 0.25625), ("llama3-70b", 0.128125)])
def test_adapters_decode_at_their_own_rate_and_are_billed(model: str, share: float) -> None:
    scenario = system("smartnic", Setting(nodes=10, model=model))
    assert scenario.model.coded_share == pytest.approx(share)
    assert scenario.model.decode_gbyte_s * share == pytest.approx(20.6 / 8)
    plain = system("stores", Setting(nodes=10))
    dearer = 10 * (plain.prices.smartnic - plain.prices.nic) / (4 * 8760)
    assert bill(scenario, 1).cache == pytest.approx(bill(plain, 1).cache + dearer)


@pytest.mark.parametrize("name", ROUTED)
@pytest.mark.parametrize("routing", ROUTINGS)
def test_switches_that_route_by_prefix_cost_what_switches_with_a_pool_do_without_its_memory(
    name: str, routing: str
) -> None:
    for nodes in (16, 46, 60):
        setting = Setting(nodes=nodes)
        scenario = routed(name, setting, routing)
        assert scenario.network == system("recompute", setting).network
        assert bill(scenario, setting.switches).cache == pytest.approx(
            bill(system("lent_merge", setting), setting.switches).cache
        )
        workers = -(-nodes // scenario.routing.leaves)
        assert scenario.routing.buckets >= 8 * workers
        assert scenario.routing.leaves == (scenario.network.leaves or 1)
    assert bill(system("l7", Setting()), 1).cache == 0


def test_routing_by_prefix_is_bought_at_every_fan_in_by_every_rule() -> None:
    found = {
        (point.value, point.system, point.variant)
        for point in points(Setting(), None, quick=False)
        if point.sweep == "rivals" and point.system in ROUTED
    }
    assert found == {
        (nodes, name, routing) for nodes in (16, 32, 46, 60) for name in ROUTED for routing in ROUTINGS
    }


def test_routing_by_prefix_counts_against_pools_and_is_none() -> None:
    assert not {*POOLS} & {*ROUTED, "l7"}
    pool = Purchase("switch", 2, sample(0.3, cost=1.96))
    route = Purchase("kvswitch_lent", 2, sample(0.2, cost=0.46), "as published")
    slow = Purchase("kvswitch", 2, sample(0.4, cost=0.46), "as published")
    assert faster_than(pool, [pool, slow, route]) == [route]


def test_the_bound_of_switches_that_route_and_have_blocks_is_no_purchase() -> None:
    mine = [
        point
        for point in points(Setting(), None, quick=False)
        if point.sweep == "rivals" and point.system == BOUND and point.variant
    ]
    assert {(point.value, point.variant) for point in mine} == {
        (nodes, routing) for nodes in (16, 32, 46, 60) for routing in ROUTED_AT_ONCE
    }
    for point in mine:
        plain = routed("kvswitch_lent", point.setting, point.variant)
        assert point.scenario == plain.changed(direct={"front": "whole"})
        assert purchases([(point, sample(0.1))], point.value) == []


def test_who_decodes_is_the_only_thing_that_differs_between_its_points() -> None:
    mine = [point for point in points(Setting(), None, quick=False) if point.sweep == "decoders"]
    assert {point.variant for point in mine} == set(DECODERS)
    for point in mine:
        plain = system(point.system, point.setting)
        assert point.scenario.changed(decoders={"count": 0}).nodes == plain.nodes
        if point.variant == INSTANT_KV:
            assert point.scenario == plain
        elif point.variant == NO_CHOICE:
            assert (point.scenario.decoders.count, point.scenario.decoders.racks) == (MOST_DECODERS, 1)
        else:
            assert point.scenario.decoders.count == point.setting.nodes
            assert point.scenario.decoders.racks == (plain.network.leaves or 1)


def test_only_what_costs_no_more_and_is_significantly_faster_beats_a_pool() -> None:
    pool = Purchase("switch", 2, sample(0.3, cost=5.36))
    cheaper_and_faster = Purchase("stores", 8, sample(0.2, cost=3.14))
    dearer_and_faster = Purchase("stores", 16, sample(0.15, cost=6.0))
    sometimes_faster = [run(0.2, 2.0), run(0.35, 2.0), run(0.3, 2.0)]
    hardly_faster = Purchase("stores", 4, of_runs(sometimes_faster))
    with_pool = Purchase("switch", 1, sample(0.1, cost=1.0))
    bought = [pool, cheaper_and_faster, dearer_and_faster, hardly_faster, with_pool]
    assert faster_than(pool, bought) == [cheaper_and_faster]
