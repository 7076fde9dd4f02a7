"""When blocks are coded, in virtual time."""

from __future__ import annotations

import asyncio

from hostlib.node.coder import Coder
from hostlib.protocol.transfer import FetchedBlock, FetchTimes
from tests.asynchronous import in_virtual_time
from workload.compression import BlockSizes

SIZES = BlockSizes(4)


def arrived(number: int, done_s: float) -> FetchedBlock:
    return FetchedBlock(bytes([number] * 16), b"", 4, 0, 0, FetchTimes(0, 0, 0, 0, done_s, "home"))


async def until(time_s: float) -> float:
    now_s = asyncio.get_running_loop().time()
    await asyncio.sleep(time_s - now_s)
    return time_s


@in_virtual_time
async def test_decoding_overlaps_with_the_transfer_of_what_comes_later() -> None:
    loop = asyncio.get_running_loop()
    start_s = loop.time()
    coder = Coder(SIZES, decode_s=1.0)
    await until(start_s + 10)
    blocks = [arrived(number, start_s + 10 - 2 * number) for number in range(5)]
    assert abs(await coder.decode(blocks) - 1.0) < 1e-6
    assert abs(loop.time() - start_s - 11) < 1e-6
    assert coder.stats.decoded == 5


@in_virtual_time
async def test_blocks_that_come_at_once_are_decoded_one_after_the_other() -> None:
    loop = asyncio.get_running_loop()
    coder, now_s = Coder(SIZES, decode_s=1.0), loop.time()
    waiting = [asyncio.create_task(coder.decode([arrived(number, now_s)])) for number in range(3)]
    await asyncio.sleep(0)
    assert abs(coder.decoding_s() - 3.0) < 1e-6
    assert [round(wait, 6) for wait in await asyncio.gather(*waiting)] == [1, 2, 3]
    assert coder.decoding_s() == 0


@in_virtual_time
async def test_two_requests_that_waited_for_one_fetch_have_it_decoded_once() -> None:
    coder, now_s = Coder(SIZES, decode_s=1.0), asyncio.get_running_loop().time()
    block = arrived(1, now_s)
    waits_s = await asyncio.gather(*(coder.decode([block]) for _ in range(2)))
    assert waits_s == [1.0, 1.0]
    assert coder.stats.decoded == 1


@in_virtual_time
async def test_encoding_takes_turns_and_holds_up_no_decoding() -> None:
    loop = asyncio.get_running_loop()
    coder, start_s = Coder(SIZES, encode_s=2.0, decode_s=1.0), loop.time()
    encoding = [asyncio.create_task(coder.encode()) for _ in range(3)]
    await asyncio.sleep(0)
    await coder.decode([arrived(1, start_s)])
    assert abs(loop.time() - start_s - 1) < 1e-6
    await asyncio.gather(*encoding)
    assert abs(loop.time() - start_s - 6) < 1e-6
    assert coder.stats.encoded == 3


@in_virtual_time
async def test_what_is_not_coded_takes_no_time() -> None:
    loop = asyncio.get_running_loop()
    coder, start_s = Coder(SIZES), loop.time()
    await coder.encode()
    assert await coder.decode([arrived(1, start_s)]) == 0.0
    assert loop.time() == start_s
    assert coder.stored(bytes(16)) == [(bytes(16), 4 * 512)]
