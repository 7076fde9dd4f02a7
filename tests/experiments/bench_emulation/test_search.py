"""The search ends at the boundary, wherever it begins."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.bench_emulation.search import STEP, SearchError, SigmaSearch

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
