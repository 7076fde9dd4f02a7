"""The pending table: requests in flight merge, the reply reaches all who wait, nothing wedges."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from hostlib.protocol import wire
from hostlib.tools.scapy_layer import KV
from tests.p4.rig import (
    CONTROLLER_IP,
    FRAGMENTS,
    NODES,
    STORE,
    TIMEOUT_US,
    Rig,
    checksums_right,
    ip,
    key_of,
    mac,
    ports,
    value_of,
)
from v1model.backend import CompiledProgram

KEY = key_of("block")
A, B, C = NODES


def test_the_first_request_is_forwarded_and_the_next_wait(rig: Rig) -> None:
    assert ports(rig.send(A, rig.get(A, KEY))) == [STORE]
    assert ports(rig.send(B, rig.get(B, KEY))) == []
    assert ports(rig.send(C, rig.get(C, KEY))) == []
    assert rig.outcomes() == {"claimed": 1, "merged": 2}


def test_the_reply_is_addressed_to_each_who_waits(rig: Rig) -> None:
    for node in (A, C):
        rig.send(node, rig.get(node, KEY, sequence=node))
    sent = rig.send(STORE, rig.value(A, KEY, sequence=A))
    assert ports(sent) == [A, C]
    for port, reply in sent:
        assert (reply[Ether].dst, reply[IP].dst) == (mac(port), ip(port))
        assert reply[KV].flags == wire.FLAG_MERGED
        assert bytes(wire.decode(bytes(reply[UDP].payload)).value) == value_of(KEY)
        assert checksums_right(reply)
    assert rig.outcomes()["fanned_out"] == 1


def test_a_reply_to_one_is_plain_unicast(rig: Rig) -> None:
    rig.send(A, rig.get(A, KEY))
    ((port, reply),) = rig.send(STORE, rig.value(A, KEY))
    assert (port, reply[KV].flags) == (A, 0)
    assert rig.outcomes() == {"claimed": 1, "reply": 1}


def test_not_found_reaches_all_who_wait(rig: Rig) -> None:
    rig.send(A, rig.get(A, KEY))
    rig.send(B, rig.get(B, KEY))
    missing = rig.frame(STORE, A, KV(op=wire.OP_NOT_FOUND, key=KEY, fragments=FRAGMENTS))
    assert ports(rig.send(STORE, missing)) == [A, B]


def test_a_reply_that_meets_no_waiter_goes_where_it_is_addressed(rig: Rig) -> None:
    assert ports(rig.send(STORE, rig.value(B, KEY))) == [B]


def test_a_second_answer_goes_to_its_addressee_only(rig: Rig) -> None:
    rig.send(A, rig.get(A, KEY))
    rig.send(B, rig.get(B, KEY))
    rig.send(STORE, rig.value(A, KEY))
    assert ports(rig.send(STORE, rig.value(A, KEY))) == [A]


def test_a_reply_to_another_question_is_not_what_a_node_waits_for(rig: Rig) -> None:
    """Another node's, or an earlier one of its own: it may be of before a deletion, or a write."""
    rig.install(KEY)
    rig.send(B, rig.get(B, KEY, sequence=7))
    rig.send(A, rig.get(A, KEY, sequence=3))
    for addressee, sequence in ((C, 7), (B, 6)):
        assert ports(rig.send(STORE, rig.value(addressee, KEY, sequence=sequence))) == [addressee]
        assert ports(rig.send(STORE, rig.not_found(addressee, KEY, sequence=sequence))) == [addressee]
    assert rig.ask(C, KEY, flags=wire.FLAG_RETRY, sequence=9) is None
    assert ports(rig.send(STORE, rig.value(B, KEY, sequence=7))) == [B]
    assert ports(rig.send(STORE, rig.value(C, KEY, sequence=9))) == [A, B, C]
    assert rig.ask(C, KEY) is not None


def test_a_retry_is_forwarded_and_keeps_the_waiters(rig: Rig) -> None:
    rig.send(A, rig.get(A, KEY))
    rig.send(B, rig.get(B, KEY))
    assert ports(rig.send(A, rig.get(A, KEY, flags=wire.FLAG_RETRY))) == [STORE]
    assert ports(rig.send(STORE, rig.value(A, KEY))) == [A, B]
    assert rig.outcomes()["retried"] == 1


def test_a_claim_that_is_too_old_lets_the_next_request_through(rig: Rig) -> None:
    rig.send(A, rig.get(A, KEY))
    assert ports(rig.send(B, rig.get(B, KEY), after_us=TIMEOUT_US - 1)) == []
    assert ports(rig.send(C, rig.get(C, KEY), after_us=1)) == [STORE]
    assert ports(rig.send(STORE, rig.value(C, KEY))) == [A, B, C]


def colliding(key: bytes, name: str = "other") -> bytes:
    """Another key with the same pending cells: they are taken from the first two times 32 bits."""
    return key[:8] + key_of(name)[8:]


def colliding_in_one_way(key: bytes, way: int) -> bytes:
    """Another key that shares only the first (0) or the second (1) cell."""
    other = bytearray(key_of("other"))
    other[4 * way : 4 * way + 4] = key[4 * way : 4 * way + 4]
    assert other[3] % 32 != key[3] % 32 or way == 0
    assert other[7] % 32 != key[7] % 32 or way == 1
    return bytes(other)


def test_cells_in_use_by_other_fragments_mean_no_merging(rig: Rig) -> None:
    other = colliding(KEY)
    rig.send(A, rig.get(A, KEY))
    rig.send(A, rig.get(A, colliding(KEY, "another")))
    assert ports(rig.send(B, rig.get(B, other))) == [STORE]
    assert ports(rig.send(C, rig.get(C, other))) == [STORE]
    assert rig.outcomes() == {"claimed": 2, "unmerged": 2}
    assert ports(rig.send(STORE, rig.value(B, other))) == [B]
    assert ports(rig.send(STORE, rig.value(A, KEY))) == [A]


