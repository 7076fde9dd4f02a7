"""The thread that looks after a switch, with a session that a test takes away and gives back."""

from __future__ import annotations

import queue
import threading
from contextlib import contextmanager
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Any

from controller.costs import Costs
from controller.errors import NotPrimaryError
from controller.membership import Membership
from controller.operations import Answer
from controller.p4_constants import OUTCOME_NAMES
from controller.worker import IDLE_TICK_S, MAX_IDLE_TICK_S, SwitchWorker
from hostlib import wire
from hostlib.members import HEARTBEAT_S
from tests.controller.live import wait_until
from tests.controller.pool_world import STORES, World, hot_miss, key
from tests.controller.recording import RecordingAdapter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controller.operations import HotMiss


class Adapter(RecordingAdapter):
    """What a worker needs besides what a pool does."""

    def reports(self, message: HotMiss) -> list[HotMiss]:
        return [message]

    def read_outcomes(self) -> list[int]:
        return [0] * len(OUTCOME_NAMES)


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


def test_only_who_sees_storage_nodes_wakes_as_often_as_they_beat() -> None:
    """A fat tree has twenty switches, and storage nodes at a few of them."""
    node = IPv4Address("10.0.0.1")
    membership = Membership(STORES, 1, 1)
    woken: list[str] = []

    def worker_at(*hosts: IPv4Address, switches: int = 1) -> SwitchWorker:
        world, name = World(blocks=1), str(hosts[0])
        session = Session(world.adapter, {"ms": 0})  # type: ignore[arg-type]
        session.wake = lambda: woken.append(name)  # type: ignore[method-assign]
        return SwitchWorker(
            "s1",
            session,
            world.pool,
            membership,
            hosts,
            switches=switches,  # type: ignore[arg-type]
        )

    edge, core = worker_at(STORES[0], node), worker_at(node)
    assert edge.patience_s == core.patience_s == IDLE_TICK_S
    assert not woken
    beat = wire.Message(wire.OP_HELLO, bytes(16), 0, 0, wire.FLAG_HELD, membership.members.epoch)
    membership.hello(Answer(STORES[0], beat), 0.0)
    assert (edge.patience_s, core.patience_s) == (HEARTBEAT_S, IDLE_TICK_S)
    assert worker_at(node, switches=20).patience_s == MAX_IDLE_TICK_S
    assert worker_at(STORES[0], switches=20).patience_s == HEARTBEAT_S
    assert woken == [str(STORES[0]), str(node)]  # it is up, and all hosts have to be told
