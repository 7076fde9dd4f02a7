"""Push: who subscribes, what is pushed and when, and that all of it is bounded and ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.block_id import block_id
from controller.config import PushOptions
from controller.operations import PushFragment, SetGroup
from controller.pool.push import FIRST_GROUP, GROUPS, Push, group_of
from controller.pool.slots import Slots
from hostlib.protocol import wire
from workload.keys import NO_PARENT

OPTIONS = PushOptions(subscribers=2, hits=2, lease_s=60, interval_s=1, max_prefixes=2)
FRAGMENTS = 4


def key(number: int, tenant: int = 0) -> bytes:
    return block_id(tenant, number.to_bytes(4, "big") * 4)


ROOT, CHILD, GRANDCHILD = key(1), key(2), key(3)
POOL = {block: Slots(0, 1, FRAGMENTS) for block in (ROOT, CHILD, GRANDCHILD)}


@pytest.fixture
def push() -> Push:
    """Two subscribers of a prefix of three blocks."""
    made = Push(OPTIONS, max_fragments=100, interval_s=0.2)
    for port in (1, 2):
        made.subscribed(ROOT, 0, port, 0.0)
    made.heard_of(CHILD, 1)
    made.heard_of(GRANDCHILD, 2)
    return made


def due(push: Push, now_s: float, pool: Mapping[bytes, Slots] = POOL) -> list[PushFragment]:
    return list(push.due(now_s, pool))


def test_subscribers_become_a_group(push: Push) -> None:
    assert push.groups(0.0) == [SetGroup(group_of(1), frozenset({1, 2}), present=False)]
    assert push.groups(1.0) == []
    push.subscribed(ROOT, 0, 3, 2.0)
    assert push.groups(2.0) == [SetGroup(group_of(1), frozenset({1, 2, 3}), present=True)]


def test_a_lease_ends_and_with_the_last_the_group(push: Push) -> None:
    push.groups(0.0)
    push.subscribed(ROOT, 0, 2, 50.0)
    assert push.groups(61.0) == [SetGroup(group_of(1), frozenset({2}), present=True)]
    assert push.groups(111.0) == [SetGroup(group_of(1), frozenset(), present=True)]
    assert push.groups(112.0) == []


def test_what_is_asked_for_again_is_pushed_whole(push: Push) -> None:
    push.groups(0.0)
    push.hits(CHILD, 2)
    fragments = due(push, 1.0)
    assert [fragment.fragment for fragment in fragments] == list(range(FRAGMENTS))
    assert {(f.key, f.sequence, f.parent, f.op, f.flags) for f in fragments} == {
        (CHILD, group_of(1), 1, wire.OP_PUSH, wire.FLAG_PUSHED)
    }
    assert push.blocks == 1


def test_pushing_ends_when_nobody_asks(push: Push) -> None:
    push.groups(0.0)
    push.hits(CHILD, 5)
    assert due(push, 1.0)
    assert due(push, 100.0) == []


@pytest.mark.parametrize(
    ("hits", "subscribers", "in_pool"), [(1, 2, True), (5, 1, True), (5, 2, False)], ids=str
)
def test_not_pushed(hits: int, subscribers: int, in_pool: bool) -> None:
    push = Push(OPTIONS, 100, 0.2)
    for port in range(subscribers):
        push.subscribed(ROOT, 0, port, 0.0)
    push.groups(0.0)
    push.hits(ROOT, hits)
    assert due(push, 1.0, POOL if in_pool else {}) == []


def test_no_group_no_push(push: Push) -> None:
    push.hits(CHILD, 5)
    assert due(push, 1.0) == []
    push.groups(1.0)
    push.clear()  # the switch restarted
    assert due(push, 3.0) == []
    (change,) = push.groups(3.0)
    assert not change.present
    assert due(push, 3.0)


def test_a_group_that_the_switch_refused_is_tried_again(push: Push) -> None:
    (change,) = push.groups(0.0)
    push.refused(change, is_there=False)
    assert push.groups(1.0) == [change]
    push.refused(change, is_there=True)
    assert push.groups(2.0) == [replace(change, present=True)]


def test_a_block_that_left_the_pool_is_not_pushed(push: Push) -> None:
    push.groups(0.0)
    push.hits(CHILD, 2)
    push.removed(CHILD)
    assert due(push, 1.0) == []


def test_packets_are_paced_and_prefixes_too() -> None:
    push = Push(OPTIONS, max_fragments=3, interval_s=0.2)
    for port in (1, 2):
        push.subscribed(ROOT, 0, port, 0.0)
    push.groups(0.0)
    push.hits(ROOT, 2)
    assert len(due(push, 1.0)) == 3
    push.hits(ROOT, 2)
    assert due(push, 1.1) == []
    assert len(due(push, 1.2)) == 1  # the rest; the next push of the prefix has to wait
    assert len(due(push, 2.0)) == 3


def test_prefixes_are_bounded(push: Push) -> None:
    push.subscribed(key(10), 0, 1, 0.0)
    push.subscribed(key(11), 0, 1, 0.0)
    assert {change.group for change in push.groups(0.0)} == {group_of(1), group_of(10)}


def test_who_names_another_tenant_s_prefix_gets_nothing_of_it(push: Push) -> None:
    """An intruder subscribes with a block of its own tenant that says it is a child of the other's root."""
    push.subscribed(key(99, tenant=7), 1, 3, 0.0)
    push.groups(0.0)
    push.hits(CHILD, 2)
    assert {fragment.sequence for fragment in due(push, 1.0)} == {group_of(1)}
    assert push.groups(0.0) == []  # its own prefix has that group number, too, and so no group


