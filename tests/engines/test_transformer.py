"""KV cache through the pool's switch: equal to the bit, also in another process, which goes on with the same
logits."""

from __future__ import annotations

import asyncio
import multiprocessing
from multiprocessing.connection import Connection

import numpy as np
import pytest

from hostlib.client.client import Client
from hostlib.engine import Item, KvPool, PoolConfig
from hostlib.protocol.content import derivation
from hostlib.protocol.members import Members
from hostlib.protocol.seal import Seal
from hostlib.protocol.wire import fragment_count
from hostlib.storage.storage_node import StorageNode
from hostlib.storage.store import BlockStore
from hostlib.transport.transport import Transport
from tests.engines.switched import PipedPort, SwitchedNetwork, attach
from tests.engines.transformer import BLOCK_TOKENS, KV_SHAPE, SPACE, Decoder
from tests.p4.conftest import PROGRAM, ROOMY
from tests.p4.rig import NODES, STORE, TENANT, Rig, ip
from v1model.backend import CompiledProgram
from v1model.compile import compile_p4

SEAL = Seal(TENANT, b"a secret of sixteen bytes or more")
MEMBERS = Members.of([ip(STORE)])
TOKENS = [int(token) for token in np.random.default_rng(3).integers(0, 97, 5 * BLOCK_TOKENS)]
CONTINUED = [5, 3, 1]
FRAGMENTS = fragment_count(SPACE.block_bytes)


@pytest.fixture(scope="module")
def compiled() -> CompiledProgram:
    return compile_p4(PROGRAM, defines=ROOMY)


def pool_at(transport: Transport, node: int) -> KvPool:
    settings = {"address": ip(node), "homes": [ip(STORE)], "lookup_timeout_s": 30, "transfer_timeout_s": 60}
    return KvPool(Client(transport, MEMBERS, SEAL), PoolConfig.from_mapping(settings), SEAL, SPACE)


def network_of(compiled: CompiledProgram) -> SwitchedNetwork:
    network = SwitchedNetwork(Rig(compiled))
    StorageNode(network.port(STORE), BlockStore(1 << 24, None, derivation(SEAL)))
    return network


def computed() -> tuple[list[np.ndarray], np.ndarray]:
    """The KV of the prompt's blocks; the logits behind what it is continued with."""
    decoder = Decoder()
    for start in range(0, len(TOKENS), BLOCK_TOKENS):
        decoder.compute(TOKENS[start : start + BLOCK_TOKENS])
    blocks = [decoder.block(number) for number in range(len(TOKENS) // BLOCK_TOKENS)]
    return blocks, decoder.compute(CONTINUED)


async def fetch(pool: KvPool) -> np.ndarray:
    """All blocks of the prompt that the pool has, shape (blocks, *KV_SHAPE)."""
    keys = list(SPACE.block_keys(SEAL, TOKENS))
    blocks = np.zeros((await pool.exists(keys), *KV_SHAPE), np.float32)
    items = [Item(block, to.data) for block, to in zip(pool.references(keys, 0), blocks, strict=False)]
    assert all(await pool.load(items))
    return blocks


def continue_elsewhere(pipe: Connection) -> None:
    """The other process: it knows the prompt and the weights' seed, and has no KV."""

    async def play() -> tuple[bytes, dict[str, object]]:
        pool = pool_at(PipedPort(pipe), NODES[1])
        decoder = Decoder()
        for block in await fetch(pool):
            decoder.adopt(block)
        assert decoder.read == len(TOKENS)
        return decoder.compute(CONTINUED).tobytes(), pool.stats.report()

    pipe.send(("result", asyncio.run(play())))


def test_another_process_continues_with_the_same_logits(compiled: CompiledProgram) -> None:
    """The blocks it loads were stored by this one, and come out of the switch's slots."""
    kept, expected = computed()

    async def play() -> tuple[bytes, dict[str, int], np.ndarray]:
        network = network_of(compiled)
        mine = pool_at(network.port(NODES[0]), NODES[0])
        keys = list(SPACE.block_keys(SEAL, TOKENS))
        items = [[Item(r, b.data)] for r, b in zip(mine.references(keys, 0), kept, strict=True)]
        assert await mine.store_blocks(items) == len(keys)
        for number, key in enumerate(keys):
            network.rig.install(key, number * FRAGMENTS, FRAGMENTS, TENANT)
        back = await fetch(mine)  # from the home; its values fill the slots on their way

        ours, theirs = multiprocessing.get_context("spawn").Pipe()
        other = multiprocessing.get_context("spawn").Process(target=continue_elsewhere, args=(theirs,))
        other.start()
        try:
            theirs.close()
            said = asyncio.get_running_loop().create_future()
            attach(network, NODES[1], ours, said)
            logits, stats = await said
        finally:
            asyncio.get_running_loop().remove_reader(ours.fileno())
            other.join(30)
            other.kill()
        return logits, stats, back

    logits, stats, back = asyncio.run(play())
    assert back.tobytes() == np.stack(kept).tobytes()
    assert logits == expected.tobytes()
    assert stats["pool_bytes"] == stats["loaded_bytes"] == back.nbytes


def test_logits_tell_damaged_blocks_apart() -> None:
    """What the comparison is worth: one bit of one number of the KV changes them."""
    kept, expected = computed()
    other = Decoder()
    for number, block in enumerate(kept):
        damaged = block.copy()
        if number == 2:
            damaged.view(np.uint32)[0, 0, 3, 0, 0] ^= 1 << 22
        other.adopt(damaged)
    assert other.compute(CONTINUED).tobytes() != expected.tobytes()
