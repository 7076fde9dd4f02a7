"""Both sides on the real pool: its client, UDP on the loopback interface, and a storage node."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any, cast

import pytest

from hostlib.engine import BlockingPool, PoolConfig, open_pool
from hostlib.protocol.content import derivation
from hostlib.protocol.seal import PUBLIC_SECRET, Seal
from hostlib.storage.storage_node import StorageNode
from hostlib.storage.store import BlockStore
from hostlib.transport.endpoint import UdpEndpoint
from tests.engines.vllm.engine_memory import kv_of_all
from tests.engines.vllm.engine_model import EngineModel
from tests.engines.vllm.pool_in_hand import SPACE
from tests.hostlib.loopback import own_address

PROMPT = [0, 1, 2, 1, 1, 0, 2, 2, 0, 0, 1, 2, 2, 1, 0, 0, 1, 1, 1]


@pytest.fixture
def home() -> Iterator[str]:
    """The address of a storage node that serves in another thread."""
    address, ready, stop = own_address(), threading.Event(), threading.Event()

    async def serve() -> None:
        endpoint = UdpEndpoint(address)
        node = StorageNode(endpoint, BlockStore(1 << 24, None, derivation(Seal(0, PUBLIC_SECRET))))
        ready.set()
        await asyncio.to_thread(stop.wait)
        node.close()
        endpoint.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(60)
    yield address
    stop.set()
    thread.join()


@pytest.fixture
def pools(home: str) -> Iterator[list[BlockingPool]]:
    """Those of two engines."""
    opened = []
    for _ in range(2):
        settings = {
            "address": own_address(),
            "homes": [home],
            "lookup_timeout_s": 60,
            "transfer_timeout_s": 60,
        }
        pool = open_pool(PoolConfig.from_mapping(settings), SPACE)
        assert pool.join()
        cast(Any, pool).happen = lambda: time.sleep(0.001)
        opened.append(pool)
    yield opened
    for pool in opened:
        pool.close()


def engine_on(pool: BlockingPool, **mode: Any) -> EngineModel:
    return EngineModel(cast(Any, pool), **mode)


def finish(engine: EngineModel) -> None:
    """Serve all requests, and wait until what was computed is stored."""
    engine.run(limit=20_000)
    for worker in engine.workers:
        worker.close()


def assert_right(engine: EngineModel) -> None:
    """All KV in the engine's own cache is what belongs there."""
    size = engine.cache.size
    assert engine.cache.prefixes
    for prefix, block in engine.cache.prefixes.items():
        held = [engine.memories[0].token(block.block_id, place) for place in range(size)]
        assert held == kv_of_all(prefix, 0)[-size:]


@pytest.mark.parametrize("background", [False, True])
def test_what_one_engine_stores_another_loads(pools: list[BlockingPool], background: bool) -> None:
    first = engine_on(pools[0])
    first.add("a", PROMPT)
    finish(first)
    assert pools[0].stats()["stored_objects"] == 2 * 5
    second = engine_on(pools[1], background=background, depth=2)
    second.add("b", PROMPT)
    finish(second)
    assert pools[1].stats()["loaded_objects"] == 2 * 4
    assert pools[1].stats()["failed"] == {}
    assert_right(second)


@pytest.mark.parametrize("background", [False, True])
def test_a_client_whose_thread_has_ended_does_not_end_the_engine(
    pools: list[BlockingPool], background: bool
) -> None:
    first = engine_on(pools[0])
    first.add("a", PROMPT)
    finish(first)
    second = engine_on(pools[1], background=background)
    second.workers[0]._patience_s = second.side._lookups._patience_s = 0.2
    request = second.add("b", PROMPT)
    deadline_s = time.monotonic() + 60
    while not request.blocks:  # until its look-up is answered, and its load begun
        assert time.monotonic() < deadline_s
        second.step()
    pool, ended = pools[1], threading.Event()
    second.add("c", [2, *PROMPT])
    pool._loop.call_soon_threadsafe(ended.wait)  # the thread is busy for ever
    try:
        second.run(limit=20_000)
        assert request.num_tokens > len(PROMPT)
        assert_right(second)
    finally:
        ended.set()
