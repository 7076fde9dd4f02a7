"""What was deleted leaves the pools of all switches, and then who asked is told."""

from __future__ import annotations

from ipaddress import IPv4Address

from controller.block_id import block_id
from controller.deletions import AGAIN_S, GIVEN_UP_S, MAX_UNDER_WAY, Deletions
from controller.operations import Answer, DeletionDone, ForgetWrite
from hostlib.protocol import wire

NODE, OTHER = IPv4Address("10.0.0.1"), IPv4Address("10.0.0.2")
KEY, TENANT, CONTENT, FRAGMENTS = bytes(range(16)), 5, 77, 4
EPOCH = 400_000_930
BLOCK = block_id(TENANT, KEY)
TOLD = ForgetWrite(BLOCK, CONTENT, FRAGMENTS, 1)


def asked(source: IPv4Address = NODE, content: int = CONTENT, sequence: int = 9) -> Answer:
    return Answer(
        source,
        wire.Message(wire.OP_DELETE, KEY, 0, FRAGMENTS, sequence=sequence, tenant=TENANT, content=content),
    )


def obeyed(told: ForgetWrite | DeletionDone = TOLD) -> Answer:
    """What a switch says when it has done so."""
    return Answer(IPv4Address("10.255.0.1"), told.message())


def make() -> tuple[Deletions, list[str]]:
    """With three switches, and who was woken."""
    deletions, woken = Deletions(), list[str]()
    for name in ("s1", "s2", "s3"):
        deletions.joins(name, lambda name=name: woken.append(name))  # type: ignore[misc]
    return deletions, woken


def test_every_switch_forgets_it_before_who_asked_is_told() -> None:
    deletions, woken = make()
    deletions.asked("s1", asked(), 0.0)
    assert woken == ["s1", "s2", "s3"]
    for name in ("s1", "s2", "s3"):
        assert deletions.work(name, 0.0, EPOCH) == [TOLD]
    deletions.obeyed("s2", obeyed())
    deletions.obeyed("s1", obeyed())
    assert not deletions.work("s1", 0.0, EPOCH)
    deletions.obeyed("s3", obeyed())
    assert woken[3:] == ["s1"]
    (done,) = deletions.work("s1", 0.0, EPOCH)
    assert isinstance(done, DeletionDone)
    message = done.message()
    assert (done.destination, message.op, message.flags) == (NODE, wire.OP_DELETED, wire.FLAG_HELD)
    assert (message.key, message.tenant, message.content, message.sequence) == (KEY, TENANT, CONTENT, 9)
    assert (message.generation, message.epoch) == (EPOCH, EPOCH % 256)
    assert not deletions.work("s1", 0.0, EPOCH)


def test_what_a_switch_did_for_another_host_counts_for_nobody_else() -> None:
    """A host that knows the write can ask before the storage nodes have deleted it: then the switch may have
    taken it in again when its owner asks."""
    deletions, _ = make()
    deletions.asked("s2", asked(OTHER), 0.0)
    for name in ("s1", "s2"):
        for told in deletions.work(name, 0.0, EPOCH):
            deletions.obeyed(name, obeyed(told))
    deletions.asked("s1", asked(NODE), 1.0)
    (told,) = deletions.work("s1", 1.0, EPOCH)
    assert isinstance(told, ForgetWrite)
    for late in deletions.work("s3", 1.0, EPOCH):
        deletions.obeyed("s3", obeyed(late))
    made = deletions.work("s2", 1.0, EPOCH)
    assert [one.destination for one in made if isinstance(one, DeletionDone)] == [OTHER]
    assert not deletions.work("s1", 1.0, EPOCH)


def test_a_switch_that_says_nothing_is_told_again() -> None:
    deletions, _ = make()
    deletions.asked("s1", asked(), 0.0)
    assert deletions.work("s2", 0.0, EPOCH) == [TOLD]
    assert deletions.due_s("s2") == AGAIN_S
    assert not deletions.work("s2", AGAIN_S / 2, EPOCH)
    assert deletions.work("s2", AGAIN_S, EPOCH) == [TOLD]


def test_all_who_ask_are_told_each_by_its_own_switch() -> None:
    deletions, _ = make()
    deletions.asked("s1", asked(), 0.0)
    deletions.asked("s2", asked(OTHER), 0.0)
    for name in ("s1", "s2", "s3"):
        for told in deletions.work(name, 0.0, EPOCH):
            deletions.obeyed(name, obeyed(told))
    assert not deletions.work("s3", 0.0, EPOCH)
    destinations = [one.destination for name in ("s1", "s2") for one in deletions.work(name, 0.0, EPOCH)]
    assert destinations == [NODE, OTHER]


def test_what_no_switch_answers_is_given_up_and_the_number_is_bounded() -> None:
    deletions, _ = make()
    for content in range(1, MAX_UNDER_WAY + 10):
        deletions.asked("s1", asked(content=content), 0.0)
    assert len(deletions.work("s1", 0.0, EPOCH)) == MAX_UNDER_WAY
    assert not deletions.work("s2", GIVEN_UP_S, EPOCH)
    assert deletions.due_s("s2") == float("inf")
    deletions.obeyed("s1", obeyed())  # late


def test_who_asks_for_as_many_as_there_may_be_keeps_nobody_else_out() -> None:
    deletions, _ = make()
    for content in range(1, MAX_UNDER_WAY + 1):
        deletions.asked("s1", asked(content=content), 0.0)
    deletions.asked("s1", asked(OTHER, content=99_999), 0.0)
    told = [one.content for one in deletions.work("s1", 0.0, EPOCH)]
    assert len(told) == MAX_UNDER_WAY
    assert 99_999 in told
    assert 1 not in told


def test_an_answer_that_nobody_waits_for_changes_nothing() -> None:
    deletions, woken = make()
    deletions.obeyed("s1", obeyed())
    assert not woken
    assert not deletions.work("s1", 0.0, EPOCH)
