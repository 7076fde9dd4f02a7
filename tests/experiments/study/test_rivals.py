"""Purchases at equal cost: what is not used is not billed, nothing pays that something cheaper beats."""

from dataclasses import replace

import pytest

from experiments.simulator.money import bill
from experiments.study.claims import Fact
from experiments.study.plan import points
from experiments.study.point import Point
from experiments.study.rivals import (
    Purchase,
    Verdict,
    beating,
    purchases,
    rivals_claim,
    verdict,
)
from experiments.study.systems import MEMORY_GB, Setting, system
from tests.experiments.study.made import of_runs, run, sample


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


def test_only_what_costs_no_more_and_is_surely_faster_beats_a_pool() -> None:
    pool = Purchase("switch", 2, sample(0.3, cost=5.36))
    cheaper_and_faster = Purchase("stores", 8, sample(0.2, cost=3.14))
    dearer_and_faster = Purchase("stores", 16, sample(0.15, cost=6.0))
    sometimes_faster = [run(0.2, 2.0), run(0.35, 2.0), run(0.3, 2.0)]
    hardly_faster = Purchase("stores", 4, of_runs(sometimes_faster))
    with_pool = Purchase("switch", 1, sample(0.1, cost=1.0))
    bought = [pool, cheaper_and_faster, dearer_and_faster, hardly_faster, with_pool]
    assert beating(pool, bought) == [cheaper_and_faster]


def test_it_does_not_pay_where_recomputing_is_better_than_both() -> None:
    """Though it saves 274 ms against the same storage nodes, of each of a million requests an hour."""
    many = {"completed": 1_000_000}
    switch, stores = sample(0.334, 1.96, **many), sample(0.608, 1.47, **many)
    assert verdict(switch, stores, {}) == (Verdict.PAYS, [])
    found = verdict(switch, stores, {"recompute": sample(0.191, 0.0, **many), "stores": stores})
    assert found == (Verdict.BEATEN, ["recompute always"])


def test_a_cold_start_earns_nothing_by_the_hour() -> None:
    many = {"completed": 1_000_000}
    stores = sample(2.7, 1.47, steady_s=0.3, **many)
    switch = sample(0.8, 1.96, steady_s=0.3, **many)
    assert verdict(switch, stores, {})[0] is Verdict.LOSES
    assert stores.start_wait_s.mean == pytest.approx(2 * (2.7 - 0.3) * 500_000, rel=1e-3)


def test_within_the_interval_it_is_undecided() -> None:
    many = {"completed": 1_000_000}
    stores = sample(0.3, 1.47, **many)
    noisy = of_runs([run(0.3, 1.96, steady_s=0.3 * factor, **many) for factor in (0.8, 1.0, 1.15)])
    assert verdict(noisy, stores, {})[0] is Verdict.UNDECIDED


def test_the_answer_names_what_beats_the_fastest_pool_and_its_cost() -> None:
    setting = Setting(nodes=60)
    done = [
        (Point("rivals", 60, name, replace(setting, stores=stores), system(name, setting)), found)
        for name, stores, found in (
            ("switch", 2, sample(0.334, 5.36)),
            ("stores", 2, sample(0.608, 1.47)),
            ("stores", 8, sample(0.2, 3.14)),
        )
    ]
    claim = rivals_claim(purchases(done, 60))
    assert claim.text.startswith(
        "Cold start included, against everything: of 1 purchases with a pool 1 are surely"
    )
    assert (
        "8 storage nodes 0.200 ± 0.000 s (p99 0.600 ± 0.001 s) for 3.14 $/h beats the fastest with a pool"
        in claim.text
    )
    assert "2 storage nodes and pool 0.334 ± 0.001 s (p99 1.002 ± 0.002 s) for 5.36 $/h" in claim.text
    assert claim.facts[0] == Fact("8 storage nodes", "2 storage nodes and pool")
    said = "p99 a pool's is furthest from that of the same without it with 2 storage nodes and pool (-45.1%"
    assert said in claim.text
