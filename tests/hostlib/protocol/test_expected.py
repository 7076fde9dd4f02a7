"""What a node tells the controller of blocks that it is going to put."""

from __future__ import annotations

import pytest

from hostlib.client.client_options import ClientOptions
from hostlib.protocol import wire
from hostlib.protocol.errors import MalformedError
from hostlib.protocol.expected import ENTRIES, MAX_TOLD, ExpectedBlock, expectation, read_expected
from hostlib.protocol.transfer import BlockRef
from tests.asynchronous import in_virtual_time
from tests.hostlib.sealed import TENANT
from tests.hostlib.world import FRAGMENTS, World, key

CONTROLLER = "10.255.0.1"


def block(number: int) -> BlockRef:
    return BlockRef(key(number), number, 9, 0xABCD, 77)


def test_blocks_are_told_in_order_so_many_in_a_message() -> None:
    blocks = [(block(number), FRAGMENTS) for number in range(2 * ENTRIES + 3)]
    messages = [wire.decode(message) for message in expectation(TENANT, blocks, 5)]
    assert {(message.op, message.tenant, message.epoch) for message in messages} == {
        (wire.OP_EXPECT, TENANT, 5)
    }
    read = [read_expected(message.value) for message in messages]
    assert [len(one) for one in read] == [ENTRIES, ENTRIES, 3]
    assert [one for page in read for one in page] == [
        ExpectedBlock(FRAGMENTS, number, 9, 77, 0xABCD, key(number)) for number in range(len(blocks))
    ]


def test_of_a_long_chain_its_beginning_is_told() -> None:
    blocks = ((block(number), FRAGMENTS) for number in range(MAX_TOLD + 50))
    messages = [wire.decode(message) for message in expectation(TENANT, blocks, 0)]
    assert sum(len(read_expected(message.value)) for message in messages) == MAX_TOLD


@pytest.mark.parametrize("value", [bytes(27), bytes(28)])
def test_what_is_no_such_list_is_refused(value: bytes) -> None:
    with pytest.raises(MalformedError):
        read_expected(value)


@in_virtual_time
async def test_without_a_controller_nobody_is_told() -> None:
    for controller, told in ((None, 0), (CONTROLLER, 1)):
        world = World(options=ClientOptions(controller=controller))
        world.client.expect([(block(1), FRAGMENTS)])
        assert len(world.sent("10.0.0.1", wire.OP_EXPECT)) == told


def test_what_no_field_holds_is_told_as_the_most_that_it_does() -> None:
    (message,) = expectation(TENANT, [(block(1)._replace(recompute_ms=70_000), FRAGMENTS)], 0)
    assert read_expected(wire.decode(message).value)[0].recompute_ms == 0xFFFF
