import math
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.policies import Hits, Miss
from controller.policies.reuse import reuse, reuse_prior
from controller.policies.reuse.reuse import Reuse
from controller.policies.reuse.reuse_ages import AGE_EDGES, BUCKETS
from controller.policies.reuse.reuse_classes import CLASSES, new_class
from controller.policies.reuse.reuse_model import Learner, bucket_of
from controller.policies.reuse.reuse_parts import Parts, Tuning
from controller.policies.reuse.reuse_prior import (
    CONVERSATION,
    KNOWN_REUSES,
    OWN_SHARE,
    REUSES_AT_ONCE,
    SHARE,
    Counts,
    CountsError,
    Floats,
    Forecasts,
    Trust,
    read_counts,
    shipped,
    write_counts,
)

YOUNG = new_class(0, is_last=False)
SOON, LATE = bucket_of(4), bucket_of(100)


def hazards(**by_age: float) -> Floats:
    """One in a thousand per tick at any age, and more where it is said."""
    hazard = np.full((CLASSES, BUCKETS), 0.001)
    for name, more in by_age.items():
        hazard[:, {"soon": SOON, "late": LATE}[name]] = more
    return hazard


def foretelling(*hazard: Floats) -> Forecasts:
    """Forecasts with these hazards, each from a million block ticks at each age."""
    exposure = np.full((CLASSES, BUCKETS), 1e6)
    return Forecasts(
        [Counts(one * exposure, exposure) for one in hazard], lambda reuses, exposure: reuses / exposure
    )


class Seen:
    """Blocks of a class at risk at each age, reused as a hazard says."""

    def __init__(self) -> None:
        self.reuses, self.exposure = np.zeros((CLASSES, BUCKETS)), np.zeros((CLASSES, BUCKETS))

    def go_on(self, trust: Trust, hazard: Floats, own: Floats) -> Floats:
        """A while in which 100 block ticks of each age pass; the weights afterwards."""
        trust.go_on(self.reuses.copy(), self.exposure.copy(), own)
        self.exposure[YOUNG] += 100.0
        self.reuses[YOUNG] += 100.0 * hazard[YOUNG]
        trust.see(self.reuses, self.exposure)
        return trust.weights


def test_what_foretells_which_blocks_come_again_is_trusted() -> None:
    right, wrong, own = hazards(late=0.5), hazards(soon=0.2), hazards(soon=0.5)
    trust, seen = Trust(foretelling(wrong, right)), Seen()
    assert trust.weights == pytest.approx([OWN_SHARE, (1 - OWN_SHARE) / 2, (1 - OWN_SHARE) / 2])
    for _ in range(10):
        seen.go_on(trust, right, own)
    assert trust.weights[2] > 0.99
    known = trust.counts
    assert known is not None
    assert known.reuses[YOUNG, LATE] > 100 * known.reuses[YOUNG, SOON]
    assert known.reuses / known.exposure == pytest.approx(right, rel=0.01)


def test_a_requests_blocks_that_come_again_together_tell_as_much_as_one() -> None:
    """That a block came at one of all ages is e times as likely by what is known: so are then its odds."""
    own = hazards()
    known = np.full((CLASSES, BUCKETS), (BUCKETS - math.e) / (BUCKETS - 1) * 0.001)
    known[:, LATE] = math.e * 0.001
    trust, exposure = Trust(foretelling(known)), np.zeros((CLASSES, BUCKETS))
    trust.go_on(exposure, exposure, own)
    reuses, exposure = np.zeros((CLASSES, BUCKETS)), exposure + 1.0
    reuses[YOUNG, LATE] = REUSES_AT_ONCE
    trust.see(reuses, exposure)
    odds = math.e * (1 - OWN_SHARE) / OWN_SHARE
    expected = (1 - SHARE) * odds / (1 + odds) + SHARE * (1 - OWN_SHARE)
    assert trust.weights[1] == pytest.approx(expected)


