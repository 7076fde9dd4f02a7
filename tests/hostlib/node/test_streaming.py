"""Streams of inference nodes in virtual time: what is stored, at which level it comes, what is computed."""

from __future__ import annotations

import asyncio

import pytest

from hostlib.client.client import Client
from hostlib.model.streamer import Rung
from hostlib.model.tiers import LocalTiers
from hostlib.node.coder import Coder
from hostlib.node.inference import InferenceNode
from hostlib.node.request_record import RequestRecord
from hostlib.node.streaming import Streaming
from hostlib.protocol.content import block_content, derivation
from hostlib.protocol.members import Members
from hostlib.protocol.wire import VALUE_FRAME_BYTES
from hostlib.storage.storage_node import StorageNode
from hostlib.storage.store import BlockStore
from tests.asynchronous import in_virtual_time
from tests.hostlib.network import MemoryNetwork
from tests.hostlib.sealed import SEAL, place
from workload.cost import make_cost_model
from workload.keys import KeySpace
from workload.levels import find_ladder, level_key
from workload.scale import ScaleModel
from workload.trace import Request

HOME = "10.0.0.101"
COST = make_cost_model("llama3-70b")
SCALE = ScaleModel(sigma=40_000)
KEY_SPACE = KeySpace()
LADDER = find_ladder("cachegen", 8, 2.0)
BLOCKS = range(10)
LINK_BIT_S = 8e6


class Cluster:
    """A node that computes and stores, one that streams what it stored, and their home."""

    def __init__(self, target_s: float, link_bit_s: float = LINK_BIT_S, decode_s: float = 0.0) -> None:
        self.network = MemoryNetwork()
        self.store = BlockStore(1 << 20, None, derivation(SEAL))
        self.storage = StorageNode(self.network.port(HOME), self.store)
        self.nodes = []
        rungs = [
            Rung(level, sizes.mean_fragments * VALUE_FRAME_BYTES, decode_s, 0.01)
            for (_, level), sizes in zip(LADDER.numbers, LADDER.levels, strict=True)
        ]
        for number in (1, 2):
            client = Client(self.network.port(f"10.0.0.{number}"), Members.of([HOME]), SEAL)
            coder = Coder(LADDER)
            streaming = Streaming(client, coder, rungs, target_s, link_bit_s)
            tiers = LocalTiers[bytes](100, 100)
            self.nodes.append(
                InferenceNode(client, tiers, KEY_SPACE, COST, SCALE, coder=coder, streaming=streaming)
            )

    async def play(self, *blocks: int) -> RequestRecord:
        """The first node computes and stores the blocks, the second is then asked for them."""
        for node in self.nodes:
            await node.play([Request(0.0, 512 * len(blocks), 10, blocks)], asyncio.get_running_loop().time())
        (record,) = self.nodes[1].records
        return record


def came_from(record: RequestRecord) -> dict[str, int]:
    return {source: count for source, count in record.sources.items() if count}


@in_virtual_time
async def test_a_new_block_is_stored_at_every_level_with_that_levels_length() -> None:
    cluster = Cluster(target_s=100.0)
    await cluster.play(*BLOCKS)
    for key in KEY_SPACE.chain(BLOCKS):
        assert cluster.store.get(place(key)) is None
        for stored, fragments in LADDER.stored(key):
            block = cluster.store.get(place(stored))
            assert block is not None
            assert block.content == block_content(stored, 512 * fragments)


@in_virtual_time
async def test_with_time_enough_a_chain_comes_at_the_best_level() -> None:
    record = await Cluster(target_s=100.0).play(*BLOCKS)
    assert came_from(record) == {"remote": 10}
    assert record.levels == {"1": 10}
    assert record.fetch_ended_by is None
    assert sum(record.waits_s.values()) == pytest.approx(record.fetch_s)


@in_virtual_time
async def test_where_nothing_can_come_in_time_the_chain_is_computed() -> None:
    record = await Cluster(target_s=1e-3, link_bit_s=1.0).play(*BLOCKS)
    assert came_from(record) == {"recomputed": 10}
    assert record.levels == {"text": 10}
    assert record.prefill_s == pytest.approx(SCALE.duration_s(COST.prefill_s(5120)))


@in_virtual_time
async def test_a_level_is_chosen_by_the_time_that_decoding_takes_too() -> None:
    record = await Cluster(target_s=20.0, decode_s=1.0).play(*BLOCKS)
    assert record.levels == {"1": 10}
    assert 9.0 < record.fetch_s + record.decode_s <= 10.1
    assert record.decode_s > 8.0  # decoding goes on while chunks come, and after the last
    assert (record.ttft_s or 0.0) < 20.0


@in_virtual_time
async def test_a_stream_ends_where_a_block_is_nowhere() -> None:
    cluster = Cluster(target_s=100.0)
    lost: list[bytes] = []
    cluster.nodes[1].on_lost = lost.append
    await cluster.nodes[0].play([Request(0.0, 512 * 4, 10, (0, 1, 2, 3))], asyncio.get_running_loop().time())
    await cluster.nodes[1].play(
        [Request(0.0, 512 * 8, 10, tuple(range(8)))], asyncio.get_running_loop().time()
    )
    (record,) = cluster.nodes[1].records
    keys = list(KEY_SPACE.chain(range(8)))
    assert came_from(record) == {"remote": 4, "recomputed": 4}
    assert record.levels == {"1": 4}
    assert record.fetch_ended_by == "BlockNotFoundError"
    assert lost == [keys[4]]
    assert cluster.store.get(place(level_key(keys[7], 5))) is not None
