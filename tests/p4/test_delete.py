"""A deleted write is not served from the moment that the storage node says so, whatever is in flight."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller import p4_constants as p4
from hostlib.protocol import wire
from hostlib.tools.scapy_layer import KV
from tests.p4.rig import (
    CONTENT,
    CONTROLLER_IP,
    FRAGMENTS,
    NODES,
    OTHER_CONTENT,
    OTHER_STORE,
    STORE,
    TENANT,
    Rig,
    key_of,
    ports,
)
from v1model.backend import CompiledProgram

KEY = key_of("block")
DELETER, READER, OTHER = NODES
ALL = range(FRAGMENTS)
REPAIR = wire.FLAG_BYPASS | wire.FLAG_REPAIR
HINT = wire.FLAG_BYPASS | wire.FLAG_HINT


def served(rig: Rig, fragment: int = 0, **fields: int) -> wire.Message | None:
    """What the pool answers; None if it does not."""
    return rig.ask(READER, KEY, fragment, **{"flags": wire.FLAG_RETRY, **fields})


def fill(rig: Rig, **fields: int) -> None:
    for fragment in ALL:
        rig.fill(KEY, fragment, **fields)


def delete(rig: Rig, home: int = STORE, **fields: int) -> None:
    """A storage node answers the deleter."""
    assert ports(rig.send(home, rig.deleted(DELETER, KEY, home=home, **fields))) == [DELETER]


def test_what_a_late_acknowledgement_would_make_count_stays_forgotten(rig: Rig) -> None:
    """The network held it back, as the write was put and deleted."""
    rig.install(KEY)
    for fragment in ALL:
        rig.send(OTHER, rig.put(OTHER, KEY, (STORE,), fragment))
    delete(rig)
    rig.send(STORE, rig.put_ack(OTHER, KEY))
    assert [served(rig, fragment) for fragment in ALL] == [None] * FRAGMENTS
    for fragment in ALL:
        rig.send(OTHER, rig.put(OTHER, KEY, (STORE,), fragment, content=OTHER_CONTENT))
    rig.send(STORE, rig.put_ack(OTHER, KEY, content=OTHER_CONTENT))
    assert all(served(rig, fragment) for fragment in ALL)


def test_a_delete_reaches_its_home(rig: Rig) -> None:
    message = KV(op=wire.OP_DELETE, key=KEY, fragments=FRAGMENTS, content=CONTENT, tenant=TENANT)
    assert ports(rig.send(DELETER, rig.frame(DELETER, STORE, message))) == [STORE]
    assert rig.outcomes() == {"message": 1}


def test_a_lifetime_reaches_its_home_and_changes_nothing_in_the_pool(rig: Rig) -> None:
    rig.install(KEY)
    fill(rig)
    said = KV(op=wire.OP_STAT, key=KEY, fragments=FRAGMENTS, content=CONTENT, tenant=TENANT, flags=HINT,
              generation=60, tag=bytes(range(16)))  # fmt: skip
    ((port, reached),) = rig.send(DELETER, rig.frame(DELETER, STORE, said))
    assert port == STORE
    assert (reached[KV].generation, reached[KV].tag) == (60, bytes(range(16)))
    assert served(rig) is not None


def test_a_hint_reaches_the_controller_and_its_answer_who_asked(rig: Rig) -> None:
    rig.install(KEY)
    fill(rig)
    hint = KV(op=wire.OP_STAT, key=KEY, fragments=0, tenant=TENANT, flags=HINT, backlog_ms=1, recompute_ms=60)
    assert rig.send(DELETER, rig.frame(DELETER, CONTROLLER_IP, hint)) == []
    ((_, heard),) = rig.to_cpu
    assert (heard[KV].op, heard[KV].flags, heard[KV].recompute_ms) == (wire.OP_STAT, HINT, 60)
    answer = KV(op=wire.OP_FOUND, key=KEY, fragments=1, tenant=TENANT, flags=HINT, recompute_ms=1)
    ((port, told),) = rig.send(p4.CPU_PORT, rig.frame(p4.CPU_PORT, DELETER, answer))
    assert (port, told[KV].op, told[KV].recompute_ms) == (DELETER, wire.OP_FOUND, 1)
    assert served(rig) is not None


def test_questions_and_hints_of_foreign_tenants_do_not_reach_the_controller(rig: Rig) -> None:
    for fields in ({"flags": wire.FLAG_BYPASS}, {"flags": HINT, "tenant": TENANT + 1}):
        question = KV(op=wire.OP_STAT, key=KEY, fragments=0, **fields)
        assert rig.send(DELETER, rig.frame(DELETER, CONTROLLER_IP, question)) == []
    assert not rig.to_cpu
    assert rig.outcomes() == {"no_route": 1, "foreign_tenant": 1}


def test_a_delete_that_names_a_foreign_tenant_goes_nowhere(rig: Rig) -> None:
    message = KV(op=wire.OP_DELETE, key=KEY, fragments=FRAGMENTS, content=CONTENT, tenant=TENANT + 1)
    assert rig.send(DELETER, rig.frame(DELETER, STORE, message)) == []
    assert rig.outcomes() == {"foreign_tenant": 1}


def test_a_delete_changes_nothing_in_the_pool_before_it_was_found_right(rig: Rig) -> None:
    """Whoever may send as the tenant may send one; a storage node checks its proof."""
    rig.install(KEY)
    fill(rig)
    message = KV(op=wire.OP_DELETE, key=KEY, fragments=FRAGMENTS, content=CONTENT)
    rig.send(DELETER, rig.frame(DELETER, STORE, message))
    assert all(served(rig, fragment) for fragment in ALL)


def test_a_node_says_of_no_block_that_it_is_deleted(rig: Rig) -> None:
    rig.install(KEY)
    fill(rig)
    assert rig.send(OTHER, rig.frame(OTHER, DELETER, rig.deleted(DELETER, KEY)[KV])) == []
    assert rig.outcomes()["forbidden"] == 1
    assert served(rig) is not None


def test_from_the_answer_on_no_fragment_is_served(rig: Rig) -> None:
    rig.install(KEY)
    fill(rig)
    delete(rig)
    assert [served(rig, fragment) for fragment in ALL] == [None] * FRAGMENTS


def test_a_stat_of_it_goes_to_its_home(rig: Rig) -> None:
    rig.install(KEY)
    fill(rig)
    delete(rig)
    stat = KV(op=wire.OP_STAT, key=KEY, fragments=0)
    assert ports(rig.send(READER, rig.frame(READER, STORE, stat))) == [STORE]


def test_another_write_stays(rig: Rig) -> None:
    rig.install(KEY)
    fill(rig)
    delete(rig, content=OTHER_CONTENT)
    assert all(served(rig, fragment) for fragment in ALL)


def test_what_is_stored_anew_fills_and_is_served(rig: Rig) -> None:
    rig.install(KEY)
    fill(rig)
    delete(rig)
    fill(rig, content=OTHER_CONTENT)
    replies = [served(rig, fragment, content=0) for fragment in ALL]
    assert [reply and reply.content for reply in replies] == [OTHER_CONTENT] * FRAGMENTS


def test_what_is_put_anew_fills_once_a_home_has_made_it(rig: Rig) -> None:
    rig.install(KEY)
    fill(rig)
    delete(rig)
    for fragment in ALL:
        rig.send(OTHER, rig.put(OTHER, KEY, [STORE], fragment, content=OTHER_CONTENT))
    assert served(rig, content=0) is None
    rig.send(STORE, rig.put_ack(OTHER, KEY, content=OTHER_CONTENT))
    replies = [served(rig, fragment, content=0) for fragment in ALL]
    assert [reply and reply.content for reply in replies] == [OTHER_CONTENT] * FRAGMENTS


@pytest.mark.parametrize("flags", [0, wire.FLAG_FILL, REPAIR], ids=["get", "fill", "repair"])
@pytest.mark.parametrize("filled_before", [False, True])
def test_a_value_that_was_under_way_fills_nothing(rig: Rig, flags: int, filled_before: bool) -> None:
    rig.install(KEY)
    if filled_before:
        fill(rig)
    if flags == wire.FLAG_FILL:
        rig.send(510, rig.control(wire.OP_FILL, KEY))
    else:
        rig.send(READER, rig.get(READER, KEY, flags=flags or wire.FLAG_RETRY))
    delete(rig)
    to = CONTROLLER_IP if flags == wire.FLAG_FILL else READER
    for fragment in ALL if flags == wire.FLAG_FILL else (0,):
        rig.send(STORE, rig.value(to, KEY, fragment, flags=flags))
    assert [served(rig, fragment, content=0) for fragment in ALL] == [None] * FRAGMENTS


def test_who_asks_afterwards_does_not_wait_for_what_was_asked_before(rig: Rig) -> None:
    rig.send(READER, rig.get(READER, KEY, fragments=0))
    assert ports(rig.send(OTHER, rig.get(OTHER, KEY, fragments=0))) == []  # merged: it began before
    delete(rig)
    assert ports(rig.send(OTHER, rig.get(OTHER, KEY, fragments=0))) == [STORE]
    assert ports(rig.send(STORE, rig.not_found(OTHER, KEY, fragments=0))) == [OTHER]


def test_the_late_answer_goes_to_its_addressee_alone(rig: Rig) -> None:
    rig.send(READER, rig.get(READER, KEY))
    delete(rig)
    rig.send(OTHER, rig.get(OTHER, KEY))
    assert ports(rig.send(OTHER_STORE, rig.value(READER, KEY, home=OTHER_STORE))) == [READER]


def test_a_put_that_was_under_way_does_not_count_afterwards(rig: Rig) -> None:
    rig.install(KEY)
    fill(rig)
    delete(rig)
    for fragment in ALL:
        rig.send(OTHER, rig.put(OTHER, KEY, [STORE], fragment))
    rig.send(STORE, rig.put_ack(OTHER, KEY))
    assert served(rig, content=0) is None


def test_the_controller_has_a_switch_forget_a_write_that_no_answer_passed(rig: Rig) -> None:
    rig.install(KEY)
    fill(rig)
    rig.send(READER, rig.get(READER, KEY, flags=REPAIR))
    message = KV(op=wire.OP_DELETED, key=KEY, fragments=FRAGMENTS, content=CONTENT, sequence=7)
    assert rig.send(p4.CPU_PORT, rig.frame(p4.CPU_PORT, "0.0.0.0", message)) == []
    ((_, back),) = rig.to_cpu
    assert (back[KV].op, back[KV].content, back[KV].sequence) == (wire.OP_DELETED, CONTENT, 7)
    rig.send(STORE, rig.value(READER, KEY, flags=REPAIR))
    assert [served(rig, fragment) for fragment in ALL] == [None] * FRAGMENTS


@pytest.mark.parametrize("content", [0, OTHER_CONTENT])
def test_whatever_write_a_pool_holds_the_controller_has_it_forgotten(rig: Rig, content: int) -> None:
    """A node that deletes does not learn of another write, of any length, in a pool off its way."""
    rig.install(KEY)
    fill(rig)
    message = KV(op=wire.OP_DELETED, key=KEY, fragments=1, content=content, sequence=7)
    rig.send(p4.CPU_PORT, rig.frame(p4.CPU_PORT, "0.0.0.0", message))
    ((_, back),) = rig.to_cpu
    assert (back[KV].op, back[KV].content, back[KV].sequence) == (wire.OP_DELETED, content, 7)
    assert [served(rig, fragment) for fragment in ALL] == [None] * FRAGMENTS


def test_the_controllers_answer_reaches_who_asked(rig: Rig) -> None:
    flags = wire.FLAG_HELD
    message = KV(op=wire.OP_DELETED, key=KEY, fragments=FRAGMENTS, content=CONTENT, flags=flags)
    assert ports(rig.send(p4.CPU_PORT, rig.frame(p4.CPU_PORT, DELETER, message))) == [DELETER]
    assert not rig.to_cpu


@pytest.mark.parametrize("sender", [DELETER, STORE])
def test_a_node_or_a_storage_node_asks_the_controller(rig: Rig, sender: int) -> None:
    """The latter when a block's lifetime is over."""
    message = KV(op=wire.OP_DELETE, key=KEY, fragments=FRAGMENTS, content=CONTENT, tenant=TENANT)
    assert rig.send(sender, rig.frame(sender, CONTROLLER_IP, message)) == []
    assert [packet[KV].op for _, packet in rig.to_cpu] == [wire.OP_DELETE]


