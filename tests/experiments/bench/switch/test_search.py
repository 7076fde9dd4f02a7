"""The search for the highest rate without loss, against engines whose limit is known."""

from hypothesis import given
from hypothesis import strategies as st

from experiments.bench.switch.search import RESOLUTION, highest_lossless

MOST = 2_000_000


@given(limit=st.integers(200, MOST), guess=st.integers(0, 3_000_000))
def test_finds_the_limit_to_the_resolution(limit: int, guess: int) -> None:
    asked: list[int] = []

    def passes(rate: int) -> bool:
        asked.append(rate)
        return rate <= limit

    found = highest_lossless(passes, guess, MOST)
    assert limit / RESOLUTION - 1 <= found <= limit
    assert max(asked) <= MOST


@given(guess=st.integers(0, MOST))
def test_an_engine_that_always_loses_has_no_rate(guess: int) -> None:
    assert highest_lossless(lambda rate: False, guess, MOST) == 0


@given(limit=st.integers(1_000, MOST), factor=st.floats(0.5, 2))
def test_a_good_guess_needs_few_runs(limit: int, factor: float) -> None:
    asked: list[int] = []

    def passes(rate: int) -> bool:
        asked.append(rate)
        return rate <= limit

    highest_lossless(passes, round(limit * factor), MOST)
    assert len(asked) <= 10


def test_a_rate_that_passes_only_sometimes_still_ends() -> None:
    answers = iter([True, False] * 100)
    assert highest_lossless(lambda rate: next(answers), 1000, MOST) >= 1000
