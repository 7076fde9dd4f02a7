"""Bars of the tornado plot, also where the budget ended in the middle of it."""

from __future__ import annotations

import itertools

import pytest

from experiments.intervals import Interval
from experiments.study.claims import EVEN, ZERO, Fact, contradictions
from experiments.study.design_rules import tornado_claim
from experiments.study.point import Point
from experiments.study.sample import Sample
from experiments.study.systems import Setting
from experiments.study.tornado import BASE, Bar, bars, swings, tornado_points
from tests.experiments.study.made import run

PLAYED = list(tornado_points(Setting(), quick=True))


def found(count: int) -> dict[str, dict[str, tuple[Point, Sample]]]:
    """The first so many points, as if they had been played."""
    made: dict[str, dict[str, tuple[Point, Sample]]] = {}
    for place, point in enumerate(PLAYED[:count]):
        runs = tuple(run(0.2 + 0.01 * place + 0.001 * seed) for seed in range(3))
        made.setdefault(str(point.value), {})[point.system] = (point, Sample(runs))
    return made


@pytest.mark.parametrize("count", range(len(PLAYED) + 1))
def test_as_much_is_told_as_was_played(count: int) -> None:
    made = bars(found(count))
    for rival in {bar.rival for bar in made}:
        for _, halved, doubled in swings(made, rival):
            assert halved.rival == doubled.rival == rival
        assert tornado_claim(made, rival).text


def test_all_changes_have_two_bars_in_the_end() -> None:
    made = bars(found(len(PLAYED)))
    rivals = {bar.rival for bar in made}
    assert len(rivals) > 1
    changes = {bar.change.rsplit(" ", 1)[0] for bar in made if bar.change.endswith((" halved", " doubled"))}
    for rival, other in itertools.pairwise(rivals):
        assert len(swings(made, rival)) == len(swings(made, other)) == len(changes)


def bar(change: str, low: float, high: float) -> Bar:
    dollars = Interval((low + high) / 2, low, high)
    return Bar(change, "4 storage nodes", 3, dollars, ZERO, ZERO)


def test_a_decision_turns_surely_only_where_the_whole_interval_does() -> None:
    made = [
        bar(BASE, 1.0, 3.0),
        bar("load halved", -3.0, -1.0),
        bar("load doubled", -3.0, 1.0),
        bar("links halved", 1.0, 2.0),
        bar("links doubled", 1.0, 5.0),
    ]
    claim = tornado_claim(made, "4 storage nodes")
    assert "surely turns with load halved." in claim.text
    assert "load doubled" not in claim.text.partition("The decision")[2]
    assert claim.facts == (
        Fact(EVEN, BASE),
        Fact("load halved", EVEN),
        Fact(EVEN, "links halved"),
        Fact(EVEN, "links doubled"),
    )
    drawn = {one.change: one.net_dollars for one in made} | {EVEN: ZERO}
    assert contradictions(claim, drawn) == []
    assert contradictions(claim, drawn | {"load halved": drawn[BASE]})
    calm = tornado_claim([made[0], *made[3:]], "4 storage nodes")
    assert "No single halving or doubling surely turns the decision." in calm.text


def test_what_is_not_decided_cannot_turn() -> None:
    made = [
        bar(BASE, -1.0, 3.0),
        bar("load halved", -3.0, -1.0),
        bar("load doubled", -3.0, 1.0),
        bar("links halved", 1.0, 2.0),
        bar("links doubled", -1.0, 5.0),
    ]
    claim = tornado_claim(made, "4 storage nodes")
    assert "against 4 storage nodes, not told from 0" in claim.text
    assert "decision surely turns" not in claim.text
    assert claim.text.endswith("The pool is surely ahead with links halved, surely behind with load halved.")
    assert claim.facts == (Fact("load halved", EVEN), Fact(EVEN, "links halved"))
