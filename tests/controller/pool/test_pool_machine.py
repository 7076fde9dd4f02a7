"""A pool under any order of events."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from controller.block_id import key_of
from controller.config import EVICTION_MODES
from controller.errors import ConnectionLostError
from controller.operations import (
    Answer,
    Fill,
    Install,
    Reclaim,
    Result,
)
from hostlib.protocol import wire
from hostlib.protocol.hints import Hint
from tests.controller.pool_world import OWN_POLICIES, TENANT, World, hint

if TYPE_CHECKING:
    pass


def slots_of(entry: Install) -> range:
    return range(entry.base_slot, entry.base_slot + entry.fragments)


class PoolMachine(RuleBasedStateMachine):
    """Any order of events, refusals, lost connections: no slot has two owners, and all agree in the end."""

    @initialize(
        blocks=st.integers(1, 4),
        policy=st.sampled_from(OWN_POLICIES),
        eviction=st.sampled_from(EVICTION_MODES),
        fill=st.sampled_from(["now", "on_the_way"]),
        missing_entries=st.integers(0, 2),
        backwards=st.booleans(),
        mixed=st.booleans(),
    )
    def start(
        self,
        blocks: int,
        policy: str,
        eviction: str,
        fill: str,
        missing_entries: int,
        backwards: bool,
        mixed: bool,
    ) -> None:
        self.world = World(blocks, policy, mixed=mixed, eviction=eviction, fill=fill)
        self.world.adapter.backwards = backwards
        entries = self.world.policy.capacity_blocks + self.world.spare_blocks
        self.world.adapter.table_size = max(1, entries - missing_entries)
        self.now_s = 1.0
        self.answered = 0
        self.saved = 0
        self.owners: dict[tuple[int, int], bytes] = {}

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

    @rule(
        number=st.integers(0, 8),
        kind=st.sampled_from([Hint.RETAIN, Hint.RETAIN, Hint.DEMOTE, Hint.PREFETCH]),
        seconds=st.integers(0, 3),
    )
    def hint(self, number: int, kind: Hint, seconds: int) -> None:
        with contextlib.suppress(ConnectionLostError):
            self.world.pool.answered(hint(number, kind, seconds), self.now_s)
            self.world.pool.commit(self.now_s)

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
        owned = [slot for entry in self.world.adapter.entries.values() for slot in slots_of(entry)]
        assert len(owned) == len(set(owned))
        assert all(0 <= slot < self.world.slots for slot in owned)
        policy = self.world.policy
        assert len(policy) <= policy.capacity_blocks
        assert policy.capacity.held_slots <= (policy.capacity_slots or 0)

    @invariant()
    def no_generation_of_a_slot_is_given_to_a_second_block(self) -> None:
        for operation in self.world.adapter.operations:
            if isinstance(operation, Install):
                for slot in slots_of(operation):
                    place = slot, operation.generation
                    assert self.owners.setdefault(place, operation.key) == operation.key
        self.world.adapter.operations.clear()

    @invariant()
    def what_the_policy_holds_is_not_being_reclaimed(self) -> None:
        assert not any(held in self.world.pool.reclaims for held in self.world.policy)

    @invariant()
    def slots_are_free_or_have_an_entry_and_none_is_lost(self) -> None:
        pool = self.world.pool
        if not self.world.adapter.lost and not pool.needs_read_back:
            assert pool.slots.free_slots + pool.used_slots == self.world.slots
            assert pool.slots.used_slots == pool.used_slots

    @invariant()
    def no_block_counts_as_saved_before_its_home_said_so(self) -> None:
        counts = self.world.pool.counts
        assert counts.reclaimed + counts.held_elsewhere <= self.saved
        assert all(leaving in self.world.pool.resident for leaving in self.world.pool.reclaims)

    @invariant()
    def what_is_retained_is_pinned_and_resident(self) -> None:
        pool = self.world.pool
        retained = set(pool._hints._retained)
        assert self.world.policy.pinned == retained
        assert retained <= pool.resident.keys() or self.world.adapter.lost

    @invariant()
    def the_record_is_the_switch_s(self) -> None:
        if not self.world.adapter.lost and not self.world.pool.needs_read_back:
            assert {
                entry: (slots.base_slot, slots.generation)
                for entry, slots in self.world.pool.resident.items()
            } == {
                entry.key: (entry.base_slot, entry.generation)
                for entry in self.world.adapter.entries.values()
            }


TestPool = PoolMachine.TestCase
TestPool.settings = settings(stateful_step_count=30)
