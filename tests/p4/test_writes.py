"""One write at a time: slots and waiters never mix fragments of two writes, and reports put slots right."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.protocol import wire
from hostlib.tools.scapy_layer import KV
from tests.p4.rig import (
    CONTENT,
    FRAGMENTS,
    NODES,
    OTHER_CONTENT,
    OTHER_STORE,
    STORE,
    TAG,
    Rig,
    key_of,
    ports,
    value_of,
)
from v1model.backend import CompiledProgram

KEY = key_of("block")
A, B, C = NODES
REPAIR = wire.FLAG_BYPASS | wire.FLAG_REPAIR


def served(rig: Rig, fragment: int = 0, **fields: int) -> wire.Message | None:
    """What the pool answers; None if it does not."""
    return rig.ask(C, KEY, fragment, **fields)


def reply_of(rig: Rig) -> wire.Message:
    """What the pool answers, which it must."""
    reply = served(rig)
    assert reply is not None
    return reply


def test_a_probe_learns_the_length_and_the_write_from_the_pool(rig: Rig) -> None:
    rig.install(KEY)
    rig.fill(KEY)
    reply = served(rig, fragments=0, content=0)
    assert reply is not None
    assert (reply.fragments, reply.content, reply.tag) == (FRAGMENTS, CONTENT, TAG)


def test_the_pool_serves_no_other_write_than_was_asked_for(rig: Rig) -> None:
    rig.install(KEY)
    rig.fill(KEY)
    assert served(rig, content=OTHER_CONTENT) is None
    assert served(rig, content=CONTENT) is not None


def test_a_fragment_of_another_write_is_not_stored_beside_the_first(rig: Rig) -> None:
    rig.install(KEY)
    rig.fill(KEY, 0)
    rig.fill(KEY, 1, content=OTHER_CONTENT)
    assert served(rig, 0) is not None
    assert served(rig, 1) is None


def test_a_value_without_content_id_is_not_stored(rig: Rig) -> None:
    rig.install(KEY)
    rig.fill(KEY, content=0)
    assert served(rig) is None


def test_waiters_for_one_write_get_nothing_of_another(rig: Rig) -> None:
    rig.send(A, rig.get(A, KEY, 1, content=CONTENT))
    assert ports(rig.send(B, rig.get(B, KEY, 1, content=OTHER_CONTENT))) == [STORE]
    assert ports(rig.send(STORE, rig.value(B, KEY, 1, content=OTHER_CONTENT))) == [B]
    assert ports(rig.send(STORE, rig.value(A, KEY, 1, content=CONTENT))) == [A]


def test_who_asks_for_any_write_waits_for_others_who_do(rig: Rig) -> None:
    assert ports(rig.send(A, rig.get(A, KEY, fragments=0))) == [STORE]
    assert ports(rig.send(B, rig.get(B, KEY, fragments=0))) == []
    assert ports(rig.send(STORE, rig.value(A, KEY))) == [A, B]


writes = st.lists(
    st.tuples(
        st.sampled_from(["probe", "get", "value", "repair"]),
        st.sampled_from(NODES),
        st.integers(0, FRAGMENTS - 1),
        st.sampled_from([CONTENT, OTHER_CONTENT]),
    ),
    max_size=60,
)


@given(steps=writes)
def test_two_writers_interleaved_never_mix(
    compiled: CompiledProgram, steps: list[tuple[str, int, int, int]]
) -> None:
    """Whatever arrives in whatever order: who asked for a write gets it alone, and at any time all that the
    pool serves of the block is of one write."""
    rig = Rig(compiled)
    rig.install(KEY)
    asked: dict[tuple[int, int], set[int]] = {}
    for what, node, fragment, content in steps:
        if what == "probe":
            request = rig.get(node, KEY, 0, fragments=0)
            asked.setdefault((node, 0), set()).add(0)
        elif what == "get":
            request = rig.get(node, KEY, fragment, content=content)
            asked.setdefault((node, fragment), set()).add(content)
        elif what == "repair":
            request = rig.get(node, KEY, fragment, content=content, flags=REPAIR)
        else:
            flags = REPAIR if node == C else 0
            for port, packet in rig.send(STORE, rig.value(node, KEY, fragment, content=content, flags=flags)):
                if port != node:
                    assert asked[port, fragment] & {0, content}
                    assert packet[KV].content == content
            continue
        for port, packet in rig.send(node, request):
            if port == node:
                assert packet[KV].content == content or what == "probe"
    contents = {reply.content for n in range(FRAGMENTS) if (reply := served(rig, n))}
    assert len(contents) <= 1


def spoil(rig: Rig) -> None:
    """The slot holds garbage under a right checksum."""
    garbage = KV(op=wire.OP_VALUE, key=KEY, fragments=FRAGMENTS, content=CONTENT) / b"garbage"
    rig.send(A, rig.get(A, KEY))
    rig.send(STORE, rig.frame(STORE, A, garbage))
    assert reply_of(rig).value == b"garbage"


def repair(rig: Rig, **fields: int) -> None:
    assert ports(rig.send(B, rig.get(B, KEY, flags=REPAIR))) == [STORE]
    assert ports(rig.send(STORE, rig.value(B, KEY, flags=REPAIR, **fields))) == [B]


def test_a_wrong_slot_is_put_right_by_who_noticed(rig: Rig) -> None:
    rig.install(KEY)
    spoil(rig)
    repair(rig)
    reply = reply_of(rig)
    assert (bytes(reply.value), reply.tag) == (value_of(KEY), TAG)


def test_a_false_report_changes_nothing(rig: Rig) -> None:
    rig.install(KEY)
    for fragment in range(FRAGMENTS):
        rig.fill(KEY, fragment)
    before = [served(rig, fragment) for fragment in range(FRAGMENTS)]
    repair(rig)
    assert [served(rig, fragment) for fragment in range(FRAGMENTS)] == before


def test_a_repair_that_brings_another_write_has_the_rest_filled_anew(rig: Rig) -> None:
    rig.install(KEY)
    for fragment in range(FRAGMENTS):
        rig.fill(KEY, fragment)
    repair(rig, content=OTHER_CONTENT)
    assert [served(rig, fragment) is not None for fragment in range(FRAGMENTS)] == [True, False, False, False]


def test_a_repair_that_nobody_asked_for_changes_nothing(rig: Rig) -> None:
    rig.install(KEY)
    rig.fill(KEY)
    forged = KV(op=wire.OP_VALUE, key=KEY, fragments=FRAGMENTS, content=CONTENT, flags=REPAIR) / b"forged"
    rig.send(OTHER_STORE, rig.frame(OTHER_STORE, B, forged))
    rig.send(B, rig.get(B, KEY, flags=REPAIR))
    rig.send(OTHER_STORE, rig.frame(OTHER_STORE, B, forged))  # not whom B asked
    assert bytes(reply_of(rig).value) == value_of(KEY)


def test_a_damaged_repair_is_not_stored(rig: Rig) -> None:
    rig.install(KEY)
    rig.fill(KEY)
    repair(rig, checksum=0xBAD)
    assert bytes(reply_of(rig).value) == value_of(KEY)


@pytest.mark.parametrize("flags", [0, wire.FLAG_FILL])
def test_a_value_that_nobody_asked_for_fills_no_slot(rig: Rig, flags: int) -> None:
    rig.install(KEY)
    rig.send(STORE, rig.value(A, KEY, flags=flags))
    assert served(rig) is None


def test_a_request_past_the_pool_is_no_hit(rig: Rig) -> None:
    rig.install(KEY)
    rig.fill(KEY)
    for fragments in (FRAGMENTS, 9, 0xFFFF):
        for flags in (0, wire.FLAG_BYPASS):
            if (flags, fragments) != (0, FRAGMENTS):
                assert served(rig, fragments=fragments, flags=flags) is None
    assert rig.hits() == 0
