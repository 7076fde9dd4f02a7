"""Bars of the tornado plot, also where the budget ended in the middle of it."""

from __future__ import annotations

import itertools

import pytest

from experiments.study.point import Point
from experiments.study.sample import Sample
from experiments.study.systems import SHARE, Setting, system
from experiments.study.tornado import BASE, RIVALS, bars, swings, tornado_points
from simulator.money import bill
from tests.experiments.study.made import of_runs, run

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
    for pair in {bar.pair for bar in made}:
        for _, halved, doubled in swings(made, pair):
            assert halved.pair == doubled.pair == pair


def test_all_changes_have_two_bars_in_the_end() -> None:
    made = bars(found(len(PLAYED)))
    pairs = {bar.pair for bar in made}
    assert len(pairs) == sum(map(len, RIVALS.values())) > 1
    changes = {bar.change.rsplit(" ", 1)[0] for bar in made if bar.change.endswith((" halved", " doubled"))}
    for pair, other in itertools.pairwise(pairs):
        assert len(swings(made, pair)) == len(swings(made, other)) == len(changes)


def test_dollars_an_hour_are_those_of_steady_state_whatever_the_cold_start_was() -> None:
    """A cold start comes once: it is no rate."""
    setting = Setting(nodes=32)
    base = {
        name: (
            Point("tornado", BASE, name, setting, system(name, setting)),
            of_runs([run(mean_s, 0.0, 0.2)] * 3),
        )
        for name, mean_s in (("lent", 0.9), ("lent_pool", 0.3))
    }
    found = next(bar for bar in bars({BASE: base}) if bar.change == BASE)
    dearer = bill(base["lent_pool"][0].scenario, 1).cache
    assert found.net_dollars.mean == pytest.approx(-dearer)
    assert found.faster.mean == found.tail.mean == 0.0


def test_what_a_pool_in_front_of_lent_dram_is_worth_is_asked_with_other_shares_of_a_link() -> None:
    shares = {
        (str(point.value), point.system): point.scenario.direct.peer_share
        for point in tornado_points(Setting(), quick=False)
        if point.system in ("lent", "lent_pool", "answered_pool")
    }
    of = "share of a link that RDMA reads get"
    for system_ in ("lent", "lent_pool"):
        assert shares[BASE, system_] == SHARE
        assert shares[f"{of} halved", system_] == SHARE / 2
        assert shares[f"{of} doubled", system_] == 1.0
    assert (BASE, "answered_pool") in shares
