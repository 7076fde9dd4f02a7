"""Ways on which nothing gets there, or less than on others, and what an attacker can say of them."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address

import pytest

from controller.membership import SILENCE_S, Announcements, Membership
from controller.operations import Announce, Answer
from controller.ways import (
    ALARMED_S,
    CALM_S,
    MOST_PATIENCE_S,
    NOBODY_REACHED_S,
    QUORUM,
    SUSPICION_S,
    WINDOW_S,
    Doubts,
    Way,
    Ways,
)
from hostlib.protocol import wire
from hostlib.protocol.members import HEARTBEAT_S, Members, State, hello, suspects_in

STORES = tuple(IPv4Address(f"10.0.0.{number}") for number in (8, 9, 10, 11))
ONE, TWO, THREE, _ = STORES
NODES = tuple(IPv4Address(f"10.0.1.{number}") for number in range(1, 6))
EPOCH = 1_000
STEP_S = 0.02


class World:
    """Storage nodes that beat and answer probes; `carries(store, there)` says what gets through."""

    def __init__(self, stores: int = 4) -> None:
        self.stores = STORES[:stores]
        self.membership = Membership(self.stores, 2, EPOCH)
        self.announcements = Announcements(self.membership, [*self.stores, *NODES])
        self.now_s = 0.0
        self.carries: Callable[[IPv4Address, bool], bool] = lambda store, there: True
        self.answer_s = dict.fromkeys(self.stores, 0.0)
        """How long each takes to answer a probe."""
        self._answers: list[tuple[float, IPv4Address, int]] = []
        self.sent = 0
        self._heard = dict.fromkeys(self.stores, 0)
        self._beat_s = dict.fromkeys(self.stores, 0.0)

    def run(self, for_s: float) -> None:
        until_s = self.now_s + for_s
        while self.now_s < until_s:
            self.now_s += STEP_S
            for announce in self.announcements.poll(self.now_s):
                self._reach(announce)
            due = [one for one in self._answers if one[0] <= self.now_s]
            self._answers = [one for one in self._answers if one[0] > self.now_s]
            for _, store, number in due:
                self._heard[store] = number
                self._beat(store)
            for store in self.stores:
                if self.now_s >= self._beat_s[store]:
                    self._beat(store)
            self.membership.look(self.now_s)

    def _reach(self, announce: Announce) -> None:
        store = announce.destination
        if store not in self.stores or not announce.sequence:
            return
        self.sent += 1
        assert len(wire.encode(announce.message())) == wire.KV_HEADER_BYTES + wire.VALUE_BYTES
        if self.carries(store, True):
            self._answers.append((self.now_s + self.answer_s[store], store, announce.sequence))

    def _beat(self, store: IPv4Address) -> None:
        self._beat_s[store] = self.now_s + HEARTBEAT_S
        message = hello(self.membership.members, probe=self._heard[store])
        assert len(wire.encode(message)) == wire.KV_HEADER_BYTES + wire.VALUE_BYTES
        if self.carries(store, False):
            self.membership.hello(Answer(store, wire.decode(wire.encode(message))), self.now_s)

    def suspect(self, node: IPv4Address, *stores: IPv4Address) -> None:
        message = hello(self.membership.members, suspects=map(str, stores))
        self.membership.hello(Answer(node, wire.decode(wire.encode(message))), self.now_s)

    def state(self, store: IPv4Address) -> State:
        member = self.membership.members.at(str(store))
        assert member is not None
        return member.state


@pytest.fixture
def world() -> World:
    world = World()
    world.run(5.0)
    assert {world.state(store) for store in STORES} == {State.UP}
    return world


def losing(share: float, *bad: IPv4Address) -> Callable[[IPv4Address, bool], bool]:
    """What gets through where these lose a share each way: every so many frames are lost."""
    left = dict.fromkeys(bad, 0.0)

    def carries(store: IPv4Address, there: bool) -> bool:
        if store not in left:
            return True
        left[store] += share
        lost = left[store] >= 1
        left[store] -= lost
        return not lost

    return carries


def test_while_all_is_well_each_is_probed_once_a_second(world: World) -> None:
    before, epoch = world.sent, world.membership.members.epoch
    world.run(20.0)
    assert world.sent - before == pytest.approx(20 / CALM_S * len(STORES), rel=0.1)
    assert world.membership.members.epoch == epoch


def test_one_that_nothing_reaches_is_down_though_it_says_hello_and_stays_so(world: World) -> None:
    world.carries = lambda store, there: store != ONE or not there
    world.run(CALM_S + 6 * ALARMED_S + 2 * SILENCE_S)
    assert [world.state(store) for store in STORES] == [State.DOWN, State.UP, State.UP, State.UP]
    epoch = world.membership.members.epoch
    world.run(20.0)
    assert world.membership.members.epoch == epoch
    world.carries = lambda store, there: True
    world.run(WINDOW_S + CALM_S)
    assert world.state(ONE) is State.UP


def test_one_that_was_silent_and_is_back_is_up_at_once(world: World) -> None:
    world.carries = lambda store, there: store != ONE
    world.run(5.0)
    assert world.state(ONE) is State.DOWN
    world.carries = lambda store, there: True
    world.run(2 * HEARTBEAT_S)
    assert world.state(ONE) is State.UP


def test_one_that_nodes_suspect_is_looked_at_at_once(world: World) -> None:
    world.run(CALM_S / 2)
    world.carries = lambda store, there: store != ONE or not there
    for node in NODES[:QUORUM]:
        world.suspect(node, ONE)
    world.run(4 * ALARMED_S)
    assert world.state(ONE) is State.DOWN


def test_whatever_nodes_say_of_one_that_is_reached_it_is_up(world: World) -> None:
    before, epoch = world.sent, world.membership.members.epoch
    for _ in range(20):
        for node in NODES:
            world.suspect(node, *STORES)
        world.run(0.5)
    assert world.membership.members.epoch == epoch
    assert world.sent - before <= 10.0 / ALARMED_S * len(STORES) + len(STORES)


def test_one_node_alone_puts_nothing_in_doubt(world: World) -> None:
    """Nor does a storage node, whose HELLO is no suspicion."""
    world.carries = losing(0.1, ONE)
    for _ in range(20):
        world.suspect(NODES[0], ONE)
        world.suspect(TWO, ONE)
        world.run(0.5)
    assert world.state(ONE) is State.UP
    for _ in range(20):
        world.suspect(NODES[0], ONE)
        world.suspect(NODES[1], ONE)
        world.run(0.5)
    assert world.state(ONE) is State.DOWN


def test_one_that_loses_a_third_both_ways_is_down_until_it_loses_no_more(world: World) -> None:
    world.carries = losing(0.34, ONE)
    world.run(10.0)
    assert world.state(ONE) is State.DOWN
    changes = world.membership.members.epoch
    world.run(30.0)
    assert world.membership.members.epoch - changes <= 2
    world.carries = lambda store, there: True
    world.run(5.0)
    assert world.state(ONE) is State.UP


def test_what_all_ways_lose_throws_none_out(world: World) -> None:
    world.carries = losing(0.34, *STORES)
    world.run(20.0)
    assert {world.state(store) for store in STORES} == {State.UP}


def test_without_r_others_none_is_thrown_out_for_what_is_lost() -> None:
    world = World(stores=2)
    world.run(5.0)
    world.carries = losing(0.34, ONE)
    world.run(10.0)
    assert [world.state(store) for store in world.stores] == [State.UP] * 2


def test_with_r_others_one_that_loses_a_third_is_thrown_out() -> None:
    world = World(stores=3)
    world.run(5.0)
    world.carries = losing(0.34, ONE)
    world.run(10.0)
    assert [world.state(store) for store in world.stores] == [State.DOWN, State.UP, State.UP]


def test_of_two_the_one_that_nothing_reaches_is_down_at_once_all_the_same() -> None:
    world = World(stores=2)
    world.run(5.0)
    world.carries = lambda store, there: store != ONE or not there
    world.run(CALM_S + 6 * ALARMED_S + 2 * SILENCE_S)
    assert [world.state(store) for store in world.stores] == [State.DOWN, State.UP]


def test_a_controller_that_was_held_up_blames_no_way(world: World) -> None:
    world.now_s += 10.0
    world.run(0.5)
    assert {world.state(store) for store in STORES} == {State.UP}


def test_an_answer_to_what_was_not_sent_says_nothing(world: World) -> None:
    """It is of another controller's probe, or of a storage node that guesses."""
    world.carries = lambda store, there: store != ONE
    for _ in range(100):
        for probe in (0, 1, (1 << 32) - 1):
            said = hello(world.membership.members, probe=probe)
            world.membership.hello(Answer(ONE, said), world.now_s)
        world.run(STEP_S)
    assert world.state(ONE) is State.DOWN


