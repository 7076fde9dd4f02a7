from pathlib import Path

import numpy as np
import pytest

from controller.policies.reuse_ages import AGE_EDGES, BUCKETS
from controller.policies.reuse_classes import CLASSES, new_class
from controller.policies.reuse_model import Learner, bucket_of
from controller.policies.reuse_parts import Parts
from controller.policies.reuse_prior import (
    LEAD_NATS,
    SCHEME,
    Counts,
    CountsError,
    Floats,
    Trust,
    conversation,
    read_counts,
)

YOUNG = new_class(0, is_last=False)
SOON, LATE = bucket_of(4), bucket_of(100)


def hazards(**by_age: float) -> Floats:
    """One in a thousand per tick at any age, and more where it is said."""
    hazard = np.full((CLASSES, BUCKETS), 0.001)
    for name, more in by_age.items():
        hazard[:, {"soon": SOON, "late": LATE}[name]] = more
    return hazard


class Seen:
    """Blocks of a class at risk at each age, reused as a hazard says."""

    def __init__(self) -> None:
        self.reuses, self.exposure = np.zeros((CLASSES, BUCKETS)), np.zeros((CLASSES, BUCKETS))

    def go_on(self, trust: Trust, hazard: Floats, own: Floats) -> float:
        """A while in which 100 block ticks of each age pass; the lead afterwards."""
        trust.go_on(self.reuses.copy(), self.exposure.copy(), own)
        self.exposure[YOUNG] += 100.0
        self.reuses[YOUNG] += 100.0 * hazard[YOUNG]
        trust.see(self.reuses, self.exposure)
        return trust.lead_nats


def test_what_foretells_which_blocks_come_again_is_trusted() -> None:
    known, own = hazards(late=0.5), hazards(soon=0.5)
    trust, seen = Trust(known), Seen()
    assert not trust.is_given
    for _ in range(10):
        seen.go_on(trust, known, own)
    assert trust.is_given
    assert trust.lead_nats == 2 * LEAD_NATS


def test_what_does_not_is_not_trusted_any_more_after_as_much_evidence_however_long_it_was() -> None:
    known, own = hazards(late=0.5), hazards(soon=0.5)
    trust, seen = Trust(known), Seen()
    for _ in range(1000):
        seen.go_on(trust, known, own)
    rounds = 0
    while trust.is_given:
        seen.go_on(trust, own, own)
        rounds += 1
    assert rounds < 10
    for _ in range(1000):
        least = seen.go_on(trust, own, own)
    assert least == -2 * LEAD_NATS


def test_how_much_comes_again_in_all_does_not_count() -> None:
    own = hazards(soon=0.5)
    trust, seen = Trust(own / 50), Seen()
    for _ in range(10):
        assert seen.go_on(trust, own, own) == pytest.approx(0.0, abs=1e-6)


def test_as_long_as_nothing_comes_again_neither_is_better() -> None:
    trust, seen = Trust(hazards(late=0.5)), Seen()
    for _ in range(10):
        assert seen.go_on(trust, np.zeros((CLASSES, BUCKETS)), hazards(soon=0.5)) == 0.0


def counts(bucket: int) -> Counts:
    """A thousand blocks, 40 of 100 that are left come again at one age; the others at no other."""
    known = Counts(np.zeros((CLASSES, BUCKETS)), np.zeros((CLASSES, BUCKETS)))
    widths = np.diff((0, *AGE_EDGES, 2 * AGE_EDGES[-1]))
    known.exposure[YOUNG] = 1000.0 * widths * np.where(np.arange(BUCKETS) <= bucket, 1.0, 0.6)
    known.reuses[YOUNG, bucket] = 400.0
    return known


@pytest.mark.parametrize("is_used", [True, False])
def test_what_is_known_counts_of_ages_that_nothing_has_reached_here(is_used: bool) -> None:
    """Blocks come again at an age of 4 ticks, as is known; of 100 ticks nothing is seen yet."""
    soon, late = counts(SOON), counts(LATE)
    known = soon.plus(late)
    learner = Learner(Parts(known=is_used), known=known)
    reuses, exposure = np.zeros((CLASSES, BUCKETS)), np.zeros((CLASSES, BUCKETS))
    before = learner.learn(reuses, exposure, exposure, 0.0)[2]
    reuses[YOUNG, SOON] = 4000.0
    exposure[YOUNG, : SOON + 1] = 10 * soon.exposure[YOUNG, : SOON + 1]
    index = learner.learn(reuses, exposure, exposure, 0.0)[2][YOUNG]
    assert before[YOUNG, SOON + 1] > before[YOUNG, LATE]
    assert (index[LATE] > 2 * index[SOON + 1] and index[LATE] > 4 * index[LATE + 1]) == is_used


def test_counts_are_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    known = counts(SOON)
    known.write(path, "made up")
    read = read_counts(path)
    assert (read.reuses == known.reuses).all()
    assert read.exposure == pytest.approx(known.exposure)
    assert path.read_text().startswith("# made up\n")


def test_scaled_counts_have_the_same_hazards() -> None:
    known = counts(SOON)
    scaled = known.scaled(40.0)
    assert scaled.reuses.sum() == pytest.approx(40.0)
    assert scaled.exposure == pytest.approx(known.exposure / 10)


def test_people_of_the_conversation_trace_answer_after_a_while() -> None:
    """After 3,000 to 6,000 accesses more than after 700."""
    known = conversation()
    reuses, exposure = known.reuses.sum(0), known.exposure.sum(0)
    later, sooner = bucket_of(64), bucket_of(11)
    assert reuses[later] / exposure[later] > 5 * reuses[sooner] / exposure[sooner]
    assert (known.reuses <= known.exposure * 64 + 1).all()


def test_counts_of_other_classes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    conversation().write(path, "the same")
    assert (read_counts(path).reuses == conversation().reuses).all()
    text = path.read_text()
    assert SCHEME in text
    path.write_text(text.replace("levels (4, 9)", "levels (4, 8)"))
    with pytest.raises(CountsError, match=r"counts\.csv: made for other classes or ages"):
        read_counts(path)
