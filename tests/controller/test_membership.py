"""Who counts as there: heartbeats, silence, coming back, and what hosts are told when."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.membership import MOST_REPEAT_S, REPEAT_S, SILENCE_S, Announcements, Membership, first_epoch
from controller.operations import Answer
from hostlib.protocol import wire
from hostlib.protocol.members import HEARTBEAT_S, Members, State, is_later

STORES = tuple(IPv4Address(f"10.0.0.{number}") for number in (8, 9, 10))
ONE, TWO, _ = STORES
NODE = IPv4Address("10.0.0.1")
EPOCH = 1_000


def hello(membership: Membership, store: IPv4Address, held: bool = True, epoch: int | None = None) -> Answer:
    known = membership.members.epoch if epoch is None else epoch
    flags = wire.FLAG_HELD if held else 0
    return Answer(store, wire.Message(wire.OP_HELLO, bytes(16), 0, 0, flags, known, epoch=known & 0xFF))


class World:
    """Storage nodes that beat until they are silent."""

    def __init__(self) -> None:
        self.membership = Membership(STORES, 2, EPOCH)
        self.now_s = 0.0
        self.beating: dict[IPv4Address, bool] = dict.fromkeys(STORES, True)

    def beat(self, beats: int = 1) -> None:
        for _ in range(beats):
            self.now_s += HEARTBEAT_S
            for store, held in self.beating.items():
                self.membership.hello(hello(self.membership, store, held), self.now_s)
            self.membership.look(self.now_s)

    def state(self, store: IPv4Address) -> State:
        member = self.membership.members.at(str(store))
        assert member is not None
        return member.state


def test_all_that_beat_are_up_and_nothing_changes() -> None:
    world = World()
    world.beat()
    assert {world.state(store) for store in STORES} == {State.UP}
    epoch = world.membership.members.epoch
    world.beat(50)
    assert {world.state(store) for store in STORES} == {State.UP}
    assert world.membership.members.epoch == epoch


def test_a_host_whose_values_have_another_size_is_left_out_and_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    world.beat()
    said = hello(world.membership, ONE)
    other = replace(said, message=said.message._replace(chain_blocks=8192))
    for _ in range(20):
        world.now_s += HEARTBEAT_S
        world.membership.hello(other, world.now_s)
        world.membership.hello(hello(world.membership, TWO), world.now_s)
        world.membership.look(world.now_s)
    assert (world.state(ONE), world.state(TWO)) == (State.DOWN, State.UP)
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == [
        "10.0.0.8 is left out: values have 8192 bytes there and 512 here: one network has one size "
        "(VALUE_BYTES of the run, or WEIR_VALUE_BYTES where the process starts)"
    ]


def test_a_host_that_was_right_meanwhile_is_named_again(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.beat()
    said = hello(world.membership, ONE)
    other = replace(said, message=said.message._replace(chain_blocks=8192))
    for answer in (other, other, said, other):
        world.membership.hello(answer, world.now_s)
    assert sum("is left out" in record.getMessage() for record in caplog.records) == 2


def test_three_missing_heartbeats_are_down_and_two_are_not() -> None:
    world = World()
    world.beat(5)
    epoch = world.membership.members.epoch
    del world.beating[ONE]
    world.beat(2)
    assert world.state(ONE) is State.UP
    world.beat(2)
    assert world.state(ONE) is State.DOWN
    assert world.state(TWO) is State.UP
    assert world.membership.members.epoch == epoch + 1


def test_who_comes_back_is_joining_until_it_has_caught_up() -> None:
    world = World()
    world.beat()
    del world.beating[ONE]
    world.beat(5)
    world.beating[ONE] = False
    world.beat(5)
    assert world.state(ONE) is State.JOINING
    world.beating[ONE] = True
    world.beat()
    assert world.state(ONE) is State.UP


def test_who_was_away_by_another_controllers_list_is_not_up_by_this_ones_before_it_caught_up() -> None:
    """It noticed neither: its link was cut."""
    world = World()
    before = Membership(STORES, 2, EPOCH - 100)
    membership = world.membership
    membership.hello(hello(membership, ONE, held=True, epoch=before.members.epoch), 0.1)
    membership.hello(hello(membership, TWO, held=True, epoch=before.members.epoch + 1), 0.1)
    assert {world.state(store) for store in STORES} == {State.JOINING}
    membership.hello(hello(membership, ONE, held=False), 0.2)
    membership.hello(hello(membership, TWO, held=True), 0.2)
    assert (world.state(ONE), world.state(TWO)) == (State.JOINING, State.UP)


def test_who_was_not_heard_for_long_and_knows_no_list_of_this_controller_may_have_missed_something() -> None:
    world = World()
    world.beating = {NODE: True}
    world.beat(50)
    assert world.state(ONE) is State.UP
    world.membership.hello(hello(world.membership, ONE, held=True, epoch=EPOCH - 100), world.now_s)
    assert world.state(ONE) is State.JOINING


def test_a_controller_that_takes_over_again_does_not_go_on_from_what_it_knew() -> None:
    world = World()
    world.beat()
    later = world.membership.members.epoch + 7
    world.membership.hello(hello(world.membership, ONE, epoch=later), world.now_s)
    assert world.membership.members.epoch == later + 1
    assert {world.state(store) for store in STORES} == {State.JOINING}
    world.beat()
    assert {world.state(store) for store in STORES} == {State.UP}


def test_a_store_that_says_to_know_ever_later_lists_leaves_no_host_behind() -> None:
    world = World()
    for _ in range(5):
        ahead = (world.membership.members.epoch + (1 << 31) - 1) % (1 << 32)
        world.membership.hello(hello(world.membership, ONE, epoch=ahead), world.now_s)
        ahead = (world.membership.members.epoch + (1 << 29)) % (1 << 32)
        world.membership.hello(hello(world.membership, ONE, epoch=ahead), world.now_s)
        assert is_later(world.membership.members.epoch, EPOCH)
    del world.beating[ONE]
    world.beat(6)
    assert is_later(world.membership.members.epoch, EPOCH)


def test_who_does_not_know_that_it_was_away_has_not_caught_up() -> None:
    """It was cut off, not restarted: what it says it has is what it had before."""
    world = World()
    world.beat()
    before = world.membership.members.epoch
    del world.beating[ONE]
    world.beat(5)
    world.membership.hello(hello(world.membership, ONE, epoch=before), world.now_s)
    world.membership.hello(hello(world.membership, ONE, epoch=before), world.now_s)
    assert world.state(ONE) is State.JOINING
    world.membership.hello(hello(world.membership, ONE), world.now_s)
    assert world.state(ONE) is State.UP


def test_a_restart_that_was_quicker_than_the_silence_is_noticed() -> None:
    world = World()
    world.beat()
    world.beating[ONE] = False
    world.beat()
    assert world.state(ONE) is State.JOINING


def test_who_never_said_hello_is_down_if_others_say_it_and_joins_when_it_does() -> None:
    world = World()
    world.beating = dict.fromkeys((TWO, STORES[2]), True)
    world.beat(8)
    assert world.state(ONE) is State.JOINING
    world.beat(8)
    assert {world.state(store) for store in STORES} == {State.DOWN, State.UP}
    world.beating[ONE] = False
    world.beat()
    assert world.state(ONE) is State.JOINING
    world.beating[ONE] = True
    world.beat(2)
    assert world.state(ONE) is State.UP


def test_storage_nodes_that_know_of_no_controller_are_taken_to_be_there() -> None:
    world = World()
    world.beating = {NODE: True}
    world.beat(20)
    assert {world.state(store) for store in STORES} == {State.UP}
    world.beating[ONE] = True
    world.beat(8)
    assert world.state(TWO) is State.UP
    world.beat(8)
    assert world.state(TWO) is State.DOWN


def test_a_controller_that_was_held_up_itself_blames_nobody() -> None:
    world = World()
    world.beat()
    world.now_s += 10 * SILENCE_S
    world.membership.look(world.now_s)
    assert {world.state(store) for store in STORES} == {State.UP}


def test_who_was_heard_after_a_hold_up_is_missed_no_later_for_it() -> None:
    world = World()
    world.beat()
    world.now_s += 10 * SILENCE_S
    world.beat()
    del world.beating[ONE]
    world.beat(4)
    assert world.state(ONE) is State.DOWN


def test_a_controller_that_is_always_late_misses_those_that_are_gone_all_the_same() -> None:
    world = World()
    world.beat()
    del world.beating[ONE]
    for _ in range(10):
        world.now_s += 2 * HEARTBEAT_S + 0.05
        world.beat()
    assert (world.state(ONE), world.state(TWO)) == (State.DOWN, State.UP)


def test_a_controller_that_is_always_late_and_hears_nobody_blames_nobody() -> None:
    world = World()
    world.beat()
    for _ in range(10):
        world.now_s += 2 * HEARTBEAT_S + 0.05
        world.membership.look(world.now_s)
    assert {world.state(store) for store in STORES} == {State.UP}


def test_silence_behind_a_switch_that_is_not_heard_says_nothing() -> None:
    world = World()
    world.beat()
    del world.beating[ONE]
    world.membership.out_of_sight([ONE])
    world.beat(10)
    assert world.state(ONE) is State.UP


def test_hosts_are_told_nothing_before_anybody_said_hello() -> None:
    membership = Membership(STORES, 2, EPOCH)
    assert Announcements(membership, [NODE]).poll(1.0) == []


def test_hosts_are_told_of_every_change_and_again_from_time_to_time() -> None:
    world = World()
    announcements = Announcements(world.membership, [NODE, ONE])
    world.beat()
    assert {announce.destination for announce in announcements.poll(world.now_s)} == {NODE, ONE}
    assert announcements.poll(world.now_s) == []
    del world.beating[ONE]
    world.beat(5)
    told = announcements.poll(world.now_s)
    assert [Members.decode(announce.value) for announce in told] == [world.membership.members] * 2
    now_s = world.now_s
    waits_s: list[float] = []
    while len(waits_s) < 8:
        waits_s.append(announcements.due_s - now_s)
        assert announcements.poll(announcements.due_s - 0.01) == []
        now_s = announcements.due_s
        assert len(announcements.poll(now_s)) == 2
    assert waits_s[:2] == pytest.approx([REPEAT_S, 2 * REPEAT_S])
    assert waits_s[-2:] == pytest.approx([MOST_REPEAT_S] * 2)
    world.beat()
    del world.beating[TWO]
    world.beat(5)
    assert announcements.due_s <= world.now_s
    announcements.poll(world.now_s)
    assert announcements.due_s == world.now_s + REPEAT_S


def test_a_switch_without_hosts_has_nothing_to_say() -> None:
    """A spine: one that was always due kept its worker awake without a rest."""
    world = World()
    announcements = Announcements(world.membership, [])
    world.beat()
    assert announcements.poll(world.now_s) == []
    assert announcements.due_s == float("inf")


def test_who_asks_with_an_older_list_is_told_at_once() -> None:
    world = World()
    announcements = Announcements(world.membership, [NODE, ONE])
    world.beat()
    announcements.poll(world.now_s)
    announcements.asked(hello(world.membership, NODE))
    assert announcements.poll(world.now_s) == []
    announcements.asked(hello(world.membership, NODE, epoch=0))
    announcements.asked(hello(world.membership, IPv4Address("192.0.2.1"), epoch=0))
    (announce,) = announcements.poll(world.now_s)
    epoch = world.membership.members.epoch
    message = wire.decode(wire.encode(announce.message()))
    assert (announce.destination, message.op, message.epoch) == (NODE, wire.OP_MEMBERS, epoch & 0xFF)


@given(st.lists(st.tuples(st.sampled_from(STORES), st.sampled_from(["stop", "lag", "run"])), max_size=20))
def test_after_any_history_those_that_beat_are_up_and_those_that_do_not_are_down(
    steps: list[tuple[IPv4Address, str]],
) -> None:
    world = World()
    world.beat()
    epochs = [world.membership.members.epoch]
    for store, what in steps:
        world.beating.pop(store, None)
        if what != "stop":
            world.beating[store] = what == "run"
        world.beat(2)
        epochs.append(world.membership.members.epoch)
    assert epochs == sorted(epochs)
    world.beat(25)  # longer than a pause of all of them at once may last
    for store in STORES:
        expected = {None: State.DOWN, False: State.JOINING, True: State.UP}[world.beating.get(store)]
        assert world.state(store) is expected


def test_who_knows_a_later_list_than_the_controller_is_told_one_that_is_later_still() -> None:
    """The controller was started anew, and its clock is behind the epochs that were given."""
    world = World()
    later = wire.Message(
        wire.OP_HELLO, bytes(16), 0, 0, wire.FLAG_HELD, EPOCH + 300, epoch=(EPOCH + 300) & 0xFF
    )
    world.membership.hello(Answer(NODE, later), 0.0)
    assert world.membership.members.epoch == EPOCH  # it is no storage node
    world.membership.hello(Answer(ONE, later), 0.0)
    assert world.membership.members.epoch == EPOCH + 301
    world.membership.hello(Answer(ONE, later._replace(generation=(1 << 32) - 1)), 0.0)
    assert world.membership.members.epoch == EPOCH + 301  # behind that there would be none


def test_a_controller_that_is_started_later_is_ahead_of_all_lists_of_the_one_before() -> None:
    """Three storage nodes that come and go for ten seconds make more than one list a second."""
    started_s = 1_795_000_000.0
    before = Membership(STORES, 2, first_epoch(started_s))
    for at in range(20):
        before.hello(hello(before, ONE), at / 2)
        before.look(at / 2)
        before.look(at / 2 + HEARTBEAT_S)
        before.look(at / 2 + HEARTBEAT_S * 2)
        before.look(at / 2 + HEARTBEAT_S * 4)
    assert before.members.epoch > first_epoch(started_s) + 10
    assert first_epoch(started_s + 10) > before.members.epoch


def test_a_worker_that_is_held_up_counts_its_hosts_for_nobody_although_others_look() -> None:
    membership = Membership(STORES, 2, EPOCH)
    mine, others = STORES[:1], STORES[1:]
    for store in STORES:
        membership.hello(hello(membership, store), 0.0)
    membership.look(0.0, mine)
    for at in range(1, 20):
        for store in others:
            membership.hello(hello(membership, store), at / 10)
        membership.look(at / 10, others)
    membership.look(2.0, mine)

    def state() -> State:
        member = membership.members.at(str(ONE))
        assert member is not None
        return member.state

    assert state() is State.UP
    membership.look(2.1, mine)
    membership.look(2.1 + SILENCE_S, mine)
    assert state() is State.UP  # held up again
    for at in range(15):  # others are silent as well: it may be a pause
        membership.look(2.5 + at / 10, mine)
    assert state() is State.DOWN


@pytest.mark.parametrize("ahead", [1, 36_000, 1 << 30])
def test_a_node_that_lives_on_with_a_later_list_hears_of_one_that_is_later_still(ahead: int) -> None:
    """Controller and all storage nodes were started anew."""
    world = World()
    knows = (EPOCH + ahead) % (1 << 32)
    for _ in range(100):
        world.beat()
        world.membership.hello(hello(world.membership, NODE, epoch=knows), world.now_s)
    assert is_later(world.membership.members.epoch, knows)
    assert {world.state(store) for store in STORES} == {State.UP}


def test_a_node_that_says_so_for_a_moment_is_not_believed() -> None:
    world = World()
    for _ in range(20):
        world.beat()
        world.membership.hello(hello(world.membership, NODE, epoch=EPOCH + 50), world.now_s)
        world.beat()
        world.membership.hello(hello(world.membership, NODE), world.now_s)
    assert not is_later(world.membership.members.epoch, EPOCH + 50)


@pytest.mark.parametrize("liar", [NODE, ONE])
def test_who_says_to_know_ever_later_lists_is_believed_less_and_less_often(liar: IPv4Address) -> None:
    world = World()
    world.beat()
    followed = 0
    for _ in range(36_000):
        world.now_s += HEARTBEAT_S
        before = world.membership.members.epoch
        lie = hello(world.membership, liar, epoch=(before + 1_000) % (1 << 32))
        world.membership.hello(lie, world.now_s)
        followed += is_later(world.membership.members.epoch, before + 999)
    assert 0 < followed < 12  # in an hour


def test_who_says_ten_times_a_second_that_it_missed_something_makes_fewer_and_fewer_lists() -> None:
    world = World()
    world.beat(20)
    before = world.membership.members.epoch
    for _ in range(600):
        world.membership.hello(hello(world.membership, ONE, held=False), world.now_s)
        world.beat()
    assert (world.membership.members.epoch - before) % (1 << 32) < 30
    world.beat(700)
    assert {world.state(store) for store in STORES} == {State.UP}
