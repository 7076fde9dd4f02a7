"""The pool of one switch, with a recording adapter in the switch's place."""

from __future__ import annotations

import contextlib
from hashlib import blake2b
from ipaddress import IPv4Address
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from controller.block_id import block_id, key_of
from controller.config import EVICTION_MODES, PoolSize, PushOptions, Thresholds
from controller.errors import ConnectionLostError
from controller.operations import (
    Answer,
    Fill,
    HotMiss,
    Install,
    PushFragment,
    Reclaim,
    Remove,
    Result,
    SetThreshold,
    Subscription,
)
from controller.policies import Decision, Event, Hits, HomeLoad, Lost, Miss, make_policy
from controller.policies.eventlog import read_events, to_line
from controller.pool import Pool
from controller.residual_value import ResidualValue
from hostlib import wire
from hostlib.wire import fingerprint
from tests.controller.recording import RecordingAdapter
from workload.cost import DEFAULT_LINK_BIT_S, CostModel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.operations import PacketOperation

FRAGMENTS = 4
TENANT = 3
COST = CostModel()
OWN_POLICIES = ("fifo", "lru", "lfu", "reuse")
STORES = (IPv4Address("10.0.0.9"), IPv4Address("10.0.0.10"))


def key(number: int) -> bytes:
    """The ID of a block of TENANT."""
    return block_id(TENANT, blake2b(b"%d" % number, digest_size=16).digest())


def hot_miss(number: int, count: int = 2, **fields: object) -> HotMiss:
    values: dict[str, object] = {
        "tenant": TENANT, "key": key_of(key(number)), "parent": 0, "depth": 0, "chain_blocks": 1,
        "fragments": FRAGMENTS, "backlog_ms": 0, "recompute_ms": 0, "count": count, "waiters": 0b10,
        "home": STORES[0],
    }  # fmt: skip
    return HotMiss(**{**values, **fields})  # type: ignore[arg-type]


class World:
    """A pool with its adapter, policy and the events that the policy saw."""

    def __init__(
        self, blocks: int = 3, policy: str = "lru", table_size: int = 1 << 20, **thresholds: object
    ) -> None:
        self.thresholds = Thresholds(**{"eviction": "drop", **thresholds})  # type: ignore[arg-type]
        self.adapter = RecordingAdapter(table_size)
        self.events: list[Event] = []
        self.policy = make_policy(policy, blocks)
        self.spare_blocks = 0 if self.thresholds.eviction == "drop" else 1
        size = PoolSize(blocks + self.spare_blocks, 1 << 20, FRAGMENTS)
        assert self.thresholds.spare_blocks(size.whole_blocks) == self.spare_blocks
        residual = ResidualValue(COST, DEFAULT_LINK_BIT_S)
        self.pool = Pool(
            size, self.thresholds, STORES, self.policy, self.adapter, residual, self.events.append
        )

    def miss(self, *numbers: int) -> None:
        for number in numbers:
            self.pool.hot_miss(hot_miss(number), 1.0)
        self.pool.commit(1.0)

    def served(self, number: int, fragments: int) -> None:
        """The switch served so much of a block, if it has it."""
        if entry := self.adapter.entries.get(key(number)):
            self.adapter.hits[entry.base_slot] = self.adapter.hits.get(entry.base_slot, 0) + fragments

    @property
    def installed(self) -> set[bytes]:
        return set(self.adapter.entries)


def test_a_hot_miss_installs_the_block() -> None:
    world = World()
    world.miss(1)
    assert world.adapter.operations == [Install(key(1), 0, 1, FRAGMENTS)]
    assert world.pool.counts.admitted == 1


def test_a_full_pool_evicts_before_it_installs_into_the_same_slots_with_a_new_generation() -> None:
    world = World(blocks=1)
    world.miss(1)
    world.miss(2)
    assert world.adapter.operations[1:] == [Remove(key(1)), Install(key(2), 0, 2, FRAGMENTS)]
    assert (world.pool.counts.admitted, world.pool.counts.evicted) == (2, 1)


def test_one_commit_is_one_write_of_removals_and_one_of_installs() -> None:
    world = World(blocks=3)
    world.miss(1, 2, 3)
    assert world.adapter.writes == 1
    world.miss(4, 5, 6)
    assert world.adapter.writes == 3


def test_decisions_that_undo_each_other_write_nothing() -> None:
    world = World(blocks=1)
    world.miss(1)
    before = list(world.adapter.operations)
    world.miss(2, 1)  # evict 1, admit 2, evict 2, admit 1
    assert world.adapter.operations == before
    assert set(world.policy) == world.installed == {key(1)}