@pytest.mark.parametrize("way", [0, 1])
def test_a_cell_in_use_leaves_the_other(rig: Rig, way: int) -> None:
    other = colliding_in_one_way(KEY, way)
    rig.send(A, rig.get(A, KEY))
    rig.send(B, rig.get(B, other))
    assert ports(rig.send(C, rig.get(C, other))) == []
    assert ports(rig.send(C, rig.get(C, KEY))) == []
    assert rig.outcomes() == {"claimed": 2, "merged": 2}
    assert ports(rig.send(STORE, rig.value(A, KEY))) == [A, C]
    assert ports(rig.send(STORE, rig.value(B, other))) == [B, C]


def test_a_claim_in_the_second_cell_is_found_when_the_first_is_free_again(rig: Rig) -> None:
    other = colliding_in_one_way(KEY, 0)
    rig.send(A, rig.get(A, KEY))
    rig.send(B, rig.get(B, other))  # its first cell is KEY's
    assert ports(rig.send(STORE, rig.value(A, KEY))) == [A]
    assert ports(rig.send(C, rig.get(C, other))) == []
    assert ports(rig.send(STORE, rig.value(B, other))) == [B, C]


def test_a_stale_cell_can_be_taken_over(rig: Rig) -> None:
    other = colliding(KEY)
    rig.send(A, rig.get(A, KEY))
    rig.send(A, rig.get(A, colliding(KEY, "another")))
    assert ports(rig.send(B, rig.get(B, other), after_us=TIMEOUT_US)) == [STORE]
    assert ports(rig.send(C, rig.get(C, other))) == []
    assert ports(rig.send(STORE, rig.value(B, other))) == [B, C]
    assert ports(rig.send(STORE, rig.value(A, KEY))) == [A]


def test_fragments_of_a_block_wait_independently(rig: Rig) -> None:
    for fragment in range(FRAGMENTS):
        assert ports(rig.send(A, rig.get(A, KEY, fragment))) == [STORE]
    rig.send(B, rig.get(B, KEY, 2))
    assert ports(rig.send(STORE, rig.value(A, KEY, 1))) == [A]
    assert ports(rig.send(STORE, rig.value(A, KEY, 2))) == [A, B]


def test_merging_can_be_switched_off(rig: Rig) -> None:
    rig.merging(False)
    assert ports(rig.send(A, rig.get(A, KEY))) == [STORE]
    assert ports(rig.send(B, rig.get(B, KEY))) == [STORE]
    assert ports(rig.send(STORE, rig.value(B, KEY))) == [B]


def test_a_bypass_neither_waits_nor_takes_the_waiters(rig: Rig) -> None:
    rig.send(A, rig.get(A, KEY))
    assert ports(rig.send(B, rig.get(B, KEY, flags=wire.FLAG_BYPASS))) == [STORE]
    assert ports(rig.send(STORE, rig.value(B, KEY, flags=wire.FLAG_BYPASS))) == [B]
    assert ports(rig.send(STORE, rig.value(A, KEY))) == [A]


@pytest.mark.parametrize("op", [wire.OP_VALUE, wire.OP_NOT_FOUND])
def test_the_answer_to_a_fill_leaves_the_waiters_to_their_own(rig: Rig, op: int) -> None:
    rig.send(A, rig.get(A, KEY))
    rig.send(B, rig.get(B, KEY))
    payload = KV(op=op, key=KEY, fragments=FRAGMENTS, flags=wire.FLAG_FILL)
    value = value_of(KEY) if op == wire.OP_VALUE else b""
    assert rig.send(STORE, rig.frame(STORE, CONTROLLER_IP, payload / value)) == []
    assert len(rig.to_cpu) == (op == wire.OP_NOT_FOUND)
    assert ports(rig.send(STORE, rig.value(A, KEY))) == [A, B]


steps = st.lists(
    st.tuples(
        st.sampled_from(["get", "retry", "value", "lost"]),
        st.sampled_from(NODES),
        st.sampled_from(
            [
                KEY,
                colliding(KEY),
                colliding(KEY, "another"),
                colliding_in_one_way(KEY, 0),
                colliding_in_one_way(KEY, 1),
            ]
        ),
        st.integers(0, TIMEOUT_US // 2),
    ),
    max_size=40,
)


@given(steps=steps)
def test_who_asks_is_answered_whatever_happens(
    compiled: CompiledProgram, steps: list[tuple[str, int, bytes, int]]
) -> None:
    """Model: each forwarded GET is answered or lost. Whoever asked since the last answer to a fragment and
    was absorbed gets the next answer to it, or its retry is forwarded."""
    rig = Rig(compiled)
    absorbed: dict[bytes, set[int]] = {}
    for what, node, key, wait_us in steps:
        if what in ("get", "retry"):
            flags = wire.FLAG_RETRY if what == "retry" else 0
            sent = ports(rig.send(node, rig.get(node, key, flags=flags), after_us=wait_us))
            assert sent in ([], [STORE])
            assert sent == [STORE] or what == "get"
            absorbed.setdefault(key, set()).update([node] if not sent else [])
        elif what == "value":
            sent = ports(rig.send(STORE, rig.value(node, key), after_us=wait_us))
            assert node in sent
            assert STORE not in sent
            absorbed.pop(key, None)
    for key, nodes in absorbed.items():
        for node in nodes:
            assert ports(rig.send(node, rig.get(node, key, flags=wire.FLAG_RETRY))) == [STORE]
            assert node in ports(rig.send(STORE, rig.value(node, key)))
