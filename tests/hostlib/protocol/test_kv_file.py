"""Files of real KV, and nodes whose blocks hold it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.client.client import Client
from hostlib.model.tiers import LocalTiers
from hostlib.node.inference import InferenceNode
from hostlib.protocol.content import derivation
from hostlib.protocol.errors import ConfigError
from hostlib.protocol.kv_file import KvFile, write_header
from hostlib.protocol.members import Members
from hostlib.storage.storage_node import StorageNode
from hostlib.storage.store import BlockStore
from tests.asynchronous import in_virtual_time
from tests.hostlib.network import MemoryNetwork
from tests.hostlib.sealed import SEAL, place
from workload.cost import make_cost_model
from workload.keys import KeySpace
from workload.scale import ScaleModel
from workload.trace import Request

HOME = "10.0.0.101"
COST, SCALE, KEY_SPACE = make_cost_model(), ScaleModel(sigma=40_000), KeySpace()
BLOCK_BYTES = SCALE.block_bytes(COST.block_bytes)
KEYS = list(KEY_SPACE.chain([1, 2, 3]))
REQUEST = Request(0.0, 512 * 3, 10, (1, 2, 3))


def written(path: Path, blocks: dict[bytes, bytes], block_bytes: int) -> Path:
    with path.open("wb") as file:
        write_header(file, blocks, block_bytes)
        for content in blocks.values():
            file.write(content)
    return path


@given(st.dictionaries(st.binary(min_size=16, max_size=16), st.binary(min_size=8, max_size=8)))
def test_every_block_is_found_again(
    tmp_path_factory: pytest.TempPathFactory, blocks: dict[bytes, bytes]
) -> None:
    file = KvFile(written(tmp_path_factory.mktemp("kv") / "kv", blocks, 8))
    assert len(file) == len(blocks)
    assert all(file(key, 8) == content for key, content in blocks.items())
    file.close()


def test_what_is_not_there_is_an_error_that_names_it(tmp_path: Path) -> None:
    file = KvFile(written(tmp_path / "kv", {KEYS[0]: b"12345678"}, 8))
    with pytest.raises(ConfigError, match=KEYS[1].hex()):
        file(KEYS[1], 8)
    with pytest.raises(ConfigError, match="of 16 bytes"):
        file(KEYS[0], 16)


@pytest.mark.parametrize("size", [0, 7, 24, 60])
def test_half_a_file_is_refused(tmp_path: Path, size: int) -> None:
    path = written(tmp_path / "kv", dict.fromkeys(KEYS, b"12345678"), 8)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ConfigError, match=str(path)):
        KvFile(path)


def kv(path: Path, salt: bytes) -> KvFile:
    return KvFile(written(path, {key: (key + salt) * (BLOCK_BYTES // 32) for key in KEYS}, BLOCK_BYTES))


@pytest.mark.parametrize(("salt", "different"), [(b"the same content", 0), (b"another content.", 3)])
@in_virtual_time
async def test_fetched_blocks_are_compared_with_the_real_kv(
    tmp_path: Path, salt: bytes, different: int
) -> None:
    """One node computes and stores; the other fetches and compares with its own file."""
    network = MemoryNetwork()
    store = BlockStore(1 << 20, None, derivation(SEAL))
    StorageNode(network.port(HOME), store)
    files = [kv(tmp_path / "one", b"the same content"), kv(tmp_path / "other", salt)]
    nodes = []
    for number, file in enumerate(files):
        client = Client(network.port(f"10.0.0.{number + 1}"), Members.of([HOME]), SEAL)
        nodes.append(InferenceNode(client, LocalTiers[bytes](9, 9), KEY_SPACE, COST, SCALE, real_kv=file))
    for node in nodes:
        await node.play([REQUEST], asyncio.get_running_loop().time())
    held = store.get(place(KEYS[2]))
    assert held is not None
    assert held.content == files[0](KEYS[2], BLOCK_BYTES)
    assert (nodes[0].stats.compared, nodes[1].stats.compared) == (0, 3)
    assert nodes[1].stats.different == different