def test_the_policy_learns_count_parent_and_home() -> None:
    world = World(policy="lfu")
    world.pool.hot_miss(hot_miss(1, home=STORES[1]), 1.0)
    child = hot_miss(
        2,
        count=4,
        parent=fingerprint(key_of(key(1))),
        depth=1,
        chain_blocks=7,
        waiters=0b1011,
        recompute_ms=250,
    )
    world.pool.hot_miss(child, 2.0)
    assert [event for event in world.events if isinstance(event, Miss)] == [
        Miss(key(1), 1.0, 0, 1, None, 2, int(STORES[1]), 0.0, TENANT),
        Miss(key(2), 2.0, 1, 7, key(1), 4 - 1 + 3, int(STORES[0]), 0.25, TENANT),
    ]


def test_the_policy_learns_the_homes_backlog() -> None:
    world = World()
    world.pool.hot_miss(hot_miss(1, backlog_ms=250), 1.0)
    assert world.events[0] == HomeLoad(int(STORES[0]), 1.0, 0.25)


def test_a_home_that_is_no_storage_node_is_not_believed() -> None:
    world = World()
    world.pool.hot_miss(hot_miss(1, home=IPv4Address("10.0.0.1")), 1.0)
    (event,) = [event for event in world.events if isinstance(event, Miss)]
    assert event.home in {int(store) for store in STORES}


@pytest.mark.parametrize("fragments", [0, FRAGMENTS + 1])
def test_a_block_of_a_length_that_does_not_fit_is_left_out(fragments: int) -> None:
    world = World()
    world.pool.hot_miss(hot_miss(1, fragments=fragments), 1.0)
    world.pool.commit(1.0)
    assert not world.adapter.operations
    assert world.pool.counts.misfits == 1


def test_a_report_that_the_install_overtook_changes_nothing() -> None:
    world = World()
    world.miss(1)
    world.miss(1)
    assert len(world.adapter.operations) == 1


def test_hits_are_counted_in_blocks() -> None:
    world = World()
    world.miss(1)
    world.served(1, 2 * FRAGMENTS + 1)
    world.pool.read_hits(3.0)
    assert [event for event in world.events if isinstance(event, Hits)] == [Hits(key(1), 3.0, 2)]
    assert world.pool.counts.hits == 2


def test_a_full_table_is_reported_to_the_policy_and_read_back() -> None:
    world = World(blocks=3, table_size=2)
    world.miss(1, 2, 3)
    assert world.pool.counts.refused == 1
    assert world.pool.needs_read_back
    assert Lost(key(3), 1.0) in world.events
    assert set(world.policy) == world.installed == {key(1), key(2)}
    assert world.pool.slots.free_blocks == 1


def test_an_entry_that_was_there_already_is_replaced() -> None:
    world = World()
    world.adapter.entries[key(1)] = Install(key(1), 8, 77, FRAGMENTS)
    world.miss(1)
    assert world.adapter.entries[key(1)].generation == 1
    assert world.pool.counts.admitted == 1


def test_an_entry_that_had_gone_already_counts_as_evicted() -> None:
    world = World(blocks=1)
    world.miss(1)
    world.adapter.entries.clear()
    world.miss(2)
    assert world.installed == {key(2)}
    assert world.pool.counts.evicted == 1


def test_a_removal_that_failed_leaves_the_block_and_its_slots() -> None:
    world = World(blocks=1)
    world.miss(1)
    world.adapter.refusals.append(Result.FAILED)
    world.miss(2)
    assert world.pool.needs_read_back
    owners = [entry.base_slot for entry in world.adapter.entries.values()]
    assert len(owners) == len(set(owners))


def test_fills_are_sent_to_the_home_and_bounded() -> None:
    world = World(blocks=3, fill="now", control_fragments_in_flight=6, answer_timeout_s=0.2)
    world.miss(1, 2, 3)
    world.pool.tick(1.0)
    assert [type(packet) for packet in world.adapter.packets] == [Fill] * 6
    assert {packet.destination for packet in world.adapter.packets} == {STORES[0]}
    world.pool.tick(1.1)
    assert len(world.adapter.packets) == 6
    world.pool.tick(1.3)
    assert len(world.adapter.packets) == 12
    fragments = [(packet.key, packet.fragment) for packet in world.adapter.packets]
    assert fragments == [(key(n), f) for n in (1, 2, 3) for f in range(FRAGMENTS)]


def test_a_block_that_its_home_does_not_hold_is_given_up() -> None:
    world = World(fill="now")
    world.miss(1)
    message = wire.Message(
        wire.OP_NOT_FOUND, key_of(key(1)), 0, FRAGMENTS, flags=wire.FLAG_FILL, tenant=TENANT
    )
    world.pool.answered(Answer(STORES[0], message), 2.0)
    assert not world.installed
    assert Lost(key(1), 2.0) in world.events
    assert world.pool.counts.not_found == 1


