"""Who is best for how much: counts are those of the figures."""

from math import inf

import pytest

from experiments.study.budget import Score, scores
from experiments.study.rivals import Purchase
from tests.experiments.study.made import of_runs, run, sample

COSTS = {"recompute": 0.0, "lent": 0.0, "lent_pool": 0.49, "cxl": 1.6, "switch": 4.0, "stores": 5.4}


def place(**times: float) -> list[Purchase]:
    return [Purchase(name, 2, sample(mean_s, COSTS[name])) for name, mean_s in times.items()]


def of(found: list[Score], budget: float, label: str) -> Score:
    return next(one for one in found if (one.budget, one.purchase) == (budget, label))


def test_more_money_buys_more_and_each_budget_has_its_own_fastest() -> None:
    places = [
        place(recompute=0.2, lent=0.18, cxl=0.17, switch=0.16, stores=0.15),
        place(recompute=0.2, lent=0.21, cxl=0.18, switch=0.19, stores=0.25),
    ]
    found = scores(places)
    lent, nothing = "the nodes' own DRAM, lent", "recompute always"
    assert (of(found, 0.0, lent).whole.fastest, of(found, 0.0, nothing).whole.fastest) == (1, 1)
    assert of(found, 2.0, "CXL pool (Beluga-like)").whole == (2, 2, 2)
    assert of(found, 5.0, "2 storage nodes and pool").whole == (1, 1, 1)
    assert of(found, inf, "2 storage nodes").whole == (1, 1, 1)
    assert of(found, inf, "CXL pool (Beluga-like)").gain.mean == pytest.approx(1 - (0.17 + 0.18) / 0.4)
    assert "2 storage nodes" not in [one.purchase for one in found if one.budget < inf]


def test_a_hair_is_the_fastest_and_not_significantly() -> None:
    noisy = of_runs([run(0.18), run(0.19), run(0.20)])
    (lent, nothing) = [
        Purchase("lent", 2, noisy), Purchase("recompute", 2, of_runs([run(0.2), run(0.19), run(0.185)])),
    ]  # fmt: skip
    found = scores([[lent, nothing]])
    assert of(found, 0.0, lent.label).whole == (1, 0, 1)
    assert of(found, 0.0, nothing.label).whole == (0, 0, 1)


def test_steady_state_is_counted_by_itself() -> None:
    lent = Purchase("lent", 2, sample(0.18, 0.0, steady_s=0.3))
    nothing = Purchase("recompute", 2, sample(0.2, 0.0))
    found = scores([[lent, nothing]])
    assert (of(found, 0.0, lent.label).whole.fastest, of(found, 0.0, lent.label).steady.fastest) == (1, 0)
    assert of(found, 0.0, nothing.label).steady == (1, 1, 1)