def test_suspects_are_a_bit_for_each_number() -> None:
    members = Members.of([f"10.1.0.{number}" for number in range(1, 81)])
    named = [members.nodes[at].address for at in (0, 7, 79)]
    assert suspects_in(hello(members, suspects=named).value) == {1, 8, 80}
    assert suspects_in(hello(members).value) == frozenset()
    assert suspects_in(hello(members, suspects=["192.0.2.1"]).value) == frozenset()
    assert suspects_in(b"\xff" * 33) == frozenset()


def test_where_all_answer_slowly_none_is_down_for_that_and_a_dead_one_soon_is(world: World) -> None:
    """A machine that is short of CPU time takes 0.9 s for an answer."""
    world.answer_s = dict.fromkeys(STORES, 0.9)
    states = set()
    for _ in range(100):
        world.run(0.2)
        states |= {world.state(store) for store in STORES}
    assert states == {State.UP}
    world.carries = lambda store, there: store != ONE
    world.run(MOST_PATIENCE_S)
    assert [world.state(store) for store in STORES] == [State.DOWN, State.UP, State.UP, State.UP]


def test_one_that_answers_slowly_on_purpose_delays_nobodys_end(world: World) -> None:
    world.answer_s[TWO] = 0.55
    world.run(20)
    world.carries = lambda store, there: store != ONE
    world.run(SILENCE_S + 2 * HEARTBEAT_S)
    assert world.state(ONE) is State.DOWN