def acknowledge(world: World, request: PacketOperation, held: bool = False, backlog_ms: int = 0) -> None:
    message = wire.Message(
        wire.OP_PUT_ACK, key_of(request.key), request.fragment, request.fragments, tenant=TENANT,
        flags=wire.FLAG_RECLAIM | held * wire.FLAG_HELD, sequence=request.sequence, backlog_ms=backlog_ms,
    )  # fmt: skip
    world.pool.answered(Answer(request.destination, message), 1.0)


def reclaiming_world(eviction: str = "reclaim", **miss: object) -> World:
    """A block has been evicted, and its home asked whether it holds it."""
    world = World(blocks=1, eviction=eviction)
    for number in (1, 2):
        world.pool.hot_miss(hot_miss(number, **miss), 1.0)
        world.pool.commit(1.0)
    world.pool.tick(1.0)
    return world


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
    assert world.events[-1] == HomeLoad(int(STORES[0]), 1.0, 0.25)


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


def test_push_works_without_a_storage_node_in_reach() -> None:
    policy, adapter = make_policy("lru", 3), RecordingAdapter()
    residual = ResidualValue(COST, DEFAULT_LINK_BIT_S)
    size = PoolSize(3, 1 << 20, FRAGMENTS)
    pool = Pool(size, Thresholds(eviction="drop"), (), policy, adapter, residual, push=PushOptions())
    for port in (1, 2):
        pool.subscribed(Subscription(TENANT, key_of(key(1)), 0, port), 1.0)
    pool.hot_miss(hot_miss(1), 1.0)
    pool.commit(1.0)
    adapter.hits[adapter.entries[key(1)].base_slot] = 2 * FRAGMENTS
    pool.read_hits(1.0)
    pool.tick(1.0)
    assert [type(packet) for packet in adapter.packets] == [PushFragment] * FRAGMENTS


def test_after_a_lost_connection_the_switch_is_the_truth() -> None:
    world = World(blocks=4)
    world.miss(1, 2, 3)
    del world.adapter.entries[key(1)]  # evicted behind our back
    world.adapter.entries[key(8)] = Install(key(8), 3 * FRAGMENTS, 5, FRAGMENTS)  # fits: adopted
    world.adapter.entries[key(9)] = Install(key(9), 1, 5, FRAGMENTS)  # lies across blocks: removed
    world.adapter.lost = True
    with pytest.raises(ConnectionLostError):
        world.miss(4)
    world.adapter.lost = False
    world.pool.read_back(2.0)
    assert world.installed == {key(2), key(3), key(8)} == set(world.policy)
    world.miss(5)
    assert world.adapter.entries[key(5)].base_slot == 0


def test_a_new_controller_goes_on_with_what_the_switch_holds() -> None:
    old = World(blocks=3)
    old.miss(1, 2, 3)
    new = World(blocks=3)
    new.adapter.entries = dict(old.adapter.entries)
    new.pool.read_back(1.0, reached=1000)
    assert set(new.policy) == new.installed == {key(1), key(2), key(3)}
    new.served(1, 50 * FRAGMENTS)
    new.pool.read_hits(2.0)  # the first reading only sets the base
    assert not any(isinstance(event, Hits) for event in new.events)
    new.miss(4)
    assert new.adapter.entries[key(4)].generation > 1


def test_a_controller_that_takes_over_again_gives_no_generation_that_another_gave_meanwhile() -> None:
    world = World(blocks=1)
    world.miss(1)
    world.adapter.entries.clear()  # another controller had the slots, up to generation 70, and ended
    world.pool.read_back(2.0, reached=70)
    world.miss(2)
    assert world.adapter.entries[key(2)].generation > 70


def test_too_many_reports_raise_the_threshold() -> None:
    world = World(max_digests_per_s=10)
    world.pool.tick(1.0)
    world.pool.dropped(100)
    world.pool.tick(2.5)
    world.pool.tick(4.0)
    thresholds = [op.count for op in world.adapter.operations if isinstance(op, SetThreshold)]
    assert thresholds == [4, 2]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3)), max_size=80), st.sampled_from(OWN_POLICIES))
@settings(deadline=None, max_examples=40)
def test_a_policy_that_replays_the_log_decides_the_same(steps: list[tuple[int, int]], name: str) -> None:
    world = World(blocks=20, policy=name)
    decided: list[Decision] = []
    handle = world.policy.handle
    world.policy.handle = lambda event: _record(decided, handle(event))  # type: ignore[method-assign]
    for number, hits in steps:
        world.miss(number)
        world.served(number, hits * FRAGMENTS)
        world.pool.read_hits(1.0)
    again = make_policy(name, 20)
    log = read_events(map(to_line, world.events))
    assert [decision for event in log for decision in again.handle(event)] == decided


