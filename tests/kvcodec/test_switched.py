"""Compressed blocks through the pool's switch: streams of any length come back bit for bit."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from hostlib.client.client import Client
from hostlib.protocol.content import derivation
from hostlib.protocol.members import Members
from hostlib.protocol.seal import Seal
from hostlib.protocol.transfer import BlockRef, chain_references
from hostlib.protocol.wire import fragment_count
from hostlib.storage.storage_node import StorageNode
from hostlib.storage.store import BlockStore
from kvcodec import CODECS, decode, encode
from tests.engines.switched import SwitchedNetwork
from tests.kvcodec.blocks import CHOICES, block, layout
from tests.p4.conftest import PROGRAM, ROOMY
from tests.p4.rig import NODES, STORE, TENANT, Rig, ip, key_of
from v1model.backend import CompiledProgram
from v1model.compile import compile_p4
from workload.keys import KeySpace

SEAL = Seal(TENANT, b"a secret of sixteen bytes or more")
LAYOUT = layout(layers=2, kv_heads=2, head_dim=16)


@pytest.fixture(scope="module")
def compiled() -> CompiledProgram:
    return compile_p4(PROGRAM, defines=ROOMY)


def test_chunks_come_out_of_the_switch_as_they_went_in_whatever_stands_before_them(
    compiled: CompiledProgram,
) -> None:
    """Another node names the same chunks in another prompt, and gets the writer's streams to the bit."""
    space = KeySpace("test", name_key=b"of the tenant")
    chunks = {number: block(LAYOUT, 16, seed=number) for number in (7, 8, 9)}
    streams = {number: encode(kv, LAYOUT, "cachegen") for number, kv in chunks.items()}

    def named(order: tuple[int, ...]) -> dict[int, BlockRef]:
        keys = space.chunks((None, *order, None))
        return {number: BlockRef(key) for number, key in zip(order, filter(None, keys), strict=True)}

    async def play() -> dict[int, tuple[bytes, bool]]:
        network = SwitchedNetwork(Rig(compiled))
        StorageNode(network.port(STORE), BlockStore(1 << 24, None, derivation(SEAL)))
        members = Members.of([ip(STORE)])
        writer, reader = (Client(network.port(node), members, SEAL) for node in NODES[:2])
        slot = 0
        for number, reference in named((7, 8, 9)).items():
            await writer.put(reference, streams[number])
            fragments = fragment_count(len(streams[number]))
            network.rig.install(reference.key, slot, fragments, TENANT)
            slot += fragments
            await writer.get(reference)  # from the home; its values fill the slots on their way
        fetched = {number: await reader.get(reference) for number, reference in named((9, 7, 8)).items()}
        behind = chain_references(list(space.chain((7, 8, 9))))  # the same tokens in a chain are other blocks
        assert not (await reader.get_chain(behind)).blocks
        return {number: (bytes(one.content), one.from_pool) for number, one in fetched.items()}

    back = asyncio.run(play())
    assert back == {number: (stream, True) for number, stream in streams.items()}


def test_streams_of_every_codec_come_out_of_the_switch_as_they_went_in(compiled: CompiledProgram) -> None:
    kv = block(LAYOUT, 24)
    streams = [encode(kv, LAYOUT, name, level) for name, level in CHOICES]
    references = chain_references([key_of(f"{name} {level}") for name, level in CHOICES])

    async def play() -> list[tuple[bytes, bool]]:
        network = SwitchedNetwork(Rig(compiled))
        StorageNode(network.port(STORE), BlockStore(1 << 24, None, derivation(SEAL)))
        members = Members.of([ip(STORE)])
        writer, reader = (Client(network.port(node), members, SEAL) for node in NODES[:2])
        slot = 0
        for reference, stream in zip(references, streams, strict=True):
            await writer.put(reference, stream)
            fragments = fragment_count(len(stream))
            network.rig.install(reference.key, slot, fragments, TENANT)
            slot += fragments  # no gap between blocks, whatever their lengths
            await writer.get(reference)  # from the home; its values fill the slots on their way
        fetched = [await reader.get(reference) for reference in references]
        return [(bytes(one.content), one.from_pool) for one in fetched]

    back = asyncio.run(play())
    assert [content for content, _ in back] == streams
    assert all(from_pool for _, from_pool in back)
    assert len({fragment_count(len(stream)) for stream in streams}) > 4
    for (name, _), (content, _) in zip(CHOICES, back, strict=True):
        exact = np.array_equal(decode(content, LAYOUT), decode(encode(kv, LAYOUT, "plain"), LAYOUT))
        assert exact == (name in ("plain", "zstd")), CODECS[name].what