def test_what_does_not_is_not_trusted_any_more_however_long_it_was() -> None:
    known, own = hazards(late=0.5), hazards(soon=0.5)
    trust, seen = Trust(foretelling(known)), Seen()
    for _ in range(1000):
        seen.go_on(trust, known, own)
    assert trust.weights[0] < 0.01
    for _ in range(10):
        seen.go_on(trust, own, own)
    assert trust.weights[0] > 0.5
    for _ in range(1000):
        least = seen.go_on(trust, own, own)[1]
    assert least >= SHARE * (1 - OWN_SHARE)
    assert trust.counts is None


def test_a_long_trace_weighs_as_much_as_a_short_one() -> None:
    long, short = counts(SOON), counts(SOON).scaled(4.0)
    forecasts = Forecasts([long, short], lambda reuses, exposure: (reuses + 1.0) / (exposure + 1.0))
    assert forecasts.reuses.sum(1) == pytest.approx(KNOWN_REUSES)
    for table in (forecasts.reuses, forecasts.exposure, forecasts.hazard):
        assert table[0] == pytest.approx(table[1])


def test_counts_of_what_never_comes_again_are_refused() -> None:
    nothing = Counts(np.zeros((CLASSES, BUCKETS)), np.ones((CLASSES, BUCKETS)))
    with pytest.raises(CountsError, match="leave them out"):
        Forecasts([nothing], lambda reuses, exposure: exposure)


def test_how_much_comes_again_in_all_does_not_count() -> None:
    own = hazards(soon=0.5)
    trust, seen = Trust(foretelling(own / 50)), Seen()
    for _ in range(10):
        assert seen.go_on(trust, own, own) == pytest.approx([OWN_SHARE, 1 - OWN_SHARE])


def test_as_long_as_nothing_comes_again_none_is_better() -> None:
    trust, seen = Trust(foretelling(hazards(late=0.5))), Seen()
    for _ in range(10):
        seen.go_on(trust, np.zeros((CLASSES, BUCKETS)), hazards(soon=0.5))
    assert trust.weights == pytest.approx([OWN_SHARE, 1 - OWN_SHARE])


@given(st.lists(st.sampled_from(["soon", "late", "other"]), max_size=30))
def test_weights_are_shares_of_one_whatever_comes(rounds: list[str]) -> None:
    kinds = {"soon": hazards(soon=0.9), "late": hazards(late=0.9), "other": hazards()}
    trust, seen = Trust(foretelling(kinds["soon"], kinds["late"])), Seen()
    for kind in rounds:
        weights = seen.go_on(trust, 1000 * kinds[kind], kinds["other"])
        assert weights.sum() == pytest.approx(1.0)
        assert weights.min() >= SHARE * (1 - OWN_SHARE) / 2


@given(
    st.lists(
        st.tuples(
            st.integers(0, CLASSES - 1),
            st.integers(0, BUCKETS - 1),
            st.sampled_from([0.0, 1.0, 4096.0, 2.0**31]),
            st.sampled_from([0.0, 0.5, 1e4, 1e12]),
            st.sampled_from([0.0, 1.0, 8.0, 1e4, 1e7]),
        ),
        max_size=8,
    ),
    st.sampled_from([0.01, 4096.0, math.inf]),
)
def test_tables_and_weights_are_finite_whatever_is_counted(
    events: list[tuple[int, int, float, float, float]], fade_ticks: float
) -> None:
    """However much comes at once, however little is at risk, and however much fades."""
    learner = Learner(tuning=Tuning(fade_ticks=fade_ticks))
    assert learner.trust is not None
    reuses, exposure, passed = np.zeros((3, CLASSES, BUCKETS))
    with np.errstate(all="raise", under="ignore"):
        for kind, bucket, reused, exposed, ticks in events:
            reuses[kind, bucket] += reused
            exposure[kind, bucket] += exposed
            passed[kind, bucket] += exposed > 0
            reuses, exposure, index, chance = learner.learn(reuses.copy(), exposure.copy(), passed, ticks)
            assert np.isfinite(index).all()
            assert index.min() >= 0
            assert 0 <= chance.min() <= chance.max() <= 1
            assert learner.trust.weights.sum() == pytest.approx(1.0)
            assert learner.trust.weights.min() > 0


