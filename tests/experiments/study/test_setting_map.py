"""The map: places are spread over every axis, and a verdict is no more than the figures carry."""

import pytest

from experiments.study.point import Point
from experiments.study.rivals import leads
from experiments.study.sample import STEADY, Sample
from experiments.study.setting_map import (
    CHOICES,
    MAP_AXES,
    Verdict,
    Verdicts,
    around,
    hypercube,
    setting_at,
    setting_points,
    verdicts,
)
from experiments.study.systems import BOUND, MEMORY_GB, OWN_GB, Setting, system
from experiments.study.tornado import BASE, PRICES, RIVALS, bars, changed, swings
from simulator.money import bill
from tests.experiments.study.made import sample


def test_a_hypercube_meets_every_layer_of_every_axis_once() -> None:
    places = hypercube(12, 7)
    for name in (*(axis.field for axis in MAP_AXES), *CHOICES):
        assert sorted(int(place[name] * 12) for place in places) == list(range(12))
    assert places == hypercube(12, 7)
    assert places != hypercube(12, 8)


def test_new_places_keep_traffic_and_model_and_stay_in_bounds() -> None:
    (place,) = hypercube(1, 3)
    for near in around(place, 20, 1):
        one, other = setting_at(place, Setting(), False), setting_at(near, Setting(), False)
        assert (one.model, one.shape) == (other.model, other.shape)
        assert 4 <= other.nodes <= 128
        assert 0.1 <= other.reuse <= 1.0


def at_one_place(**times: float) -> tuple[list[Point], list[Sample]]:
    """Points with means by system (and _number of storage nodes), at their real costs."""
    costs = {
        "recompute": 0.0,
        "distributed": 0.91,
        "cxl": 1.63,
        "stores_2": 1.47,
        "stores_4": 2.03,
        "switch_2": 1.96,
    }
    points, samples = [], []
    for name, mean_s in times.items():
        kind, _, stores = name.partition("_")
        setting = Setting(nodes=32, stores=int(stores or 2))
        points.append(Point("map", "1", kind, setting, system(kind, setting)))
        samples.append(sample(mean_s, costs.get(name, 0.0)))
    return points, samples


def test_a_pool_that_only_distributed_memory_beats_is_best_among_storage_nodes() -> None:
    times = {"recompute": 0.188, "stores_2": 0.193, "stores_4": 0.179, "switch_2": 0.165, BOUND: 0.16}
    found = verdicts(*at_one_place(**times, distributed=0.162, cxl=0.161))
    assert found.verdict is Verdict.BEATEN
    assert found.central_verdict is Verdict.BEST
    assert found.central_lead.mean == pytest.approx(1 - 165 / 188)  # 4 storage nodes cost more than the pool
    assert found.rival.label.startswith("CXL pool")
    alone = verdicts(*at_one_place(**times))
    assert alone.verdict is Verdict.BEST
    assert alone.headroom.mean == pytest.approx(1 - 160 / 179)  # over 4 storage nodes, though these cost more


def test_every_setting_has_all_purchases_and_the_bound() -> None:
    found = setting_points(Setting(), "1")
    assert {(point.system, point.setting.stores) for point in found} >= {
        ("stores", 8),
        ("switch", 4),
        (BOUND, 2),
    }
    assert len({point.place for point in found}) == 1


def test_prices_are_turned_without_a_simulation_and_the_widest_swing_is_first() -> None:
    found = {}
    for kind, stores in (("switch", 2), *RIVALS["switch"]):
        setting = Setting(nodes=32, stores=stores)
        mean_s = 0.165 if kind == "switch" else 0.17
        found[kind] = (Point("tornado", BASE, kind, setting, system(kind, setting)), sample(mean_s))
    made = bars({BASE: found})
    against = f"{found['switch'][0].label} against {found['stores'][0].label}"
    rows = {name: (low, high) for name, low, high in swings(made, against)}
    low, high = rows[PRICES["pool_fixed"]]
    assert low.net_dollars.mean - high.net_dollars.mean == pytest.approx(16_000 * 1.5 / (4 * 8760))
    order = [abs(low.net_dollars.mean - high.net_dollars.mean) for low, high in rows.values()]
    assert order == sorted(order, reverse=True)
    node_low, node_high = rows[PRICES["node_per_hour"]]
    assert node_high.net_dollars.mean > node_low.net_dollars.mean  # the pool is faster, so waiting must count


def test_a_share_stays_a_share_when_it_is_doubled() -> None:
    setting = Setting(nodes=8)
    assert changed(system("distributed", setting), "network.link_gbit_s", 2.0).network.link_gbit_s == 400
    assert (
        changed(system("stores", setting), "model.prefill_utilisation", 4.0).model.prefill_utilisation == 1.0
    )


def test_steady_state_is_judged_by_itself() -> None:
    points, samples = at_one_place(recompute=0.2, **{BOUND: 0.1})
    setting = Setting(nodes=32, stores=2)
    points.append(Point("map", "1", "switch", setting, system("switch", setting)))
    samples.append(sample(0.15, 1.96, steady_s=0.25))
    assert verdicts(points, samples).verdict is Verdict.BEST
    assert verdicts(points, samples, STEADY).verdict is Verdict.BEATEN


def test_a_lead_is_sure_in_the_map_where_it_is_among_purchases_however_small() -> None:
    costs = {"recompute": 0.0, "lent": 0.0, "lent_merge": 0.46, "switch": 1.96}

    def at(gain: float) -> Verdicts:
        times = {"recompute": 0.2, "lent": 0.17, "lent_merge": 0.17 * (1 - gain), "switch": 0.3, BOUND: 0.16}
        setting = Setting(nodes=32)
        points = [Point("map", "1", name, setting, system(name, setting)) for name in times]
        return verdicts(points, [sample(mean_s, costs.get(name, 0.0)) for name, mean_s in times.items()])

    for gain, verdict in (
        (0.0004, Verdict.SAME),
        (-0.0004, Verdict.SAME),
        (0.002, Verdict.BEST),
        (-0.002, Verdict.BEATEN),
        (0.02, Verdict.BEST),
        (-0.02, Verdict.BEATEN),
    ):
        found = at(gain)
        assert found.verdict is verdict
        leading = [one for one in found.bought if one.pooled and leads(one, found.bought)]
        assert bool(leading) == (verdict is Verdict.BEST)


def test_distributed_memory_has_as_much_memory_and_is_billed_for_what_it_adds() -> None:
    setting = Setting(nodes=32)
    distributed, lent, bound = (system(name, setting) for name in ("distributed", "lent", BOUND))
    assert distributed.nodes.dram_gb * 32 == pytest.approx(MEMORY_GB + 32 * OWN_GB)
    assert bill(distributed, 1).cache == pytest.approx(MEMORY_GB * 4 / (4 * 8760))
    assert bill(lent, 1).cache == 0
    assert bound.nodes.dram_gb == distributed.nodes.dram_gb
    fronted = system("lent_pool", setting)
    assert bill(fronted, 1).cache == pytest.approx((16_000 + 4 * 256) / (4 * 8760))
