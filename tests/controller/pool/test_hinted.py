"""What a pool does with hints, and what it tells who sent them."""

from __future__ import annotations

import pytest

from controller.block_id import block_id
from controller.operations import Answer
from controller.policies import Pin, Unpin
from controller.pool.fair_pace import WINDOW_S
from controller.pool.hinted import RetainedBlocks
from hostlib.protocol import wire
from hostlib.protocol.hints import Hint
from tests.controller.pool_world import NODE, OWN_POLICIES, TENANT, World, hint, key


def give(world: World, answer: Answer, now_s: float = 1.0) -> bool | None:
    """Whether the pool does what is hinted at, as it says; None if it says nothing."""
    before = len(world.adapter.hint_answers)
    world.pool.answered(answer, now_s)
    world.pool.commit(now_s)
    world.pool.tick(now_s)
    answers = world.adapter.hint_answers[before:]
    for one in answers:
        said = one.message()
        assert (said.op, said.flags) == (wire.OP_FOUND, wire.FLAG_BYPASS | wire.FLAG_HINT)
        assert (one.destination, said.sequence) == (answer.source, answer.message.sequence)
        assert (said.tenant, said.key) == (answer.message.tenant, answer.message.key)
    return answers[0].is_done if answers else None


@pytest.mark.parametrize("policy", OWN_POLICIES)
def test_what_is_retained_stays_until_its_time_is_over(policy: str) -> None:
    world = World(blocks=4, policy=policy)
    world.miss(0, 1, 2, 3)
    assert give(world, hint(0, Hint.RETAIN, 10)) is True
    for number in range(10, 30):
        world.miss(number, number, number)
    assert key(0) in world.installed
    world.pool.tick(11.5)
    assert key(0) not in world.policy.pinned
    assert world.pool.due_s == float("inf")


def test_retaining_ends_when_it_is_said_and_only_then_counts_as_done() -> None:
    world = World(blocks=4)
    world.miss(0)
    assert give(world, hint(0, Hint.RETAIN, 0)) is False
    assert give(world, hint(0, Hint.RETAIN, 10)) is True
    assert give(world, hint(0, Hint.RETAIN, 0)) is True
    assert world.policy.pinned == set()


def test_a_block_that_the_pool_does_not_have_is_not_retained() -> None:
    world = World(blocks=4)
    world.miss(0)
    assert give(world, hint(7, Hint.RETAIN, 10)) is False
    assert give(world, hint(0, Hint.RETAIN, 10, tenant=TENANT + 1)) is False
    assert world.policy.pinned == set()
    assert (world.pool.counts.hints, world.pool.counts.hints_done) == (2, 0)


def test_one_tenant_retains_a_quarter_of_the_slots_at_most() -> None:
    world = World(blocks=8)
    world.miss(*range(8))
    done = [give(world, hint(number, Hint.RETAIN, 10)) for number in range(8)]
    assert done == [True, True] + [False] * 6
    assert give(world, hint(0, Hint.DEMOTE)) is True
    assert give(world, hint(5, Hint.RETAIN, 10)) is True
    assert world.policy.pinned == {key(1), key(5)}


@pytest.mark.parametrize("policy", OWN_POLICIES)
def test_what_is_demoted_leaves_at_once_and_may_come_again(policy: str) -> None:
    world = World(blocks=4, policy=policy)
    world.miss(0, 1)
    assert give(world, hint(0, Hint.RETAIN, 10)) is True
    assert give(world, hint(0, Hint.DEMOTE)) is True
    assert world.installed == {key(1)}
    assert world.policy.pinned == set()
    assert give(world, hint(0, Hint.DEMOTE)) is False
    world.miss(0)
    assert key(0) in world.installed


def test_what_leaves_otherwise_is_not_retained_any_more() -> None:
    world = World(blocks=4)
    world.miss(0, 1)
    assert give(world, hint(0, Hint.RETAIN, 60)) is True
    world.adapter.entries.clear()
    world.pool.read_back(2.0)
    assert world.policy.pinned == set()
    assert [type(one) for one in world.events if isinstance(one, Pin | Unpin)] == [Pin, Unpin]


def test_what_is_resident_stays_retained_when_entries_are_read_back() -> None:
    world = World(blocks=4)
    world.miss(0)
    assert give(world, hint(0, Hint.RETAIN, 60)) is True
    world.pool.read_back(2.0)
    assert world.policy.pinned == {key(0)}


def test_a_node_that_does_not_stop_is_answered_no_more_than_its_share() -> None:
    world = World(blocks=4, max_digests_per_s=2)
    most = round(2 * WINDOW_S)
    heard = [give(world, hint(0, Hint.DEMOTE)) is not None for _ in range(20)]
    assert heard == [True] * (most // 2) + [False] * (20 - most // 2)
    assert give(world, hint(0, Hint.DEMOTE, node=NODE + 1)) is not None


@pytest.mark.parametrize("kind", [Hint.PREFETCH, Hint.EXPIRE, 0, 99, 0xFFFF])
def test_other_hints_are_not_for_pools(kind: int) -> None:
    world = World(blocks=4)
    world.miss(0)
    said = hint(0, Hint.DEMOTE)
    said = Answer(said.source, said.message._replace(backlog_ms=kind, recompute_ms=0xFFFF))
    assert give(world, said) is False
    assert world.installed == {key(0)}


def test_a_question_that_is_no_hint_is_not_answered() -> None:
    world = World(blocks=4)
    said = hint(0, Hint.RETAIN, 9)
    assert give(world, Answer(said.source, said.message._replace(flags=wire.FLAG_BYPASS))) is None


def test_the_table_of_ends_does_not_grow_with_repetitions() -> None:
    retained = RetainedBlocks(8)
    blocks = [block_id(1, bytes([number]) * 16) for number in range(2)]
    for again in range(10_000):
        assert retained.retain(blocks[again % 2], 1, 10.0 + again)
    assert len(retained._ends) < 200
    assert retained.expired(10_008.0) == [blocks[0]]
    assert retained.expired(10_009.0) == [blocks[1]]
