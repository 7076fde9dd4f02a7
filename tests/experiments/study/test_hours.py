"""Hours: where and what is played, and what is read of them."""

import pytest

from experiments.study.hours import SEEDS, compared_by, hour_points, hour_sample, hour_seeds, saved_s
from experiments.study.systems import BOUND, Setting
from tests.experiments.study.made import of_runs, run, sample

MOST_REQUESTS = 187_200


def test_every_fan_in_of_the_ledger_has_an_hour_of_what_it_compares() -> None:
    points = list(hour_points(Setting(), quick=False))
    for nodes in (4, 16, 64, 256):
        mine = {(point.system, point.setting.stores) for point in points if point.value == nodes}
        assert mine >= {("recompute", 2), ("lent", 2), ("stores", 2), ("switch", 2)}
    chosen = {(point.system, point.setting.stores) for point in points if point.value == 16}
    assert chosen >= {("lent_pool", 2), ("answered_pool", 2), (BOUND, 2), ("cxl", 2), ("stores", 4)}
    assert max(point.setting.requests for point in points) == MOST_REQUESTS
    assert hour_seeds(16) == SEEDS


def test_hours_of_several_seeds_are_compared_by_seed_and_one_by_its_parts() -> None:
    of_seeds = sample(0.3, steady_s=0.2)  # three parts, of which the first is cold
    assert len(hour_sample(of_seeds).runs) == 3
    assert compared_by(of_seeds) == "seeds"
    assert hour_sample(of_seeds).values(("ttft_s", "mean")) == pytest.approx([0.2, 0.2, 0.2])
    one = of_runs([run(0.3, steady_s=0.2)])
    assert len(hour_sample(one).runs) == 2
    assert compared_by(one) == "twelfths"
    assert hour_sample(one).mean("ttft_s", "p99") == pytest.approx(0.6)


def test_what_an_hour_saves_leaves_out_how_it_began() -> None:
    """1,000 requests in an hour, each 0.1 s sooner once nodes are warm, however they began."""
    pool, none = sample(0.3, steady_s=0.1), sample(0.9, steady_s=0.2)
    assert saved_s(pool, none).mean == pytest.approx(100.0)
