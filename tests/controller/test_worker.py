"""The thread that looks after a switch, with a session that a test takes away and gives back."""

from __future__ import annotations

import queue
import threading
from contextlib import contextmanager
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Any

from controller.block_id import key_of
from controller.config import PushOptions
from controller.costs import Costs
from controller.errors import NotPrimaryError
from controller.membership import REPEAT_S, Membership
from controller.operations import Answer, DeletionDone, ForgetWrite
from controller.p4_constants import OUTCOME_NAMES
from controller.pool.decisions import GATHER_S
from controller.pool.hit_meter import MIN_PERIOD_S, READS_PER_S
from controller.pool.push import Push
from controller.worker import LEAST_WAIT_S, OUTCOMES_PERIOD_S, TICK_S, WATCH_S, Clocks, SwitchWorker
from hostlib.protocol import wire
from hostlib.protocol.members import HEARTBEAT_S
from tests.controller.live import wait_until
from tests.controller.pool_world import STORES, TENANT, World, expect, hot_miss, key
from tests.controller.recording import RecordingAdapter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controller.operations import HotMiss, PacketOperation


class Adapter(RecordingAdapter):
    """What a worker needs besides what a pool does."""

    def reports(self, message: HotMiss | Answer) -> list[HotMiss | Answer]:
        return [message]

    def __init__(self) -> None:
        super().__init__()
        self.outcomes = [0] * len(OUTCOME_NAMES)

    def read_outcomes(self) -> None:
        self.outcomes = [count + 1 for count in self.outcomes]


class Session:
    """One controller's access to the switch: open while `primary` is set."""

    def __init__(self, adapter: Adapter, clock: dict[str, int]) -> None:
        self.adapter, self.costs, self.primary = adapter, Costs(), threading.Event()
        self.messages: queue.Queue[Any] = queue.Queue()
        self._clock = clock

    def open(self, now_s: float) -> int:
        self._check()
        return self._clock["ms"]

    def close(self) -> None:
        pass

    def wake(self) -> None:
        pass

    def receive(self, timeout_s: float) -> list[Any]:
        self._check()
        try:
            return [self.messages.get(timeout=timeout_s)]
        except queue.Empty:
            return []

    def _check(self) -> None:
        if not self.primary.is_set():
            raise NotPrimaryError("another controller is primary")


@contextmanager
def worker_of(world: World, clock: dict[str, int]) -> Iterator[tuple[SwitchWorker, Session]]:
    session = Session(world.adapter, clock)  # type: ignore[arg-type]
    membership = Membership(STORES, 1, 1)
    worker = SwitchWorker("s1", session, world.pool, membership, ())  # type: ignore[arg-type]
    worker.start()
    try:
        yield worker, session
    finally:
        worker.stop()
        worker.join(10)
    assert worker.failure is None


def test_no_generation_comes_back_when_a_controller_becomes_primary_again() -> None:
    """A holds a block, B takes over and gives its slots to others, A takes over again."""
    clock = {"ms": 1000}
    worlds = World(blocks=1), World(blocks=1)
    switch = Adapter()
    for world in worlds:
        world.pool._adapter = world.adapter = switch
    with worker_of(worlds[0], clock) as (a, session_a), worker_of(worlds[1], clock) as (b, session_b):
        number = 0

        def admit(session: Session) -> int:
            """Have a primary admit a block; its generation."""
            nonlocal number
            number += 1
            session.messages.put(hot_miss(number))
            wait_until(lambda: key(number) in switch.entries, "the block to be admitted")
            return switch.entries[key(number)].generation

        session_a.primary.set()
        wait_until(lambda: a.connected, "A to be primary")
        given = [admit(session_a)]
        session_a.primary.clear()
        wait_until(lambda: not a.connected, "A to notice")
        session_b.primary.set()
        wait_until(lambda: b.connected, "B to be primary")
        given += [admit(session_b) for _ in range(3)]
        session_b.primary.clear()
        wait_until(lambda: not b.connected, "B to notice")
        switch.entries.clear()  # what B removed last
        clock["ms"] += 5000
        session_a.primary.set()
        wait_until(lambda: a.connected, "A to be primary again")
        given.append(admit(session_a))
    assert len(set(given)) == len(given)