def test_prefixes_of_one_group_number_do_not_share_it() -> None:
    push = Push(replace(OPTIONS, max_prefixes=8), 100, 0.2)
    push.subscribed(ROOT, 0, 1, 0.0)
    push.subscribed(key(1 + GROUPS), 0, 2, 0.0)
    assert push.groups(0.0) == [SetGroup(group_of(1), frozenset({1}), present=False)]


@given(st.integers(0, 2**32 - 1))
def test_groups_are_in_range_of_bmv2(root: int) -> None:
    assert FIRST_GROUP <= group_of(root) <= 32_767


def joined(port: int, now_s: float, push: Push, tenant: int = 0) -> None:
    push.subscribed(block_id(tenant, NO_PARENT), 0, port, now_s)


def test_who_joins_gets_what_was_asked_for_most_each_block_behind_its_parent(push: Push) -> None:
    orphan, other = key(7), key(8, tenant=5)
    push.heard_of(orphan, 6)  # of a prefix whose beginning is not in the pool
    push.heard_of(other, 0)
    pool = {**POOL, orphan: Slots(8, 1, FRAGMENTS), other: Slots(16, 1, FRAGMENTS)}
    for block, times in ((ROOT, 3), (CHILD, 1), (GRANDCHILD, 2), (orphan, 9), (other, 9)):
        push.hits(block, times)
    joined(7, 10.0, push)
    changes = push.groups(10.0)
    assert SetGroup(group_of(0), frozenset({7}), present=False) in changes
    pushed = [fragment for fragment in due(push, 12.0, pool) if fragment.sequence == group_of(0)]
    assert [fragment.key for fragment in pushed[::FRAGMENTS]] == [ROOT, CHILD, GRANDCHILD]
    assert [fragment.parent for fragment in pushed[::FRAGMENTS]] == [0, 1, 2]


def test_of_more_than_may_be_pushed_what_was_asked_for_most_comes_with_what_is_before_it() -> None:
    push = Push(replace(OPTIONS, welcome_blocks=2), max_fragments=100, interval_s=0.2)
    second = key(9)
    for block, parent, times in ((ROOT, 0, 0), (CHILD, 1, 5), (GRANDCHILD, 2, 4), (second, 0, 1)):
        push.heard_of(block, parent)
        push.hits(block, times)
    joined(7, 0.0, push)
    push.groups(0.0)
    pool = {**POOL, second: Slots(8, 1, FRAGMENTS)}
    assert [fragment.key for fragment in due(push, 2.0, pool)[::FRAGMENTS]] == [ROOT, CHILD]


def test_after_the_switch_restarted_what_was_asked_for_before_counts_no_more() -> None:
    push = Push(replace(OPTIONS, welcome_blocks=1), max_fragments=100, interval_s=0.2)
    second = key(9)
    for block in (ROOT, second):
        push.heard_of(block, 0)
    push.hits(ROOT, 9)
    push.clear()
    push.hits(second, 1)
    joined(7, 0.0, push)
    push.groups(0.0)
    pool = {**POOL, second: Slots(8, 1, FRAGMENTS)}
    assert [fragment.key for fragment in due(push, 2.0, pool)[::FRAGMENTS]] == [second]


def test_parents_in_a_circle_are_no_chain() -> None:
    push = Push(OPTIONS, max_fragments=100, interval_s=0.2)
    push.heard_of(CHILD, 3)
    push.heard_of(GRANDCHILD, 2)
    joined(7, 0.0, push)
    push.groups(0.0)
    assert due(push, 2.0) == []


def test_those_who_join_together_are_one_group_and_it_is_done_once() -> None:
    push = Push(replace(OPTIONS, welcome_blocks=1), max_fragments=100, interval_s=0.2)
    for block, parent in ((ROOT, 0), (CHILD, 1)):
        push.heard_of(block, parent)
    joined(7, 0.0, push)
    push.groups(0.0)
    assert due(push, 0.5) == []  # who joins a little later gets it, too
    joined(8, 0.5, push)
    assert push.groups(0.5) == [SetGroup(group_of(0), frozenset({7, 8}), present=True)]
    assert {fragment.key for fragment in due(push, 1.0)} == {ROOT}
    joined(7, 2.0, push)  # again, which it need not
    assert due(push, 9.0) == []
    assert push.groups(11.0) == [SetGroup(group_of(0), frozenset(), present=True)]
    joined(7, 12.0, push)
    push.groups(12.0)
    assert due(push, 14.0)


def test_a_block_whose_place_is_forgotten_is_no_longer_pushed(
    monkeypatch: pytest.MonkeyPatch, push: Push
) -> None:
    """It was asked for while there were too few subscribers, and many others were heard of since."""
    monkeypatch.setattr("controller.pool.push.MAX_PLACES", 10)
    push.groups(0.0)
    push.hits(CHILD, 2)
    for number in range(100, 120):
        push.heard_of(key(number), 0)
    assert not due(push, 1.0)
    push.subscribed(ROOT, 0, 3, 2.0)
    push.heard_of(CHILD, 1)
    push.hits(CHILD, 2)
    assert due(push, 3.0)
