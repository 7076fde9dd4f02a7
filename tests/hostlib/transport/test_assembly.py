"""Blocks from fragments: in any order, each once, each write by itself, and never more than the bounds."""

import os
import subprocess
import sys
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.protocol import wire
from hostlib.protocol.value_size import SIZES, VARIABLE
from hostlib.transport.assembly import FRAGMENT_BYTES, Assembly, is_whole_fragment
from tests.hostlib.sealed import fragments

CONTENT = bytes(at % 251 for at in range(3 * wire.VALUE_BYTES + 100))
FRAGMENTS = 4


def messages(number: int, write: int = 1) -> list[wire.Message]:
    return fragments(wire.OP_PUT, bytes([number]) * wire.KEY_BYTES, CONTENT, write)


@given(st.permutations(range(FRAGMENTS)), st.integers(0, FRAGMENTS - 2))
def test_a_block_is_whole_when_its_last_fragment_came(order: list[int], repeated: int) -> None:
    assembly, parts = Assembly(2), messages(1)
    for fragment in [*order[:-1], order[repeated]]:
        assert assembly.add(parts[fragment]) is None
    block = assembly.add(parts[order[-1]])
    assert block is not None
    assert (block.content, block.write, block.fragments) == (CONTENT, 1, FRAGMENTS)
    assert [block.tag(at) for at in range(FRAGMENTS)] == [part.tag for part in parts]
    assert len(assembly) == 0


def test_fragments_of_two_writes_are_never_mixed() -> None:
    assembly = Assembly(4)
    for one, other in zip(messages(1, 1)[:3], messages(1, 2)[1:], strict=True):
        assert assembly.add(one) is None
        assert assembly.add(other) is None
    block = assembly.add(messages(1, 2)[0])
    assert block is not None
    assert block.write == 2


def test_fragments_of_another_length_are_not_taken() -> None:
    assembly = Assembly(4)
    for part in messages(1)[:3]:
        assembly.add(part)
    assert assembly.add(messages(1)[3]._replace(fragments=5)) is None
    assert assembly.add(messages(1)[3]) is not None


def test_the_oldest_gives_way_by_number_and_by_bytes() -> None:
    assembly = Assembly(2)
    for number in (1, 2, 3):
        assembly.add(messages(number)[0])
    assert (len(assembly), assembly.given_up) == (2, 1)
    small = Assembly(100, 3 * FRAGMENT_BYTES)
    for number in (1, 2):
        for part in messages(number)[:2]:
            small.add(part)
    assert (len(small), small.given_up) == (1, 1)


def test_what_a_tenant_completed_is_not_held_against_it() -> None:
    assembly = Assembly(4)
    for number in range(50):
        (only,) = fragments(wire.OP_PUT, bytes([number]) * wire.KEY_BYTES, b"one", 1)
        assert assembly.add(only) is not None
    assembly.add(messages(100)[0])
    others = [messages(number)[0]._replace(tenant=3) for number in range(101, 105)]
    for part in others:
        assembly.add(part)
    assert assembly.given_up == 1
    assert [assembly.add(part) for part in messages(100)[1:]][-1] is not None
    assert assembly.add(others[0]) is None


def test_a_tenant_that_floods_gives_way_to_itself() -> None:
    assembly = Assembly(4)
    quiet = [part._replace(tenant=99) for part in messages(0)]
    assembly.add(quiet[0])
    for number in range(1, 50):
        assembly.add(messages(number)[0])
    for part in quiet[1:3]:
        assert assembly.add(part) is None
    assert assembly.add(quiet[3]) is not None
    assert assembly.given_up == 46


def test_who_begins_many_writes_displaces_no_long_one_of_another_host() -> None:
    """Of the bound on writes the flood takes most, although the long write has more fragments."""
    assembly = Assembly(2)
    for part in messages(0)[:3]:
        assert assembly.add(part, "10.0.0.1") is None
    for number in range(1, 50):
        assembly.add(messages(number)[0], "10.0.0.2")
    assert assembly.add(messages(0)[3], "10.0.0.1") is not None


def test_who_sends_long_writes_displaces_no_other_host_that_begins_many() -> None:
    """Of the bound on bytes the long writes take most, although they are fewer."""
    assembly = Assembly(100, 16 * FRAGMENT_BYTES)
    for number in range(1, 4):
        assembly.add(messages(number)[0], "10.0.0.1")
    for number in range(4, 50):
        for part in messages(number)[:3]:
            assembly.add(part, "10.0.0.2")
    for number in range(1, 4):
        done = [assembly.add(part, "10.0.0.1") for part in messages(number)[1:]]
        assert done[-1] is not None


def test_a_block_said_to_be_long_takes_no_more_than_what_came_of_it() -> None:
    assembly = Assembly(1 << 20, 100 * FRAGMENT_BYTES)
    for number in range(100):
        long = messages(number)[0]._replace(fragments=wire.MAX_FRAGMENTS)
        assert assembly.add(long) is None
    assert assembly.given_up == 0


def test_only_the_last_fragment_may_be_short() -> None:
    whole = messages(1)
    assert all(map(is_whole_fragment, whole))
    assert not is_whole_fragment(whole[0]._replace(value=b"short"))
    assert not is_whole_fragment(whole[3]._replace(value=b""))


def memory_share(room_bytes: int) -> float:
    """What incomplete writes take, of the most that they may."""
    assembly, value = Assembly(1024, room_bytes), memoryview(bytearray(wire.VALUE_BYTES))
    fragments = 2 * room_bytes // wire.VALUE_BYTES // 16
    tracemalloc.start()
    for write in range(1, 17):
        for number in range(fragments):
            tag = bytes(bytearray(16))
            put = wire.Message(wire.OP_PUT, bytes(16), number, 65_000, content=write, tag=tag, value=value)
            assembly.add(put)
    return tracemalloc.get_traced_memory()[0] / room_bytes


@pytest.mark.parametrize("value_bytes", SIZES)
def test_incomplete_writes_take_no_more_memory_than_they_may_whatever_the_size_of_values(
    value_bytes: int,
) -> None:
    measures = f"from {__name__} import memory_share; print(memory_share(1 << 22))"
    environment = {**os.environ, VARIABLE: str(value_bytes), "PYTHONPATH": os.pathsep.join(sys.path)}
    told = subprocess.check_output([sys.executable, "-c", measures], env=environment, text=True)
    assert 0.5 < float(told) < 1
