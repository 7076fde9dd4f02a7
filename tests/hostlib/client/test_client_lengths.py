"""Blocks of any length, and the buffers that they are read into."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hostlib.protocol import wire
from hostlib.protocol.block import Place
from hostlib.protocol.content import block_content, sealed_block
from hostlib.protocol.errors import (
    BlockTooLongError,
)
from tests.asynchronous import in_virtual_time
from tests.hostlib.client_world import (
    BLOCK_BYTES,
    FRAGMENTS,
    World,
    keys,
    refs,
)
from tests.hostlib.network import Faults
from tests.hostlib.sealed import SEAL, TENANT
from tests.slow import rest_slow

pytestmark = pytest.mark.usefixtures("either_core")


@pytest.mark.parametrize("length", [1, 511, 512, 513, 100_000])
@in_virtual_time
async def test_blocks_of_any_length_come_back_as_they_were_put(length: int) -> None:
    world = World()
    content = bytes(at % 251 for at in range(length))
    await world.client.put(refs(1)[0], content)
    block = await world.client.get(refs(1)[0])
    assert (block.content, block.fragments) == (content, wire.fragment_count(length))


@pytest.mark.parametrize("either_core", rest_slow(["compiled"], ["python", "compiled"]), indirect=True)
@in_virtual_time
async def test_the_longest_block_there_is_comes_back_as_it_was_put() -> None:
    world = World()
    content = b"end" + bytes(wire.MAX_BLOCK_BYTES - 6) + b"end"
    place, block = Place(TENANT, keys(1)[0]), sealed_block(SEAL, keys(1)[0], 5, content)
    world.stores[world.homes(keys(1)[0])[0]].put(place, block, durable=False)
    world.network.log = Forgotten()  # a log of it would be long
    fetched = await world.client.get(refs(1)[0])
    assert fetched.fragments == wire.MAX_FRAGMENTS
    assert fetched.content == content


class Forgotten(list[tuple[str, str, bytes]]):
    """A log that keeps nothing."""

    def append(self, entry: tuple[str, str, bytes]) -> None:
        """Not even this."""


@in_virtual_time
async def test_a_block_is_read_into_the_callers_buffer() -> None:
    world = World(held=1)
    expected = block_content(keys(1)[0], BLOCK_BYTES)
    buffer = bytearray(b"\xff" * (BLOCK_BYTES + 50))
    block = await world.client.get_into(refs(1)[0], memoryview(buffer))
    assert isinstance(block.content, memoryview)
    assert block.content.obj is buffer
    assert bytes(block.content) == expected
    assert buffer[BLOCK_BYTES:] == b"\xff" * 50


@pytest.mark.parametrize("others", [0, 1])
@pytest.mark.parametrize("of", [("b",), ("B", (2, BLOCK_BYTES // 2)), ("c", (BLOCK_BYTES, 1))])
@in_virtual_time
async def test_a_block_is_read_into_bytes_of_any_kind_and_shape(of: tuple[Any, ...], others: int) -> None:
    world = World(held=1)
    buffer = bytearray(BLOCK_BYTES)
    gets = [asyncio.create_task(world.client.get(refs(1)[0])) for _ in range(others)]
    await asyncio.sleep(0)
    block = await world.client.get_into(refs(1)[0], memoryview(buffer).cast(*of))
    assert bytes(block.content) == buffer == block_content(keys(1)[0], BLOCK_BYTES)
    await asyncio.gather(*gets)


@in_virtual_time
async def test_a_block_that_somebody_fetches_already_is_copied_into_the_buffer() -> None:
    world = World(held=1)
    buffers = [memoryview(bytearray(BLOCK_BYTES)) for _ in range(3)]
    await asyncio.gather(
        world.client.get(refs(1)[0]), *(world.client.get_into(refs(1)[0], b) for b in buffers)
    )
    assert all(bytes(buffer) == block_content(keys(1)[0], BLOCK_BYTES) for buffer in buffers)
    assert len(world.sent_by_client(wire.OP_GET)) == FRAGMENTS


@pytest.mark.parametrize("room", [0, 512, BLOCK_BYTES - 1])
@in_virtual_time
async def test_a_block_that_does_not_fit_is_an_error(room: int) -> None:
    world = World(held=1)
    with pytest.raises(BlockTooLongError, match=f"buffer of {room}"):
        await world.client.get_into(refs(1)[0], memoryview(bytearray(room)))
    with pytest.raises(ValueError, match="writable"):
        await world.client.get_into(refs(1)[0], memoryview(b"read-only"))


@in_virtual_time
async def test_a_buffer_is_the_callers_again_when_the_call_is_cancelled_though_others_wait() -> None:
    world = World(held=1, faults=Faults(min_delay_s=0.01, max_delay_s=0.03))
    for wait_s in (0.0, 0.015, 0.045, 0.06, 0.07):
        buffer = bytearray(BLOCK_BYTES)
        mine = asyncio.create_task(world.client.get_into(refs(1)[0], memoryview(buffer)))
        await asyncio.sleep(0)
        others = [asyncio.create_task(world.client.get(refs(1)[0])) for _ in range(2)]
        await asyncio.sleep(wait_s)
        mine.cancel()
        await asyncio.gather(mine, return_exceptions=True)
        buffer[:] = bytes(BLOCK_BYTES)
        for other in others:
            assert (await other).content == block_content(keys(1)[0], BLOCK_BYTES)
        assert not any(buffer)


@in_virtual_time
async def test_what_is_read_beside_a_callers_buffer_does_not_change_with_that() -> None:
    world = World(held=1)
    buffer = bytearray(BLOCK_BYTES)
    mine = asyncio.create_task(world.client.get_into(refs(1)[0], memoryview(buffer)))
    await asyncio.sleep(0)
    other, chain = await asyncio.gather(world.client.get(refs(1)[0]), world.client.get_chain(refs(1)))
    block = await mine
    assert isinstance(block.content, memoryview)
    assert block.content.obj is buffer
    expected = block_content(keys(1)[0], BLOCK_BYTES)
    assert buffer == expected
    buffer[:] = bytes(BLOCK_BYTES)
    assert other.content == chain.blocks[0].content == expected


@pytest.mark.parametrize("wait_s", [0.0, 0.0025])
@in_virtual_time
async def test_a_buffer_that_is_too_short_is_no_error_for_others(wait_s: float) -> None:
    world = World(held=1)
    short = memoryview(bytearray(3 * 512 + 1))
    mine = asyncio.create_task(world.client.get_into(refs(1)[0], short))
    await asyncio.sleep(wait_s)
    assert (await world.client.get(refs(1)[0])).content == block_content(keys(1)[0], BLOCK_BYTES)
    with pytest.raises(BlockTooLongError):
        await mine
