"""Blocks from fragments: in any order, each once, and never more than the bound."""

from hypothesis import given
from hypothesis import strategies as st

from hostlib import wire
from hostlib.assembly import Assembly

BLOCK_BYTES = 3 * wire.VALUE_BYTES + 100
FRAGMENTS = wire.fragment_count(BLOCK_BYTES)
CONTENT = bytes(at % 251 for at in range(BLOCK_BYTES))


def message(key: int, fragment: int) -> wire.Message:
    at = fragment * wire.VALUE_BYTES
    value = CONTENT[at : at + wire.VALUE_BYTES]
    return wire.Message(wire.OP_PUT, bytes([key]) * wire.KEY_BYTES, fragment, FRAGMENTS, value=value)


@given(st.permutations(range(FRAGMENTS)), st.integers(0, FRAGMENTS - 2))
def test_a_block_is_whole_when_its_last_fragment_came(order: list[int], repeated: int) -> None:
    assembly = Assembly(BLOCK_BYTES, 2)
    for fragment in [*order[:-1], order[repeated]]:
        assert assembly.add(message(1, fragment)) is None
    assert assembly.add(message(1, order[-1])) == CONTENT
    assert len(assembly) == 0


def test_the_oldest_gives_way() -> None:
    assembly = Assembly(BLOCK_BYTES, 2)
    for key in (1, 2, 3):
        assembly.add(message(key, 0))
    assert message(1, 0).key not in assembly
    assert (len(assembly), assembly.given_up) == (2, 1)
