"""The blocking face over UDP on the loopback interface, and the client as a package of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hostlib
from hostlib.engine import Item, KvSpace, PoolConfig, open_objects, open_pool, open_pools
from hostlib.engine.pool import Block, BlockReader
from hostlib.protocol.errors import ConfigError
from hostlib.protocol.transfer import BlockRef
from tests.hostlib.engine.loopback_homes import storage_nodes
from tests.hostlib.loopback import own_address

SPACE = KvSpace(
    name="chat", model="weights:1", layout="rows", dtype="float32", block_tokens=4, object_bytes=(4096,)
)
ROOM = Path(hostlib.__file__).parent


@pytest.fixture
def config() -> Iterator[PoolConfig]:
    """Of a node whose home serves in another thread."""
    with storage_nodes(1) as (home,):
        yield PoolConfig.from_mapping(
            {"address": own_address(), "homes": [home.address], "lookup_timeout_s": 60}
        )


def test_arrays_go_in_and_come_out_by_the_buffer_protocol(config: PoolConfig) -> None:
    pool = open_pool(config, SPACE)
    try:
        assert pool.join()
        keys = list(SPACE.block_keys(pool.seal, range(32)))
        blocks = pool.blocks.references(keys, 0)
        stored = np.random.default_rng(1).standard_normal((8, 1024), dtype=np.float32)
        assert pool.exists(keys) == 0
        assert all(pool.store([Item(block, row.data) for block, row in zip(blocks, stored, strict=True)]))
        assert pool.exists(keys) == 8
        loaded = np.zeros_like(stored)
        assert all(pool.load([Item(block, row.data) for block, row in zip(blocks, loaded, strict=True)]))
        assert np.array_equal(stored, loaded)
        assert pool.stats()["loaded_bytes"] == stored.nbytes
    finally:
        pool.close()


def test_a_buffer_that_can_not_be_used_is_refused_before_anything_moves(config: PoolConfig) -> None:
    pool = open_pool(config, SPACE)
    try:
        assert pool.join()
        blocks = pool.blocks.references(list(SPACE.block_keys(pool.seal, range(8))), 0)
        across = np.zeros((1024, 2), dtype=np.float32)[:, 1]
        by_columns = np.asfortranarray(np.zeros((32, 32), dtype=np.float32))
        fine = Item(blocks[0], bytes(4096))
        for buffer in (across.data, by_columns.data):
            with pytest.raises(ValueError, match=r"is not contiguous.*Copy it into one that is"):
                pool.store([fine, Item(blocks[1], buffer)])
            with pytest.raises(ValueError, match="is not contiguous"):
                pool.load([Item(blocks[1], buffer)])
        with pytest.raises(ValueError, match="can't be written to, as a load has to"):
            pool.load([fine])
        assert pool.stats()["stored_objects"] == 0
    finally:
        pool.close()


def test_an_object_longer_than_a_block_goes_in_and_comes_out(config: PoolConfig) -> None:
    """An LMCache chunk of Llama-3.1-8B has 512 bytes more than the longest block."""
    pool = open_objects(replace(config, silence_s=60.0, transfer_timeout_s=600.0))
    try:
        chunk = BlockRef(bytes(range(16)))
        stored = np.random.default_rng(1).integers(0, 256, 33_554_432, dtype=np.uint8)
        assert pool.store([Item(chunk, stored.data)]) == [True]
        assert pool.begin_present([chunk]).result() == [True]
        loaded = np.zeros_like(stored)
        assert pool.load([Item(chunk, loaded.data)]) == [True]
        assert np.array_equal(stored, loaded)
    finally:
        pool.close()


def test_a_process_shares_a_pool_and_the_last_to_close_ends_it(config: PoolConfig) -> None:
    one, other = open_pool(config, SPACE), open_pool(config, SPACE)
    assert one is other
    with pytest.raises(ConfigError, match="open in this process with other settings"):
        open_pool(config, replace(SPACE, dtype="bfloat16"))
    one.close()
    assert open_pools() == [other]
    assert other.join()
    other.close()
    assert open_pools() == []
    again = open_pool(config, SPACE)  # the address is free again
    again.close()


def test_more_blocks_than_may_wait_are_stored_one_after_the_other_as_room_comes(config: PoolConfig) -> None:
    """What has no room is not copied: so much memory is never taken."""
    size, most = SPACE.block_bytes, 3
    pool = open_pool(replace(config, waiting_bytes=most * size), SPACE)
    copied = largest = 0

    def reader(block: BlockRef) -> BlockReader:
        def read() -> list[Item]:
            nonlocal copied, largest
            copied += 1
            largest = max(largest, copied - pool.blocks.stats.stored_objects)
            return [Item(block, block.key * (size // len(block.key)))]

        return read

    try:
        keys = list(SPACE.block_keys(pool.seal, range(4 * 50)))
        blocks = pool.blocks.references(keys, 0)
        storing = pool.begin_store_blocks([reader(block) for block in blocks])
        assert storing.done() or pool.waiting_bytes > 0
        assert storing.result() == 50
        assert pool.waiting_bytes == 0
        assert copied == 50
        assert largest <= most + 1
        assert pool.stats()["not_stored"] == 0
        assert pool.exists(keys) == 50
    finally:
        pool.close()


def test_what_the_engine_takes_back_before_its_turn_is_not_stored_and_that_is_said_once(
    config: PoolConfig, caplog: pytest.LogCaptureFixture
) -> None:
    pool = open_pool(replace(config, waiting_bytes=SPACE.block_bytes), SPACE)
    try:
        keys = list(SPACE.block_keys(pool.seal, range(16)))
        (first, *_) = pool.blocks.references(keys, 0)
        blocks: list[Block] = [[Item(first, bytes(4096))], lambda: None, lambda: None]
        for _ in range(2):
            assert pool.begin_store_blocks(blocks).result() == 1
        assert pool.stats()["not_stored"] == 2
        assert pool.exists(keys) == 1
    finally:
        pool.close()
    assert caplog.text.count("pool setting 'waiting_bytes' is 4096") == 1


def test_a_block_that_can_not_be_read_gives_its_room_back(config: PoolConfig) -> None:
    pool = open_pool(replace(config, waiting_bytes=2 * SPACE.block_bytes), SPACE)
    try:
        (block,) = pool.blocks.references(list(SPACE.block_keys(pool.seal, range(4))), 0)

        def fails() -> list[Item]:
            raise OSError("the engine's memory is gone")

        with pytest.raises(OSError, match="is gone"):
            pool.begin_store_blocks([[Item(block, bytes(4096))], fails])
        two = [[Item(block, bytes(4096))]]
        assert [pool.begin_store_blocks(two).result() for _ in range(3)] == [1, 1, 1]
    finally:
        pool.close()


def test_the_client_needs_the_standard_library_only() -> None:
    """In a fresh interpreter: nothing of what only the project's environment has may be imported."""
    program = """
import sys
import hostlib.engine
roots = {name.partition(".")[0] for name in sys.modules if not name.startswith("_")}
print(sorted(roots - set(sys.stdlib_module_names) - {"hostlib"}))
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOM.parent)}
    ran = subprocess.run(
        [sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    assert ran.stdout.strip() == "[]"


def test_counters_that_can_not_be_written_do_not_keep_the_pool_open(
    config: PoolConfig, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    threads = threading.active_count()
    open_pool(replace(config, report=str(tmp_path / "nowhere" / "report.json")), SPACE).close()
    assert "The pool's counters are not written" in caplog.text
    assert threading.active_count() == threads
    open_pool(config, SPACE).close()