def test_counts_only_grow_until_they_fade(monkeypatch: pytest.MonkeyPatch) -> None:
    """In play, too: with forgetting, tenants, thousands of requests in one event and hardly any memory."""
    see, seen = Trust.see, []

    def recorded(trust: Trust, reuses: Floats, exposure: Floats) -> None:
        seen.append(min((reuses - trust._reuses).min(), (exposure - trust._exposure).min()))
        see(trust, reuses, exposure)

    monkeypatch.setattr(Trust, "see", recorded)
    monkeypatch.setattr(reuse, "HISTORY_BLOCKS", 100)
    monkeypatch.setattr(reuse, "HISTORY_OF_ONE_OF_MANY", 50)
    policy = Reuse(20, tuning=Tuning(fade_ticks=30.0))
    chooser = Random(1)
    with np.errstate(all="raise", under="ignore"):
        for number in range(6000):
            block, times = chooser.randrange(30 if number % 2000 < 500 else 3000), 1
            if chooser.random() < 0.01:
                times = chooser.choice((40, 4096, 10**6))
            if block in policy:
                policy.hits(Hits(block, float(number), times))
            else:
                policy.miss(Miss(block, float(number), 0, 1, None, times, tenant=block % 5))
    assert len(seen) > 50
    assert min(seen) == 0.0


def counts(bucket: int) -> Counts:
    """A thousand blocks, 40 of 100 that are left come again at one age; the others at no other."""
    known = Counts(np.zeros((CLASSES, BUCKETS)), np.zeros((CLASSES, BUCKETS)))
    widths = np.diff((0, *AGE_EDGES, 2 * AGE_EDGES[-1]))
    known.exposure[YOUNG] = 1000.0 * widths * np.where(np.arange(BUCKETS) <= bucket, 1.0, 0.6)
    known.reuses[YOUNG, bucket] = 400.0
    return known


def index_after(learner: Learner, oldest_passed: int) -> Floats:
    """Of blocks that came again soon, as is known, where others were as old as that and did not come."""
    soon = counts(SOON)
    reuses, exposure, passed = np.zeros((3, CLASSES, BUCKETS))
    reuses[YOUNG, SOON] = 4000.0
    exposure[YOUNG, : SOON + 1] = 10 * soon.exposure[YOUNG, : SOON + 1]
    passed[0, : oldest_passed + 1] = 1.0
    index: Floats = learner.learn(reuses, exposure, passed, 0.0)[2][YOUNG]
    return index


@pytest.mark.parametrize("is_used", [True, False])
def test_what_is_known_counts_of_ages_that_a_class_has_not_reached_here(
    monkeypatch: pytest.MonkeyPatch, is_used: bool
) -> None:
    """Blocks come again at an age of 4 ticks, as is known; of 100 ticks none of their class is seen yet."""
    monkeypatch.setattr(reuse_prior, "OWN_SHARE", 0.01)
    index = index_after(Learner(Parts(known=is_used), known=[counts(SOON).plus(counts(LATE))]), BUCKETS - 1)
    assert (index[LATE] > 2 * index[SOON + 1] and index[LATE] > 4 * index[LATE + 1]) == is_used


def test_what_is_known_does_not_count_at_ages_that_nothing_has_passed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reuse_prior, "OWN_SHARE", 0.01)
    learner = partial(Learner, known=[counts(SOON).plus(counts(LATE))])
    assert index_after(learner(), SOON)[LATE] < 2 * index_after(learner(Parts(known=False)), SOON)[LATE]


def test_what_is_known_tells_nothing_of_ages_beyond_those_that_are_passed() -> None:
    """What is known to come soon or never may come again at an age that nothing has reached here, as in a
    loop: the oldest are given up no sooner than without knowing."""
    never = counts(SOON)
    never.exposure[YOUNG, SOON + 1 :] *= 1e6
    reuses, exposure, passed = np.zeros((3, CLASSES, BUCKETS))
    reuses[YOUNG, SOON], exposure[YOUNG, : SOON + 1], passed[YOUNG, : SOON + 1] = 4000.0, 1e4, 1000.0
    told, alone = Learner(known=[never]), Learner(known=[])
    assert told.trust is not None
    told.trust.weights = np.array([0.01, 0.99])
    beyond = slice(SOON + 1, None)
    index, assumed = (one.learn(reuses, exposure, passed, 0.0)[2][YOUNG, beyond] for one in (told, alone))
    assert index == pytest.approx(assumed, rel=1e-9)


