"""A PUT fills the slots of a block that has an entry, once a home says that it made the block of it."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller import p4_constants as p4
from hostlib.protocol import wire
from hostlib.tools.scapy_layer import KV
from tests.p4.rig import (
    CONTENT,
    FRAGMENTS,
    NODES,
    OTHER_CONTENT,
    OTHER_STORE,
    STORE,
    STORES,
    TAG,
    Rig,
    key_of,
    ports,
    value_of,
)
from tests.p4.test_switches import DOWN, UP, A, B, C, Chain
from v1model.backend import CompiledProgram

KEY = key_of("block")
WRITER, OTHER, READER = NODES
ALL = range(FRAGMENTS)


def served(rig: Rig, fragment: int = 0, **fields: int) -> wire.Message | None:
    """What the pool answers; None if it does not."""
    return rig.ask(READER, KEY, fragment, flags=wire.FLAG_RETRY, **fields)


def put(rig: Rig, which: Sequence[int] = ALL, homes: Sequence[int] = (STORE,), **fields: int) -> None:
    for fragment in which:
        rig.send(WRITER, rig.put(WRITER, KEY, homes, fragment, **fields))


def test_what_was_put_is_served_from_the_acknowledgement_on(rig: Rig) -> None:
    generation = rig.install(KEY)
    put(rig)
    assert [served(rig, fragment) for fragment in ALL] == [None] * FRAGMENTS
    assert ports(rig.send(STORE, rig.put_ack(WRITER, KEY, FRAGMENTS - 1))) == [WRITER]
    for fragment in ALL:
        reply = served(rig, fragment)
        assert reply is not None
        assert (bytes(reply.value), reply.tag) == (value_of(KEY, fragment), TAG)
        assert (reply.content, reply.generation) == (CONTENT, generation)


def test_it_is_counted_apart_from_what_homes_send(rig: Rig) -> None:
    rig.install(KEY)
    put(rig)
    rig.send(STORE, rig.put_ack(WRITER, KEY))
    fills = [rig.switch.counter("ingress.pool.fills", place).packets for place in range(3)]
    assert fills == [0, 0, FRAGMENTS]


def test_a_put_to_several_homes_fills_too(rig: Rig) -> None:
    rig.install(KEY)
    put(rig, homes=STORES)
    rig.send(OTHER_STORE, rig.put_ack(WRITER, KEY, home=OTHER_STORE))
    assert all(served(rig, fragment) for fragment in ALL)
    assert rig.outcomes()["replicated"] == FRAGMENTS


@pytest.mark.parametrize("flags", [0, wire.FLAG_HELD, wire.FLAG_CREATED, wire.FLAG_HELD | wire.FLAG_DURABLE])
def test_no_other_acknowledgement_makes_it_count(rig: Rig, flags: int) -> None:
    """HELD alone: another had put the block before, and it is that write which is there."""
    rig.install(KEY)
    put(rig)
    rig.send(STORE, rig.put_ack(WRITER, KEY, flags=flags))
    assert served(rig) is None


def test_only_the_write_that_the_home_has_counts(rig: Rig) -> None:
    rig.install(KEY)
    put(rig)
    put(rig, [1], content=OTHER_CONTENT)  # of who lost the race
    rig.send(STORE, rig.put_ack(WRITER, KEY))
    assert [served(rig, fragment) is not None for fragment in ALL] == [True, False, True, True]


def test_what_passed_before_the_entry_is_filled_by_what_the_home_sends(rig: Rig) -> None:
    put(rig, [0, 1])
    rig.install(KEY)
    put(rig, [2, 3])
    rig.send(STORE, rig.put_ack(WRITER, KEY))
    assert [served(rig, fragment) is not None for fragment in ALL] == [False, False, True, True]
    rig.fill(KEY, 0)
    rig.fill(KEY, 1)
    assert all(served(rig, fragment) for fragment in ALL)


def test_who_guesses_the_write_that_is_there_puts_nothing_beside_it(rig: Rig) -> None:
    """The home holds the block; its content id is known to who read it."""
    rig.install(KEY)
    forged = KV(op=wire.OP_PUT, key=KEY, frag=1, fragments=FRAGMENTS, content=CONTENT) / b"forged"
    rig.send(WRITER, rig.frame(WRITER, STORE, forged))
    rig.send(STORE, rig.put_ack(WRITER, KEY, 1, flags=wire.FLAG_HELD))
    rig.fill(KEY, 0)
    assert served(rig, 0) is not None
    assert served(rig, 1) is None
    rig.fill(KEY, 1)
    reply = served(rig, 1)
    assert reply is not None
    assert bytes(reply.value) == value_of(KEY, 1)


def test_nobody_adds_to_what_another_puts(rig: Rig) -> None:
    """A home may be asked for a block before its acknowledgement has passed: its content id is no secret."""
    rig.install(KEY)
    put(rig, [0, 1, 2])
    for fragment in ALL:
        forged = KV(op=wire.OP_PUT, key=KEY, frag=fragment, fragments=FRAGMENTS, content=CONTENT) / b"forged"
        rig.send(OTHER, rig.frame(OTHER, STORE, forged))
    put(rig, [1, 2])
    rig.send(STORE, rig.put_ack(WRITER, KEY))
    assert [served(rig, fragment) is not None for fragment in ALL] == [False, True, True, False]


def test_a_store_can_neither_put_nor_have_what_it_put_count(rig: Rig) -> None:
    rig.install(KEY)
    for fragment in ALL:
        assert not rig.send(OTHER_STORE, rig.put(OTHER_STORE, KEY, [STORE], fragment))
    rig.send(OTHER_STORE, rig.put_ack(OTHER_STORE, KEY, home=OTHER_STORE))
    assert served(rig) is None
    assert rig.outcomes()["forbidden"] == FRAGMENTS


def test_what_a_home_sends_takes_the_place_of_a_write_that_is_not_all_there(rig: Rig) -> None:
    """Another home made another write of the block, or nobody did: readers are sent this one."""
    rig.install(KEY)
    put(rig, [0, 1])
    rig.send(OTHER_STORE, rig.put_ack(WRITER, KEY, home=OTHER_STORE))
    assert served(rig, 0) is not None
    rig.fill(KEY, 2, content=OTHER_CONTENT)
    for fragment in (0, 1, 3):
        assert served(rig, fragment, content=0) is None
        rig.fill(KEY, fragment, content=OTHER_CONTENT)
    replies = [served(rig, fragment, content=0) for fragment in ALL]
    assert [reply and reply.content for reply in replies] == [OTHER_CONTENT] * FRAGMENTS


def test_an_invented_acknowledgement_keeps_no_block_out(rig: Rig) -> None:
    rig.install(KEY)
    rig.send(OTHER_STORE, rig.put_ack(WRITER, KEY, home=OTHER_STORE, content=OTHER_CONTENT))
    for fragment in ALL:
        rig.fill(KEY, fragment)
    assert all(served(rig, fragment) for fragment in ALL)


def test_a_block_that_holds_a_write_takes_no_put(rig: Rig) -> None:
    rig.install(KEY)
    rig.fill(KEY, 0)
    put(rig, content=OTHER_CONTENT)
    rig.send(STORE, rig.put_ack(WRITER, KEY, content=OTHER_CONTENT))
    reply = served(rig, 0)
    assert reply is not None
    assert reply.content == CONTENT
    assert served(rig, 1) is None


def test_a_damaged_put_fills_nothing(rig: Rig) -> None:
    rig.install(KEY)
    put(rig, checksum=0xBAD)
    rig.send(STORE, rig.put_ack(WRITER, KEY))
    assert served(rig) is None


@pytest.mark.parametrize("fields", [{"fragments": FRAGMENTS + 1}, {"content": 0}], ids=str)
def test_what_is_no_fragment_of_the_entry_fills_nothing(rig: Rig, fields: dict[str, int]) -> None:
    rig.install(KEY)
    put(rig, ALL, (STORE,), **fields)
    rig.send(STORE, rig.put_ack(WRITER, KEY, **fields))
    assert served(rig, content=0) is None


def test_a_block_on_its_way_out_of_another_pool_fills_nothing(rig: Rig) -> None:
    rig.set_role(WRITER, p4.ROLE_TRUNK | p4.ROLE_REQUEST, "0.0.0.0")
    rig.install(KEY)
    put(rig, flags=wire.FLAG_RECLAIM)
    rig.send(STORE, rig.put_ack(WRITER, KEY))
    assert served(rig) is None


def test_nor_does_its_acknowledgement_make_anything_count(rig: Rig) -> None:
    """Who read the block before knows its content id."""
    rig.install(KEY)
    put(rig)
    made = wire.FLAG_HELD | wire.FLAG_CREATED
    rig.send(STORE, rig.put_ack(WRITER, KEY, flags=made | wire.FLAG_RECLAIM))
    assert served(rig) is None


def test_nothing_is_left_of_it_for_the_next_block_in_its_slots(rig: Rig) -> None:
    rig.install(KEY)
    put(rig)
    rig.remove(KEY)
    rig.install(KEY)
    rig.send(STORE, rig.put_ack(WRITER, KEY))
    assert [served(rig, fragment) for fragment in ALL] == [None] * FRAGMENTS


def test_a_slot_that_was_put_wrong_is_put_right_and_the_others_stay(rig: Rig) -> None:
    rig.install(KEY)
    put(rig, [0, 2, 3])
    wrong = KV(op=wire.OP_PUT, key=KEY, frag=1, fragments=FRAGMENTS, content=CONTENT) / b"wrong"
    rig.send(WRITER, rig.frame(WRITER, STORE, wrong))
    rig.send(STORE, rig.put_ack(WRITER, KEY))
    repair = wire.FLAG_BYPASS | wire.FLAG_REPAIR
    rig.send(OTHER, rig.get(OTHER, KEY, 1, flags=repair))
    rig.send(STORE, rig.value(OTHER, KEY, 1, flags=repair))
    for fragment in ALL:
        reply = served(rig, fragment)
        assert reply is not None
        assert bytes(reply.value) == value_of(KEY, fragment)


def test_over_two_switches_both_fill(compiled: CompiledProgram) -> None:
    chain = Chain(compiled)
    for rig in (chain.leaf, chain.spine):
        rig.install(KEY)
    for fragment in ALL:
        for _, packet in chain.leaf.send(A, chain.leaf.put(A, KEY, [STORE], fragment)):
            chain.spine.send(DOWN, packet)
    for _, packet in chain.spine.send(STORE, chain.spine.put_ack(A, KEY)):
        assert ports(chain.leaf.send(UP, packet)) == [A]
    assert ports(chain.leaf.send(B, chain.leaf.get(B, KEY))) == [B]
    assert ports(chain.spine.send(C, chain.spine.get(C, KEY))) == [C]


HOMES = (STORE, OTHER_STORE)
WRITES = {CONTENT: WRITER, OTHER_CONTENT: OTHER}
"""By content id who writes it."""
steps = st.lists(
    st.tuples(
        st.sampled_from(["put", "forge", "value", "repair", "created", "held", "reclaimed"]),
        st.integers(0, FRAGMENTS - 1),
        st.sampled_from(list(WRITES)),
        st.sampled_from(HOMES),
    ),
    max_size=60,
)


@given(steps=steps)
def test_in_whatever_order_the_pool_serves_one_write_that_a_home_has_and_as_it_was_written(
    compiled: CompiledProgram, steps: list[tuple[str, int, int, int]]
) -> None:
    """Two homes, two writers, and a third host of their tenant, who forges what it likes. A home has the
    first write that it was asked to make, says so once to who wrote it, and sends no other."""
    rig = Rig(compiled)
    rig.install(KEY)
    made: dict[int, int] = {}
    for what, fragment, content, home in steps:
        writer = WRITES[content]
        if what == "put":
            rig.send(writer, rig.put(writer, KEY, HOMES, fragment, content=content))
        elif what == "forge":
            forged = KV(op=wire.OP_PUT, key=KEY, frag=fragment, fragments=FRAGMENTS, content=content)
            rig.send(READER, rig.frame(READER, home, forged / b"forged"))
        elif what == "created" and home not in made:
            made[home] = content
            rig.send(home, rig.put_ack(writer, KEY, home=home, content=content))
        elif home in made and what in ("held", "reclaimed"):
            flags = wire.FLAG_HELD
            flags |= wire.FLAG_RECLAIM | wire.FLAG_CREATED if what == "reclaimed" else 0
            ack = rig.put_ack(READER, KEY, home=home, content=made[home], flags=flags)
            rig.send(home, ack)
        elif home in made and what in ("value", "repair"):
            flags = wire.FLAG_BYPASS | wire.FLAG_REPAIR if what == "repair" else 0
            rig.send(READER, rig.get(READER, KEY, fragment, home=home, flags=flags))
            rig.send(home, rig.value(READER, KEY, fragment, home=home, content=made[home], flags=flags))
        replies = [(n, reply) for n in ALL if (reply := served(rig, n, content=0)) is not None]
        contents = {reply.content for _, reply in replies}
        assert len(contents) <= 1
        assert contents <= set(made.values())
        assert all(bytes(reply.value) == value_of(KEY, n) for n, reply in replies)
