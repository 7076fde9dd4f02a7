import pytest

from controller.policies.leader import Leader


def leader_after(gains: list[list[float]], price_s: float, check_ticks: int = 1) -> Leader:
    leader = Leader(experts=2, check_ticks=check_ticks)
    for first, second in gains:
        leader.gains[1] += first
        leader.gains[2] += second
        leader.tick(lambda expert: price_s)
    return leader


def test_it_changes_once_the_regret_exceeds_the_price_and_is_more_than_chance() -> None:
    # n - 2 * sqrt(n) exceeds 5 from n = 12 on.
    assert leader_after([[0.0, 1.0]] * 11, price_s=5.0).now == 0
    assert leader_after([[0.0, 1.0]] * 12, price_s=5.0).now == 1
    assert leader_after([[0.0, 12.0]], price_s=5.0).now == 0


def test_what_an_expert_lost_long_ago_does_not_count_against_it() -> None:
    leader = leader_after([[1.0, 0.0]] * 100 + [[0.0, 1.0]] * 12, price_s=5.0)
    assert leader.now == 1
    assert leader.saved_s == [100.0, 12.0]


def test_what_both_saved_counts_for_both() -> None:
    leader = Leader(experts=2, check_ticks=1)
    leader.gains[3] = 7.0
    assert not leader.tick(lambda expert: 0.0)
    assert leader.saved_s == [7.0, 7.0]


def test_equals_do_not_take_turns() -> None:
    assert leader_after([[1.0, 1.0]] * 1000, price_s=0.0).changes == 0


def test_prices_are_asked_for_seldom() -> None:
    asked = []
    leader = Leader(experts=2, check_ticks=10)
    for _ in range(100):
        leader.gains[2] += 1.0
        leader.tick(lambda expert: asked.append(expert) or 1e9)  # type: ignore[func-returns-value]
    assert len(asked) <= 10


@pytest.mark.parametrize("period", [10, 37, 200])
def test_the_loss_to_the_best_expert_is_bounded_by_the_changes(period: int) -> None:
    """Whoever is behind at the moment: what was lost is at most a price and a step for each change and each
    lead."""
    leader, price_s = Leader(experts=2, check_ticks=1), 3.0
    own_s, phases = 0.0, 1200 // period
    for step in range(1200):
        best = step // period % 2
        own_s += best == leader.now
        leader.gains[1 << best] += 1.0
        leader.tick(lambda expert: price_s)
    lost_before_change = 10  # n - 2 * sqrt(n) exceeds 3 from n = 10 on
    assert own_s >= 1200 - (phases + 1) * lost_before_change


def test_who_may_not_lead_never_does() -> None:
    leader = Leader(experts=3, check_ticks=1, first=1)
    for _ in range(100):
        leader.gains[1] += 1.0
        leader.tick(lambda expert: 0.0)
    assert leader.now == 1
    for _ in range(10):
        leader.gains[4] += 10.0
        leader.tick(lambda expert: 0.0)
    assert leader.now == 2
