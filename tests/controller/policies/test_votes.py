import pytest

from controller.policies.votes import OTHERS_WEIGHT, Votes

ACCESSES = 64


def after(gains: list[list[float]], capacity_blocks: int = 1000, silent: int = 0) -> Votes:
    votes = Votes(experts=2, capacity_blocks=capacity_blocks, silent=silent)
    for first, second in gains:
        votes.tick([0.0, first, second, 0.0], ACCESSES)
    return votes


def test_before_anything_is_saved_the_first_decides() -> None:
    votes = Votes(experts=4, capacity_blocks=10)
    assert votes.of_set[0b0001] > votes.of_set[0b1110]


def test_who_saves_more_decides_and_who_saves_as_much_does_not() -> None:
    assert after([[0.0, 1.0]] * 30).of_set[2] > 100 * after([[0.0, 1.0]] * 30).of_set[1]
    alike = after([[1.0, 1.0]] * 30)
    assert alike.weights == [1.0, OTHERS_WEIGHT]


def test_what_was_saved_long_ago_does_not_count() -> None:
    capacity = 20  # whose memory is 600 accesses, some 9 ticks
    votes = after([[1.0, 0.0]] * 200 + [[0.0, 1.0]] * 30, capacity)
    assert votes.of_set[2] > votes.of_set[1]
    assert votes.saved_s == [200.0, 30.0]


def test_what_both_saved_counts_for_both() -> None:
    votes = Votes(experts=2, capacity_blocks=10)
    assert votes.tick([0.0, 0.0, 0.0, 7.0], ACCESSES)
    assert not votes.tick([0.0] * 4, ACCESSES)
    assert votes.saved_s == [7.0, 7.0]
    assert votes.weights == [1.0, OTHERS_WEIGHT]


def test_who_has_no_vote_is_counted() -> None:
    votes = after([[5.0, 1.0]] * 10, silent=0b01)
    assert votes.saved_s[0] == 50.0
    assert votes.of_set[1] == 0.0 < votes.of_set[2]


@pytest.mark.parametrize("period", [50, 200])
def test_what_mixing_loses_to_the_best_is_small_beside_what_was_saved(period: int) -> None:
    """Experts that lead by turns, with noise: a bet by weights loses no tenth of what the best one saves."""
    votes, own_s = Votes(experts=2, capacity_blocks=100_000), 0.0
    for step in range(2000):
        gains = [2.0, 1.0] if step // period % 4 < 3 else [1.0, 2.0]
        own_s += sum(w * g for w, g in zip(votes.weights, gains, strict=True)) / sum(votes.weights)
        votes.tick([0.0, *gains, 0.0], ACCESSES)
    assert own_s > 0.9 * max(votes.saved_s)
