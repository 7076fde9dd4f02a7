"""Who is best for how much: counts are those of the figures, and what is said most often is drawn so."""

from math import inf
from random import Random

import pytest

from experiments.study.budget import BUDGETS, Score, budget_claim, budget_text, scores
from experiments.study.claims import Fact, contradictions
from experiments.study.panels.budgets import budgets
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


def test_a_hair_is_the_fastest_and_not_surely() -> None:
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
    assert "In the second half most often recompute always, in 1 (1)." in budget_claim(found, 1).text


def test_what_is_said_of_a_budget_is_what_its_figures_are_whatever_these_are() -> None:
    draw, held = Random(4), 0
    for _ in range(60):
        places = [
            [
                Purchase(name, 2, of_runs([run(draw.uniform(0.1, 0.2), cost) for _ in range(3)]))
                for name, cost in COSTS.items()
            ]
            for _ in range(5)
        ]
        panel = budgets(places, "5 places", "budgets", [])
        for budget in BUDGETS:
            best = [
                min(
                    (one for one in mine if one.sample.cost <= budget),
                    key=lambda one: one.sample.mean("ttft_s", "mean"),
                )
                for mine in places
            ]
            for label in {one.label for one in best}:
                count = sum(one.label == label for one in best)
                said = panel.claim.text.partition(budget_text(budget).capitalize())[2].partition(
                    " In steady"
                )[0]
                assert f"{label} {count} (" in said
                assert panel.plotted[f"{label}, {budget_text(budget)}"].mean == count
        held += len(panel.claim.facts)
        swapped = dict(panel.plotted)
        for fact in panel.claim.facts[:1]:
            assert isinstance(fact, Fact)
            swapped |= {fact.less: panel.plotted[fact.more], fact.more: panel.plotted[fact.less]}
            assert contradictions(panel.claim, swapped)
    assert held > 60
