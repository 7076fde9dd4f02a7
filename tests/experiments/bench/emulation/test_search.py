"""The search ends at the boundary, wherever it begins."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.command import Screen
from commands.options import read
from commands.verbosity import QUIET
from emulator.options import RunOptions
from experiments.bench.emulation import __main__ as bench
from experiments.bench.emulation.measure import ROLES, Measured
from experiments.bench.emulation.search import STEP, SearchError, SigmaSearch
from topologies.network import Network

LEAST, MOST = 600.0, 160_000.0


@given(boundary=st.floats(LEAST, MOST / 4), first=st.floats(LEAST, MOST))
def test_it_finds_the_smallest_sigma_that_keeps_up_to_within_two_steps(boundary: float, first: float) -> None:
    search = SigmaSearch(lambda sigma: sigma, lambda played: played >= boundary, LEAST, MOST)
    found, played = search.run(first)
    assert found == played
    assert boundary <= found <= boundary * STEP * 1.21
    assert len(search.tried) < 20


def test_a_machine_that_always_keeps_up_ends_at_the_least() -> None:
    search = SigmaSearch(lambda sigma: sigma, lambda played: True, LEAST, MOST)
    assert search.run(5000.0) == (LEAST, LEAST)


def test_a_machine_that_never_keeps_up_is_an_error() -> None:
    search = SigmaSearch(lambda sigma: sigma, lambda played: False, LEAST, MOST)
    with pytest.raises(SearchError, match="160000"):
        search.run(5000.0)


def test_when_time_is_up_a_sigma_that_keeps_up_is_good_enough() -> None:
    search = SigmaSearch(lambda sigma: sigma, lambda played: played >= 4999, LEAST, MOST, lambda: False)
    assert search.run(1250.0)[0] == pytest.approx(5000)  # until one does, it goes on
    assert SigmaSearch(float, lambda played: True, LEAST, MOST, lambda: False).run(9000.0) == (9000.0, 9000.0)


def test_a_boundary_that_moves_does_not_keep_it_for_ever() -> None:
    answers = iter([True, False] * 50)
    search = SigmaSearch(lambda sigma: sigma, lambda played: next(answers), LEAST, MOST)
    search.run(5000.0)
    assert len(search.tried) < 20


def test_where_no_sigma_is_large_enough_there_are_fewer_requests_a_second(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tried: list[tuple[float, float]] = []

    def play(run: RunOptions, sigma: float, *_: object) -> Measured:
        assert run.emulation.speed is not None
        tried.append((run.emulation.speed, sigma))
        cost = dict.fromkeys(ROLES, 1.0)
        complaints = () if run.emulation.speed <= 2.0 and sigma >= 80_000 else ("CPU",)
        return Measured(sigma, 1.0, 100.0, 0.5, complaints, cost, cost, run.emulation.speed)

    monkeypatch.setattr(bench, "play", play)
    given = ("--nodes", "8", "--speed", "8", "--scale", "160000", "--results", str(tmp_path))
    options = read(bench.EmulationOptions, given, "test", "")
    found = bench._search(Screen(QUIET), Network, options, 8, math.inf)
    assert found.kept_up
    assert found.requests_per_s == 2.0
    assert found.sigma == pytest.approx(80_000, rel=STEP - 1)
    assert [speed for speed, _ in tried[:4]] == [8.0, 8.0, 8.0, 4.0]