def test_what_is_known_counts_at_ages_at_which_some_came_again_and_none_passed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 1,000 blocks that are known 600 pass that age, so one that came again is no rule."""
    monkeypatch.setattr(reuse_prior, "OWN_SHARE", 0.01)
    reuses, exposure, passed = np.zeros((3, CLASSES, BUCKETS))
    reuses[0, LATE] = exposure[0, LATE] = 1.0
    known, alone = Learner(known=[counts(LATE)]), Learner(known=[])
    index, assumed = (one.learn(reuses, exposure, passed, 0.0)[2][YOUNG] for one in (known, alone))
    assert index[LATE] < 0.5 * assumed[LATE]


def test_what_fades_is_not_taken_for_what_is_seen() -> None:
    """Counts that came to be since the last time count as they are, however much of those before faded."""

    def weights_after(ticks: float) -> Floats:
        learner = Learner(known=[counts(SOON), counts(LATE)])
        reuses, exposure, passed = np.zeros((3, CLASSES, BUCKETS))
        reuses, exposure, *_ = learner.learn(reuses, exposure, passed, 0.0)
        for now in (counts(SOON).scaled(6.0), counts(LATE).scaled(12.0)):
            assert learner.trust is not None
            learner.trust._own_hazard = np.full((CLASSES, BUCKETS), 0.01)
            reuses, exposure, *_ = learner.learn(reuses + now.reuses, exposure + now.exposure, passed, ticks)
        assert learner.trust is not None
        return learner.trust.weights

    assert weights_after(4096.0) == pytest.approx(weights_after(0.0))


def test_what_was_learned_here_is_judged_without_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reuse_prior, "OWN_SHARE", 0.01)
    told, alone = Learner(known=[counts(LATE)]), Learner(Parts(lookahead=False), known=[])
    seen, passed = counts(SOON), np.ones((CLASSES, BUCKETS))
    told.learn(seen.reuses, seen.exposure, passed, 0.0)
    assert told.trust is not None
    assert np.array_equal(told.trust._own_hazard, alone.learn(seen.reuses, seen.exposure, passed, 0.0)[2])


def test_nothing_may_be_known() -> None:
    nothing, alone = Learner(known=[]), Learner(Parts(known=False))
    assert np.array_equal(index_after(nothing, LATE), index_after(alone, LATE))


def test_counts_are_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "counts.npz"
    known = {"soon": counts(SOON), "late": counts(LATE)}
    write_counts(path, known)
    read = read_counts(path)
    assert list(read) == list(known)
    for name, found in read.items():
        assert (found.reuses == known[name].reuses).all()
        assert found.exposure == pytest.approx(known[name].exposure)


def test_scaled_counts_have_the_same_hazards() -> None:
    known = counts(SOON)
    scaled = known.scaled(40.0)
    assert scaled.reuses.sum() == pytest.approx(40.0)
    assert scaled.exposure == pytest.approx(known.exposure / 10)


def test_people_of_the_conversation_trace_answer_after_a_while() -> None:
    """After 3,000 to 6,000 accesses more than after 700."""
    known = shipped()[CONVERSATION]
    reuses, exposure = known.reuses.sum(0), known.exposure.sum(0)
    later, sooner = bucket_of(64), bucket_of(11)
    assert reuses[later] / exposure[later] > 5 * reuses[sooner] / exposure[sooner]
    assert (known.reuses <= known.exposure * 64 + 1).all()


def test_counts_of_other_classes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "counts.npz"
    monkeypatch.setattr(reuse_prior, "SCHEME", "classes and ages of another version")
    write_counts(path, {"soon": counts(SOON)})
    monkeypatch.undo()
    with pytest.raises(CountsError, match=r"counts\.npz: made for other classes or ages"):
        read_counts(path)
