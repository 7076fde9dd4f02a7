"""What becomes of evicted blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from controller.block_id import key_of
from controller.operations import (
    Answer,
)
from controller.policies import HomeLoad
from controller.pool.decisions import GATHER_S
from hostlib.protocol import wire
from tests.controller.pool_world import COST, FRAGMENTS, STORES, TENANT, World, hot_miss, key
from workload.cost import DEFAULT_LINK_BIT_S

if TYPE_CHECKING:
    from controller.operations import PacketOperation


def acknowledge(
    world: World, request: PacketOperation, held: bool = False, backlog_ms: int = 0, settle: bool = True
) -> None:
    message = wire.Message(
        wire.OP_PUT_ACK, key_of(request.key), request.fragment, request.fragments, tenant=TENANT,
        flags=wire.FLAG_RECLAIM | held * wire.FLAG_HELD, sequence=request.sequence, backlog_ms=backlog_ms,
    )  # fmt: skip
    world.pool.answered(Answer(request.destination, message), 1.0)
    if settle:
        world.pool.tick(1.0 + GATHER_S)


def reclaiming_world(eviction: str = "reclaim", **miss: Any) -> World:
    """A block has been evicted, and its home asked whether it holds it."""
    world = World(blocks=1, eviction=eviction)
    for number in (1, 2):
        world.pool.hot_miss(hot_miss(number, **miss), 1.0)
        world.pool.commit(1.0)
    world.pool.tick(1.0)
    return world


def test_answers_of_one_turn_and_its_decisions_are_one_write() -> None:
    world = reclaiming_world()
    (probe,) = world.adapter.packets
    writes = world.adapter.writes
    acknowledge(world, probe, held=True, settle=False)
    world.pool.commit(1.0)
    world.pool.tick(1.0)
    assert world.adapter.writes == writes
    world.miss(3)
    assert world.adapter.writes == writes + 1
    assert world.installed == {key(2), key(3)}  # 2 waits for its home's answer now
    assert world.pool.counts.held_elsewhere == 1


def test_a_block_that_is_wanted_again_when_its_home_has_answered_stays() -> None:
    world = reclaiming_world()
    (probe,) = world.adapter.packets
    acknowledge(world, probe, held=True, settle=False)
    world.pool.hot_miss(hot_miss(1), 1.0)
    world.pool.commit(1.0)
    assert key(1) in world.installed
    assert key(1) in world.policy
    assert world.pool.counts.held_elsewhere == 0


def the_home_wants_it(world: World) -> list[PacketOperation]:
    """The home does not hold the block: the fragments that are sent to it then."""
    (probe,) = world.adapter.packets
    acknowledge(world, probe)
    world.pool.tick(1.0)
    return world.adapter.packets[1:]


def test_an_evicted_block_stays_until_its_home_has_it() -> None:
    world = reclaiming_world()
    assert world.installed == {key(1), key(2)}
    rest = the_home_wants_it(world)
    assert [request.fragment for request in rest] == [1, 2, 3]
    for request in rest[:-1]:
        acknowledge(world, request)
    assert key(1) in world.installed
    acknowledge(world, rest[-1], held=True, backlog_ms=250)
    assert world.installed == {key(2)}
    counts = world.pool.counts
    assert (counts.reclaimed, counts.held_elsewhere, counts.evicted) == (1, 0, 1)
    assert (counts.reclaim_requests, counts.reclaim_bytes) == (FRAGMENTS, FRAGMENTS * (634 + 122))
    assert world.events[-1] == HomeLoad(int(STORES[0]), 1.0, 0.25, DEFAULT_LINK_BIT_S)


def test_an_evicted_block_that_its_home_holds_costs_one_fragment() -> None:
    world = reclaiming_world()
    (probe,) = world.adapter.packets
    acknowledge(world, probe, held=True)
    world.pool.tick(2.0)
    assert world.installed == {key(2)}
    counts = world.pool.counts
    assert (counts.reclaimed, counts.held_elsewhere, counts.evicted) == (0, 1, 1)
    assert (counts.reclaim_requests, counts.reclaim_bytes) == (1, 634 + 122)


def test_by_value_nobody_is_asked_about_a_block_that_is_cheaper_to_compute_than_to_send() -> None:
    backlog_ms = round(1000 * COST.block_prefill_s(0))  # whoever knows no chance takes reuse as certain
    world = reclaiming_world("value", backlog_ms=backlog_ms)
    assert world.installed == {key(2)}
    assert not world.adapter.packets
    assert (world.pool.counts.stubs, world.pool.counts.evicted) == (1, 1)


@pytest.mark.parametrize("miss", [{"backlog_ms": 0}, {"backlog_ms": 40, "depth": 200}])
def test_by_value_a_block_that_is_worth_it_is_sent_home(miss: dict[str, int]) -> None:
    world = reclaiming_world("value", **miss)
    for request in [*the_home_wants_it(world)]:
        acknowledge(world, request, held=request.fragment == FRAGMENTS - 1)
    assert world.installed == {key(2)}
    assert (world.pool.counts.stubs, world.pool.counts.reclaimed) == (0, 1)


def test_a_reclaim_without_answer_is_repeated_then_given_up() -> None:
    world = reclaiming_world()
    now_s = 1.0
    while key(1) in world.installed:
        now_s += 0.1
        assert now_s < 20
        world.pool.tick(now_s)
    assert world.pool.counts.reclaims_failed == 1
    assert len(world.adapter.packets) == world.thresholds.answer_tries


def test_a_block_that_is_wanted_again_while_it_is_reclaimed_stays() -> None:
    world = reclaiming_world()
    rest = the_home_wants_it(world)
    world.miss(1)  # a report that was on its way when the block came in
    for request in rest:
        acknowledge(world, request, held=True)
    assert key(1) in world.installed
    assert set(world.policy) == {key(1)}


def test_while_all_spare_blocks_are_reclaimed_a_newcomer_is_turned_away() -> None:
    world = reclaiming_world()
    world.miss(3)
    assert world.pool.counts.no_slot == 0  # block 2 is dropped: it can't be reclaimed now
    assert world.pool.counts.dropped == 1
    assert world.installed == {key(1), key(3)}