def _record(decided: list[Decision], decisions: Sequence[Decision]) -> Sequence[Decision]:
    decided += decisions
    return decisions


class PoolMachine(RuleBasedStateMachine):
    """Any order of events, refusals, lost connections: no slot has two owners, and all agree in the end."""

    @initialize(
        blocks=st.integers(1, 4),
        policy=st.sampled_from(OWN_POLICIES),
        eviction=st.sampled_from(EVICTION_MODES),
        fill=st.sampled_from(["now", "on_the_way"]),
        missing_entries=st.integers(0, 2),
    )
    def start(self, blocks: int, policy: str, eviction: str, fill: str, missing_entries: int) -> None:
        self.world = World(blocks, policy, eviction=eviction, fill=fill)
        self.world.adapter.table_size = max(1, blocks + self.world.spare_blocks - missing_entries)
        self.now_s = 1.0
        self.answered = 0
        self.saved = 0

    @rule(
        numbers=st.lists(st.integers(0, 8), max_size=5),
        refusals=st.lists(st.sampled_from(Result), max_size=2),
    )
    def misses(self, numbers: list[int], refusals: list[Result]) -> None:
        self.world.adapter.refusals.extend(result for result in refusals if result is Result.FAILED)
        with contextlib.suppress(ConnectionLostError):
            self.world.miss(*numbers)
        self.world.adapter.refusals.clear()

    @rule(seconds=st.floats(0.01, 3))
    def tick(self, seconds: float) -> None:
        self.now_s += seconds
        with contextlib.suppress(ConnectionLostError):
            self.world.pool.tick(self.now_s)

    @rule(
        op=st.sampled_from([wire.OP_PUT_ACK, wire.OP_PUT_ACK, wire.OP_NOT_FOUND]),
        held=st.booleans(),
        backlog_ms=st.integers(0, 100),
    )
    def answer(self, op: int, held: bool, backlog_ms: int) -> None:
        packets = self.world.adapter.packets
        if self.answered < len(packets):
            request = packets[self.answered]
            self.answered += 1
            flags = wire.FLAG_FILL if isinstance(request, Fill) else wire.FLAG_RECLAIM
            if op == wire.OP_PUT_ACK and isinstance(request, Reclaim) and held:
                flags |= wire.FLAG_HELD
                self.saved += 1
            message = wire.Message(
                op, key_of(request.key), request.fragment, request.fragments, flags=flags,
                sequence=request.sequence, backlog_ms=backlog_ms, tenant=TENANT,
            )  # fmt: skip
            with contextlib.suppress(ConnectionLostError):
                self.world.pool.answered(Answer(request.destination, message), self.now_s)

    @precondition(lambda self: not self.world.adapter.lost)
    @rule()
    def lose_connection(self) -> None:
        self.world.adapter.lost = True

    @rule(restarted=st.booleans())
    def read_back(self, restarted: bool) -> None:
        world = self.world
        world.adapter.lost = False
        if restarted:
            world.adapter.entries.clear()
        world.pool.read_back(self.now_s)
        reclaiming = {entry for entry in world.installed if entry in world.pool.reclaims}
        assert set(world.policy) == world.installed - reclaiming
        assert set(world.pool.resident) == world.installed

    @invariant()
    def no_slot_has_two_owners(self) -> None:
        owners = [entry.base_slot for entry in self.world.adapter.entries.values()]
        assert len(owners) == len(set(owners))
        assert len(self.world.policy) <= self.world.policy.capacity_blocks

    @invariant()
    def what_the_policy_holds_is_not_being_reclaimed(self) -> None:
        assert not any(held in self.world.pool.reclaims for held in self.world.policy)

    @invariant()
    def slots_are_free_or_have_an_entry_and_none_is_lost(self) -> None:
        pool = self.world.pool
        if not self.world.adapter.lost and not pool.needs_read_back:
            assert pool.slots.free_blocks + len(pool.resident) == self.world.policy.capacity_blocks + (
                self.world.spare_blocks
            )

    @invariant()
    def no_block_counts_as_saved_before_its_home_said_so(self) -> None:
        counts = self.world.pool.counts
        assert counts.reclaimed + counts.held_elsewhere <= self.saved
        assert all(leaving in self.world.pool.resident for leaving in self.world.pool.reclaims)

    @invariant()
    def the_record_is_the_switch_s(self) -> None:
        if not self.world.adapter.lost and not self.world.pool.needs_read_back:
            assert {
                entry: (block.slots.base_slot, block.slots.generation)
                for entry, block in self.world.pool.resident.items()
            } == {
                entry.key: (entry.base_slot, entry.generation)
                for entry in self.world.adapter.entries.values()
            }


TestPool = PoolMachine.TestCase
TestPool.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
