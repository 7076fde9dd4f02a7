"""What is said of p99 is held to the p99 that is drawn."""

import pytest

from experiments.intervals import Interval
from experiments.study.claims import Alike, Claim, ContradictionError, Fact, contradictions, must_hold
from experiments.study.sample import P99, Sample
from experiments.study.tails import TAIL_MARK, Tail, tails, tails_from
from tests.experiments.study.made import of_runs, run, sample


def with_tails(*p99_s: float) -> Sample:
    """Runs of the same mean."""
    return of_runs([{**run(0.2), "ttft_s": {"mean": 0.2, "p50": 0.2, "p99": value}} for value in p99_s])


def beside(one: Sample, other: Sample) -> Tail:
    return Tail("pool", one, "none", other)


def drawn(tail: Tail) -> dict[str, Interval]:
    return {
        "pool" + TAIL_MARK: tail.one.interval(*P99),
        "none" + TAIL_MARK: tail.other.interval(*P99),
        "pool": Interval(0.2, 0.2, 0.2),
        "none": Interval(0.2, 0.2, 0.2),
    }


def test_a_sentence_of_p99_is_refused_where_only_the_means_agree_with_it() -> None:
    """Means are alike; p99 is a tenth sooner, and drawn the other way round."""
    tail = beside(with_tails(0.9, 0.91, 0.9), with_tails(1.0, 1.01, 1.0))
    claim = tails({"16": tail})
    assert claim == Claim("p99 differs at 16 (-10.0% ± 0.1%)", (Fact("pool (p99)", "none (p99)"),))
    assert contradictions(claim, drawn(tail)) == []
    with pytest.raises(ContradictionError, match=r"does not show pool \(p99\) below none \(p99\)"):
        must_hold(claim, drawn(beside(tail.other, tail.one)))


def test_that_p99_differs_nowhere_is_refused_where_its_intervals_lie_apart() -> None:
    tail = beside(with_tails(0.9, 1.0, 1.1), with_tails(1.1, 0.9, 1.0))
    claim = tails({"16": tail})
    assert claim.text == "p99 is nowhere told apart by 0.5% or more"
    assert claim.facts == (Alike("pool (p99)", "none (p99)"),)
    assert contradictions(claim, drawn(tail)) == []
    far = drawn(beside(sample(0.1), sample(0.2)))
    with pytest.raises(ContradictionError, match=r"pool \(p99\) no other than none \(p99\)"):
        must_hold(claim, far)
    assert contradictions(claim, {})


def test_what_is_certain_and_hardly_anything_needs_no_word_and_no_plot() -> None:
    tail = beside(with_tails(1.002, 1.002, 1.002), with_tails(1.0, 1.0, 1.0))
    assert tails({"16": tail}) == Claim("p99 is nowhere told apart by 0.5% or more")


def test_no_word_is_said_that_the_drawn_means_contradict() -> None:
    """Sooner by the ratio of each seed, later in the mean that is drawn."""
    tail = beside(
        with_tails(*9 * [0.99], 10.5),
        with_tails(*9 * [1.0], 10.4),
    )
    assert tail.change.high < 1
    assert tail.one.mean(*P99) > tail.other.mean(*P99)
    assert not tail.moved
    assert tails({"16": tail}).text.startswith("p99 is nowhere")


def test_who_is_not_told_apart_is_told_by_who_is_furthest() -> None:
    near = beside(with_tails(0.9, 1.0, 1.11), with_tails(1.1, 0.9, 1.0))
    far = beside(with_tails(2.0, 2.1, 2.0), with_tails(1.0, 1.0, 1.0))
    assert tails_from("none", {"near": near, "far": far}).text.startswith(
        "told from none with far (+103.3% ± 14.3%); of the other 1 furthest with near ("
    )
    assert tails_from("none", {"near": near}).text.startswith("told from none nowhere; of the other 1")
    assert tails_from("none", {"far": far}).text == "told from none with far (+103.3% ± 14.3%)"
