import pytest

from controller.policies.reuse.votes import Votes

ACCESSES = 64
HIT_S = 0.01
HELD = 100
"""Blocks in the pool: refilling it takes a second."""


def tick(votes: Votes, first_s: float, second_s: float, pool_s: float) -> bool:
    """A tick in which each access would have saved HIT_S."""
    gains = [0.0, first_s, second_s, 0.0]
    return votes.tick(gains, pool_s, ACCESSES * HIT_S, ACCESSES, HELD)


def test_before_anything_is_saved_the_first_decides() -> None:
    votes = Votes(experts=4)
    assert votes.followed == 0
    assert votes.of_set[0b0001] > votes.of_set[0b1110] > votes.of_set[0b0110] > votes.of_set[0] == 0.0


def test_who_was_followed_before_decides_what_leaves_first() -> None:
    votes = Votes(experts=4)
    votes.follow(2)
    assert votes.of_set[0b0100] > votes.of_set[0b1011]
    assert votes.of_set[0b0001] > votes.of_set[0b1010]


def test_the_pool_goes_over_when_the_lead_pays_for_refilling_it() -> None:
    votes, ticks = Votes(experts=2), 0
    while votes.followed == 0:
        ticks += 1
        tick(votes, 0.0, 0.1, 0.0)
    assert 20 <= ticks <= 21
    assert votes.of_set[0b10] > votes.of_set[0b01] > 0.0
    assert votes.saved_s == [0.0, pytest.approx(0.1 * ticks)]


def test_a_lead_that_the_pool_makes_good_is_forgotten() -> None:
    """Experts that are right by turns, sooner than a refill would pay: the pool stays as it is."""
    votes = Votes(experts=2)
    for turn in range(40):
        for _ in range(19):
            first_s, second_s = (0.1, 0.0) if turn % 2 else (0.0, 0.1)
            assert not tick(votes, first_s, second_s, first_s)


def test_who_saves_as_much_is_not_followed() -> None:
    votes = Votes(experts=2)
    for _ in range(50):
        assert not tick(votes, 0.1, 0.1, 0.1)


def test_what_both_saved_counts_for_both() -> None:
    votes = Votes(experts=2)
    votes.tick([0.0, 0.0, 0.0, 7.0], 7.0, 7.0, ACCESSES, HELD)
    votes.tick([0.0] * 4, 0.0, 0.0, ACCESSES, HELD)
    assert votes.saved_s == [7.0, 7.0]


def test_who_has_no_vote_is_counted_and_not_followed() -> None:
    votes = Votes(experts=2, silent=0b01)
    for _ in range(10):
        assert not tick(votes, 5.0, 0.1, 0.0)
    assert votes.followed == 1
    assert votes.saved_s[0] == 50.0
    assert votes.of_set[1] == 0.0 < votes.of_set[2]