def test_a_pause_of_all_at_once_puts_none_down_and_one_without_end_puts_down_all(world: World) -> None:
    for _ in range(4):
        world.carries = lambda store, there: False
        world.run(MOST_PATIENCE_S - 4 * HEARTBEAT_S)
        world.carries = lambda store, there: True
        world.run(0.2)
        assert {world.state(store) for store in STORES} == {State.UP}
    world.carries = lambda store, there: False
    world.run(MOST_PATIENCE_S + 6 * HEARTBEAT_S)
    assert {world.state(store) for store in STORES} == {State.DOWN}


def test_while_none_of_all_who_are_heard_is_reached_none_is_down_for_some_time(
    world: World,
) -> None:
    for _ in range(4):
        world.carries = lambda store, there: not there
        world.run(NOBODY_REACHED_S - CALM_S)
        assert {world.state(store) for store in STORES} == {State.UP}
        world.carries = lambda store, there: True
        world.run(2.0)
        assert {world.state(store) for store in STORES} == {State.UP}
    world.carries = lambda store, there: not there
    world.run(NOBODY_REACHED_S + 2 * CALM_S)
    assert {world.state(store) for store in STORES} == {State.DOWN}


def test_a_delay_is_what_a_hello_or_an_answer_is_late() -> None:
    way = Way()
    way.heard(0.0)
    assert way.delay_s(HEARTBEAT_S) == 0
    assert way.delay_s(HEARTBEAT_S + 0.2) == pytest.approx(0.2)
    way.heard(HEARTBEAT_S + 0.3)
    assert way.delay_s(HEARTBEAT_S + 0.3) == pytest.approx(0.3)
    assert way.delay_s(HEARTBEAT_S + 0.3 + MOST_PATIENCE_S + 0.1) is None


@pytest.mark.parametrize(("suspected", "looks"), [((ONE,), True), ((), False)])
def test_one_node_that_suspects_a_storage_node_makes_the_controller_look_closely(
    suspected: tuple[IPv4Address, ...], looks: bool
) -> None:
    world = World()
    world.run(3.0)
    world.suspect(NODES[0], *suspected)
    sent = world.sent
    world.run(1.0)
    often = len(STORES) / ALARMED_S
    assert (world.sent - sent > often / 2) == looks


def test_who_never_said_hello_is_not_probed() -> None:
    ways = Ways(1)
    assert ways.probe([str(ONE)], 1.0) == {}
    ways.heard(str(ONE), 0, 1.0)
    assert ways.probe([str(ONE), str(TWO)], 1.0) == {str(ONE): 2}


def test_what_a_node_suspected_long_ago_puts_nothing_in_doubt() -> None:
    doubts = Doubts()
    for number, node in enumerate(NODES[:QUORUM]):
        doubts.heard(str(node), frozenset({8}), float(number))
        assert doubts.about(8, float(number)) == (number + 1 == QUORUM)
    assert not doubts.about(9, QUORUM - 1.0)
    assert not doubts.about(8, SUSPICION_S + QUORUM)