HOMES = (STORE, OTHER_STORE)
WRITES = (CONTENT, OTHER_CONTENT)
steps = st.lists(
    st.tuples(
        st.sampled_from(["ask", "answer", "make", "delete", "install", "remove", "repair"]),
        st.integers(0, FRAGMENTS - 1),
        st.sampled_from(WRITES),
        st.sampled_from(HOMES),
    ),
    max_size=60,
)


@given(steps=steps)
def test_in_whatever_order_no_read_that_begins_after_a_deletion_begins_with_it(
    compiled: CompiledProgram, steps: list[tuple[str, int, int, int]]
) -> None:
    """Two homes. Their answers, made of what they hold when they are asked, come as late as they like."""
    rig = Rig(compiled)
    rig.install(KEY)
    held: dict[int, int] = {}
    under_way: list[tuple[int, int, int, int]] = []
    deleted: set[int] = set()
    installed = True
    for what, fragment, content, home in steps:
        if what == "make" and home not in held and content not in deleted:
            held[home] = content
        elif what in ("ask", "repair"):
            flags = REPAIR if what == "repair" else 0
            sent = rig.send(OTHER, rig.get(OTHER, KEY, fragment, home=home, flags=flags))
            if ports(sent) == [home] and home in held:
                under_way.append((home, fragment, held[home], flags))
        elif what == "answer" and under_way:
            asked, at, write, flags = under_way.pop(fragment % len(under_way))
            rig.send(asked, rig.value(OTHER, KEY, at, home=asked, content=write, flags=flags))
        elif what == "delete":
            for one in HOMES:
                if held.get(one) == content:
                    del held[one]
                rig.send(one, rig.deleted(DELETER, KEY, home=one, content=content))
            deleted.add(content)
        elif what == "remove" and installed:
            rig.remove(KEY)
            installed = False
        elif what == "install" and not installed:
            rig.install(KEY)
            installed = True
        first = rig.ask(READER, KEY, 0, content=0, fragments=0, flags=wire.FLAG_RETRY)
        assert first is None or first.content not in deleted
