"""Nodes that blend, in virtual time: chunks come from wherever they are, whatever stood before them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from typing import Any

import pytest

from hostlib.client.client import Client
from hostlib.model.blending import Blending
from hostlib.model.tiers import LocalTiers
from hostlib.node.blender import Blender, BlendGate, blend_all
from hostlib.node.coder import Coder
from hostlib.node.inference import InferenceNode
from hostlib.node.request_record import RequestRecord
from hostlib.node.worker import WorkerConfig
from hostlib.protocol.content import derivation
from hostlib.protocol.errors import ConfigError
from hostlib.protocol.members import Members
from hostlib.protocol.wire import fragment_count
from hostlib.storage.storage_node import StorageNode
from hostlib.storage.store import BlockStore
from tests.asynchronous import in_virtual_time
from tests.hostlib.network import MemoryNetwork
from tests.hostlib.node.test_inference import BLOCK_BYTES, COST, HOME, KEY_SPACE, SCALE, came_from
from tests.hostlib.sealed import SEAL, place
from workload.compression import BlockSizes
from workload.trace import Request

BLENDING = Blending(COST, 0.15, SCALE.duration_s)


def asked(arrival_s: float, first: int, order: list[int]) -> Request:
    """A system prompt, passages in this order, a question; ids of the chain from `first` on."""
    ids = range(first, first + len(order) + 1)
    tokens = 512 * (len(order) + 1) + 40
    return Request(arrival_s, tokens, 10, (0, *ids), chunks=(None, *order, None))


class Cluster:
    """Nodes that blend, and one storage node."""

    def __init__(self, nodes: int, gate: BlendGate = blend_all) -> None:
        network = MemoryNetwork()
        self.store = BlockStore(1 << 22, None, derivation(SEAL))
        self.storage = StorageNode(network.port(HOME), self.store)
        self.nodes = [self._node(network, number, gate) for number in range(nodes)]

    def _node(self, network: MemoryNetwork, number: int, gate: BlendGate) -> InferenceNode:
        client = Client(network.port(f"10.0.0.{number + 1}"), Members.of([HOME]), SEAL)
        tiers = LocalTiers[bytes](100, 100)
        coder = Coder(BlockSizes(fragment_count(BLOCK_BYTES)))
        blender = Blender(BLENDING, client, tiers, KEY_SPACE, coder, gate)
        return InferenceNode(client, tiers, KEY_SPACE, COST, SCALE, coder=coder, blender=blender)

    async def play(self, *requests: Request) -> list[RequestRecord]:
        """Each by a node of its own."""
        now_s = asyncio.get_running_loop().time()
        await asyncio.gather(
            *(node.play([one], now_s) for node, one in zip(self.nodes, requests, strict=True))
        )
        return [record for node in self.nodes for record in node.records]


@in_virtual_time
async def test_chunks_are_computed_once_stored_and_blended_by_others_in_another_order() -> None:
    cluster = Cluster(2)
    first, second = await cluster.play(asked(0, 1, [7, 8, 9]), asked(5, 11, [9, 7, 8]))
    assert came_from(first) == {"recomputed": 5}
    assert came_from(second) == {"remote": 4, "recomputed": 1}  # the system prompt is a prefix
    assert first.blend is not None
    assert second.blend is not None
    assert (first.blend.chunks, first.blend.alone, first.blend.tokens) == (3, 3, 0)
    assert (second.blend.chunks, second.blend.alone) == (3, 0)
    assert second.blend.tokens == round(0.15 * 3 * 512)
    for chunk in (7, 8, 9):
        assert cluster.store.get(place(KEY_SPACE.chunk_key((chunk,)))) is not None
    system, *behind = KEY_SPACE.chain([0, 1, 2, 3, 4])
    assert cluster.store.get(place(system)) is not None
    assert not any(cluster.store.get(place(key)) for key in behind)  # blended KV is not exact


@in_virtual_time
async def test_loading_overlaps_with_computing_on_a_gpu_that_is_idle() -> None:
    _, second = await Cluster(2).play(asked(0, 1, [7, 8, 9]), asked(5, 11, [9, 7, 8]))
    assert second.blend is not None
    assert second.ttft_s is not None
    assert second.prefill_s < second.blend.work_s
    end_s = second.fetch_s + max(second.blend.load_s, second.blend.work_s)
    assert end_s <= second.ttft_s + 1e-9 < end_s + COST.prefill_s(512)
    assert second.prefill_s == pytest.approx(second.blend.work_s - second.blend.load_s)


@in_virtual_time
async def test_the_same_prompt_again_takes_its_chunks_from_the_nodes_memory() -> None:
    cluster = Cluster(1)
    now_s = asyncio.get_running_loop().time()
    await cluster.nodes[0].play([asked(0, 1, [7, 8]), asked(5, 11, [8, 7])], now_s)
    assert came_from(cluster.nodes[0].records[1]) == {"gpu": 3, "recomputed": 1}


@in_virtual_time
async def test_a_gate_that_closes_leaves_all_to_be_computed_exactly() -> None:
    cluster = Cluster(2, lambda plan, missing, gpu_wait_s: None)
    first, second = await cluster.play(asked(0, 1, [7, 8]), asked(5, 1, [7, 8]))
    assert first.blend is None
    assert second.blend is None
    assert came_from(second) == {"remote": 4}  # the whole chain, as without blending


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"fetch": False}, "blend takes chunks that are made up and fetched"),
        ({"kv_file": "kv"}, "blend takes chunks that are made up and fetched"),
        ({"blend_share": 1.5}, "blend_share must be from 0 to 1, not 1.5"),
        ({"codec": "cachegen", "level": "adaptive"}, "blend does not go with level 'adaptive'"),
    ],
)
def test_a_worker_that_cannot_blend_is_refused(given: dict[str, Any], complaint: str) -> None:
    right: dict[str, Any]
    right = {"address": "10.0.0.1", "result": "r", "homes": [HOME], "trace": "t", "gpu_blocks": 1}
    right |= {"dram_blocks": 1, "blend": True, "model": "llama3-70b", "ttft_slo_s": 1.0, "link_bit_s": 1e6}
    WorkerConfig(**right)
    with pytest.raises(ConfigError, match=complaint):
        WorkerConfig(**right | given)


@in_virtual_time
async def test_the_record_of_a_request_that_was_blended_is_json() -> None:
    (one,) = await Cluster(1).play(asked(0, 1, [7, 8]))
    assert json.loads(json.dumps(one.report())) == asdict(one)
    assert one.report()["blend"]["alone"] == 2