class Clock:
    """Moves when it is told to."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def worker_at(
    hosts: tuple[IPv4Address, ...],
    membership: Membership,
    clock: Clock,
    switches: int = 1,
    blocks: int = 4,
    **thresholds: object,
) -> tuple[SwitchWorker, World, Session]:
    """One that a test steps itself, by its clock."""
    world = World(blocks, **thresholds)  # type: ignore[arg-type]
    world.pool._adapter = world.adapter = Adapter()
    session = Session(world.adapter, {"ms": 0})
    session.primary.set()
    clocks = Clocks(wall_s=clock, monotonic_s=clock, cpu_s=lambda: 0.0)
    worker = SwitchWorker("s1", session, world.pool, membership, hosts, clocks, switches)  # type: ignore[arg-type]
    return worker, world, session


def beat(membership: Membership, store: IPv4Address) -> Answer:
    message = wire.Message(wire.OP_HELLO, bytes(16), 0, 0, wire.FLAG_HELD, membership.members.epoch)
    return Answer(store, message)


NODE = IPv4Address("10.0.0.1")


def test_only_who_sees_storage_nodes_wakes_as_often_as_they_beat() -> None:
    """A fat tree has twenty switches, and storage nodes at a few of them."""
    clock, membership = Clock(), Membership(STORES, 1, 1)
    edge, _, session = worker_at((STORES[0], NODE), membership, clock, switches=20)
    core, _, _ = worker_at((NODE,), membership, clock, switches=20)
    for worker in (edge, core):
        worker.step(0)
        assert worker.patience_s == 20 / READS_PER_S
    session.messages.put(beat(membership, STORES[0]))
    edge.step(0)
    core.step(0)
    assert edge.patience_s == WATCH_S
    assert core.patience_s == REPEAT_S
    edge.step(0)  # in vain
    assert edge.patience_s == HEARTBEAT_S


def test_a_worker_sleeps_until_something_is_due_and_then_does_it() -> None:
    clock, membership = Clock(), Membership(STORES, 1, 1)
    worker, world, session = worker_at((NODE,), membership, clock)
    worker.step(0)
    assert worker.patience_s == OUTCOMES_PERIOD_S
    session.messages.put(hot_miss(1))
    worker.step(0)
    assert worker.patience_s == MIN_PERIOD_S
    world.adapter.hits[world.adapter.entries[key(1)].base_slot] = 8
    clock.now_s += worker.patience_s
    worker.step(0)
    assert world.pool.counts.hits
    assert isinstance(world.adapter, Adapter)
    assert world.adapter.outcomes[0] == 1  # those come along with the hits
    world.pool.fills.start(key(2), 1, STORES[0])
    assert worker.patience_s == LEAST_WAIT_S


def test_a_worker_does_not_look_whether_what_it_waits_for_has_come() -> None:
    """An answer wakes it; without one, what it asked for is late after a time that it knows."""
    clock, membership = Clock(), Membership(STORES, 1, 1)
    worker, world, session = worker_at((NODE,), membership, clock, blocks=1, eviction="reclaim")
    for number in (1, 2):
        session.messages.put(hot_miss(number))
        worker.step(0)
    (probe,) = world.adapter.packets
    assert worker.patience_s == min(world.thresholds.answer_timeout_s, MIN_PERIOD_S)
    session.messages.put(held(probe))
    worker.step(0)
    assert key(1) in world.pool.resident  # other answers may be about to come
    assert worker.patience_s == GATHER_S
    clock.now_s += worker.patience_s
    worker.step(0)
    assert key(1) not in world.pool.resident
    assert worker.patience_s > GATHER_S


def held(probe: PacketOperation) -> Answer:
    flags = wire.FLAG_RECLAIM | wire.FLAG_HELD
    parts = key_of(probe.key), probe.fragment, probe.fragments
    return Answer(
        probe.destination,
        wire.Message(wire.OP_PUT_ACK, *parts, flags, sequence=probe.sequence, tenant=TENANT),
    )


def test_what_a_node_computes_has_an_entry_at_once() -> None:
    clock, membership = Clock(), Membership(STORES, 1, 1)
    worker, world, session = worker_at((NODE,), membership, clock)
    writes = world.adapter.writes
    session.messages.put(expect(1, 2))
    worker.step(0)
    assert world.installed == {key(1), key(2)}
    assert world.adapter.writes == writes + 1


def test_pushes_are_looked_for() -> None:
    clock, membership = Clock(), Membership(STORES, 1, 1)
    worker, world, _ = worker_at((NODE,), membership, clock)
    world.pool.push = Push(PushOptions(), 8, 0.1)
    worker.step(0)
    assert worker.patience_s == TICK_S


def test_a_raised_threshold_comes_down_though_nothing_happens() -> None:
    clock, membership = Clock(), Membership(STORES, 1, 1)
    worker, world, _ = worker_at((NODE,), membership, clock, switches=100)
    worker.step(0)
    governor = world.pool._governor
    world.pool.dropped(1_000_000)
    clock.now_s = 1.0
    worker.step(0)
    base = governor._base
    assert governor.count == 2 * base
    while governor.count != base:
        assert worker.patience_s <= 1.0
        clock.now_s += worker.patience_s
        worker.step(0)
    assert clock.now_s <= 3.0
    assert worker.patience_s > 1.0


def test_a_worker_that_sleeps_ends_at_once() -> None:
    with worker_of(World(blocks=1), {"ms": 0}) as (_, session):
        woken: list[bool] = []
        session.wake = lambda: woken.append(True)  # type: ignore[method-assign]
    assert woken == [True]


def test_a_node_that_deleted_a_block_is_told_when_the_switch_has_forgotten_it() -> None:
    clock, membership = Clock(), Membership(STORES, 1, 1)
    worker, world, session = worker_at((NODE,), membership, clock)
    worker.connect()
    delete = wire.Message(wire.OP_DELETE, bytes(16), 0, 4, sequence=3, tenant=TENANT, content=8)
    session.messages.put(Answer(NODE, delete))
    worker.step(0)
    (told,) = [packet for packet in world.adapter.packets if isinstance(packet, ForgetWrite)]
    session.messages.put(Answer(NODE, told.message()))
    worker.step(0)
    (done,) = [packet for packet in world.adapter.packets if isinstance(packet, DeletionDone)]
    assert (done.destination, done.message().content, done.sequence) == (NODE, 8, 3)
    assert done.message().generation == membership.members.epoch
