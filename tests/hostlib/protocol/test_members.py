from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.protocol import wire
from hostlib.protocol.errors import MalformedError
from hostlib.protocol.homes import home_of
from hostlib.protocol.members import (
    EPOCHS,
    MAX_NODES,
    REFUSED_LISTS,
    REFUSED_S,
    Member,
    Members,
    Refused,
    State,
    hello,
    is_later,
    is_later_in_message,
    next_epoch,
)

ADDRESSES = [f"10.0.0.{n}" for n in range(1, 7)]
KEYS = [bytes([n]) * 16 for n in range(200)]


@st.composite
def lists(draw: st.DrawFn) -> Members:
    numbers = draw(st.lists(st.integers(1, 255), unique=True, max_size=MAX_NODES))
    nodes = tuple(Member(n, f"10.1.{n // 16}.{n}", draw(st.sampled_from(State))) for n in numbers)
    return Members(draw(st.integers(0, 2**32 - 1)), draw(st.integers(1, wire.MAX_REPLICAS)), nodes)


@given(lists())
def test_what_is_encoded_is_decoded(members: Members) -> None:
    value = members.encode()
    assert len(value) <= wire.VALUE_BYTES
    assert Members.decode(value) == members


@given(st.binary(max_size=wire.VALUE_BYTES))
def test_anything_else_is_malformed(value: bytes) -> None:
    try:
        members = Members.decode(value)
    except MalformedError:
        return
    assert members.encode() == value


@pytest.mark.parametrize(
    "nodes",
    [
        (Member(1, "10.0.0.1"), Member(1, "10.0.0.2")),
        (Member(1, "10.0.0.1"), Member(2, "10.0.0.1")),
        (Member(0, "10.0.0.1"),),
        (Member(256, "10.0.0.1"),),
    ],
)
def test_numbers_and_addresses_are_each_nodes_own(nodes: tuple[Member, ...]) -> None:
    with pytest.raises(ValueError, match="number"):
        Members(1, 1, nodes)


def test_every_host_numbers_a_fixed_list_alike() -> None:
    assert Members.of(ADDRESSES) == Members.of(ADDRESSES[::-1])
    assert Members.of(["10.0.0.10", "10.0.0.9"]).nodes[0].address == "10.0.0.9"


def test_homes_are_the_first_in_the_keys_order_that_are_not_down() -> None:
    members = Members.of(ADDRESSES, replicas=2)
    for key in KEYS:
        order = members.order(key)
        assert order[0].address == home_of(key, ADDRESSES)
        assert members.homes(key) == order[:2]
        assert members.homes(key, 3) == order[:3]


@pytest.mark.parametrize("state", [State.DOWN, State.JOINING])
def test_a_node_that_dies_or_returns_moves_only_its_own_share(state: State) -> None:
    before = Members.of(ADDRESSES, replicas=2)
    changed = tuple(Member(m.number, m.address, state if m.number == 3 else m.state) for m in before.nodes)
    after = Members(1, 2, changed)
    for key in KEYS:
        kept = [home.number for home in before.homes(key) if home.number != 3]
        assert [home.number for home in after.homes(key)][: len(kept)] == kept or state is State.JOINING
        if state is State.JOINING:
            assert [home.number for home in after.homes(key)] == [h.number for h in before.homes(key)]
        else:
            assert 3 not in [home.number for home in after.homes(key)]


@given(st.integers(0, 2**32 - 1), st.integers(-255, 255))
def test_another_list_is_known_by_one_byte_however_far_one_is_behind(epoch: int, steps: int) -> None:
    byte = (epoch + steps) & 0xFF
    assert Members(epoch, 1, ()).is_another(byte) == (steps != 0 and byte != 0)


@pytest.mark.parametrize("than", [0, 1, 200, 255])
def test_a_list_is_later_in_messages_than_those_of_almost_half_of_256_epochs(than: int) -> None:
    later = [steps for steps in range(256) if is_later_in_message((than + steps) & 0xFF, than)]
    assert later == list(range(1, 128))


@given(st.integers(1, 2**32 - 1), st.integers(1, 1000))
def test_there_is_always_a_later_list(epoch: int, steps: int) -> None:
    later = epoch
    for _ in range(steps):
        later = next_epoch(later)
    assert is_later(later, epoch)
    assert not is_later(epoch, later)
    assert not is_later(epoch, epoch)
    assert is_later(epoch, 0)
    assert not is_later(0, epoch)
    Members(later, 1, ()).encode()


def test_no_list_of_a_controller_looks_like_one_of_a_configuration() -> None:
    """Messages carry an epoch modulo 256, and 0 is that of a configuration."""
    epochs = [0]
    while len(epochs) <= 1000:
        epochs.append(next_epoch(epochs[-1]))
    assert all(epoch & 0xFF for epoch in epochs[1:])
    assert next_epoch(EPOCHS - 257) == EPOCHS - 255
    assert next_epoch(EPOCHS - 1) == 1


def test_hello_says_which_list_one_has_and_whether_one_has_caught_up() -> None:
    message = wire.decode(wire.encode(hello(Members(0x1FE, 1, ()), caught_up=True)))
    assert (message.op, message.epoch, bool(message.flags & wire.FLAG_HELD)) == (wire.OP_HELLO, 0xFE, True)
    assert not hello(Members(0, 1, ()), caught_up=False).flags


def test_states_are_numbers_on_the_wire() -> None:
    assert {state.name: state.value for state in State} == {"UP": 0, "JOINING": 1, "DOWN": 2}


def test_an_earlier_list_is_taken_if_no_other_is_heard_for_a_while() -> None:
    assert (REFUSED_LISTS, REFUSED_S) == (3, 5.0)
    refused = Refused()
    assert not refused.takes(7, 7, 0.0)
    assert [refused.takes(5, 7, at_s) for at_s in (1.0, 2.0, 5.9, 6.0)] == [False, False, False, True]
    assert [refused.takes(5, 7, at_s) for at_s in (7.0, 12.5, 12.5)] == [False, False, True]
    assert [refused.takes(0, 7, at_s) for at_s in (20.0, 21.0, 26.0)] == [False] * 3  # no controller's


@pytest.mark.parametrize("heard", [7, 8])
def test_a_list_that_is_as_late_has_the_while_begin_anew(heard: int) -> None:
    refused = Refused()
    assert not refused.takes(5, 7, 0.0)
    assert refused.takes(heard, 7, 1.0) == (heard == 8)
    assert [refused.takes(5, 7, at_s) for at_s in (5.5, 6.0, 7.0, 10.5)] == [False, False, False, True]


def test_a_list_is_later_than_those_of_half_of_all_epochs() -> None:
    most = EPOCHS // 2 - 1
    assert is_later(7 + most, 7)
    assert not is_later(7 + most + 1, 7)
    assert is_later((EPOCHS - 7 + most) % EPOCHS, EPOCHS - 7)
