"""Inference nodes in virtual time: where blocks come from, what it costs, and what is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from hostlib.client.client import Client
from hostlib.client.client_options import ClientOptions
from hostlib.model.gate import Admitted
from hostlib.model.tiers import LocalTiers
from hostlib.node.coder import Coder
from hostlib.node.inference import FetchGate, InferenceNode, InferenceOptions, fetch_all, fetch_none
from hostlib.node.request_record import RequestRecord
from hostlib.protocol import wire
from hostlib.protocol.content import block_content, derivation
from hostlib.protocol.expected import ExpectedBlock, read_expected
from hostlib.protocol.members import Members
from hostlib.protocol.transfer import BlockRef
from hostlib.protocol.wire import fingerprint, fragment_count
from hostlib.storage.storage_node import StorageNode
from hostlib.storage.store import BlockStore
from tests.asynchronous import in_virtual_time
from tests.hostlib.network import MemoryNetwork
from tests.hostlib.sealed import SEAL, place
from workload.compression import BlockSizes, Compression
from workload.cost import make_cost_model
from workload.keys import KeySpace
from workload.scale import ScaleModel
from workload.trace import Request

HOME = "10.0.0.101"
CONTROLLER = "10.255.0.1"
COST = make_cost_model()
SCALE = ScaleModel(sigma=40_000)
KEY_SPACE = KeySpace()
BLOCK_BYTES = SCALE.block_bytes(COST.block_bytes)
PREFILL_S = COST.prefill_s(4 * 512)


def request(arrival_s: float, *blocks: int) -> Request:
    return Request(arrival_s, 512 * len(blocks), 10, blocks)


class Cluster:
    """Some inference nodes and one storage node."""

    def __init__(
        self,
        nodes: int = 1,
        gpu_blocks: int = 100,
        gate: FetchGate = fetch_all,
        options: InferenceOptions | None = None,
        coder: Coder | None = None,
        controller: str | None = None,
    ) -> None:
        self.network = MemoryNetwork()
        self.store = BlockStore(1 << 20, None, derivation(SEAL))
        self.storage = StorageNode(self.network.port(HOME), self.store)
        self.clients: list[Client] = []
        self.nodes: list[InferenceNode] = []
        for number in range(nodes):
            port, asked = self.network.port(f"10.0.0.{number + 1}"), ClientOptions(controller=controller)
            client = Client(port, Members.of([HOME]), SEAL, asked)
            tiers = LocalTiers[bytes](gpu_blocks, 100)
            self.clients.append(client)
            self.nodes.append(
                InferenceNode(client, tiers, KEY_SPACE, COST, SCALE, gate, options, coder=coder)
            )

    def told(self) -> list[list[ExpectedBlock]]:
        """What the controller was told, message by message."""
        messages = [wire.decode(data) for _, to, data in self.network.log if to == CONTROLLER]
        return [read_expected(message.value) for message in messages if message.op == wire.OP_EXPECT]

    async def play(self, *shares: Sequence[Request]) -> list[RequestRecord]:
        now_s = asyncio.get_running_loop().time()
        await asyncio.gather(
            *(node.play(share, now_s) for node, share in zip(self.nodes, shares, strict=True))
        )
        return [record for node in self.nodes for record in node.records]


def came_from(record: RequestRecord) -> dict[str, int]:
    return {source: count for source, count in record.sources.items() if count}


@in_virtual_time
async def test_new_blocks_are_computed_and_stored_at_their_home() -> None:
    cluster = Cluster()
    (record,) = await cluster.play([request(0, 1, 2, 3, 4)])
    assert came_from(record) == {"recomputed": 4}
    assert record.fetch_ended_by == "BlockNotFoundError"
    assert record.prefill_s == pytest.approx(PREFILL_S)
    assert record.ttft_s == pytest.approx(PREFILL_S + record.fetch_s)
    assert record.end_s == pytest.approx((record.ttft_s or 0) + COST.decode_s(10, 4 * 512))
    for key in KEY_SPACE.chain([1, 2, 3, 4]):
        block = cluster.store.get(place(key))
        assert block is not None
        assert block.content == block_content(key, BLOCK_BYTES)


@in_virtual_time
async def test_the_controller_is_told_of_new_blocks_when_they_begin_to_be_computed() -> None:
    options = InferenceOptions(record_blocks=True)
    cluster = Cluster(nodes=2, options=options, controller=CONTROLLER)
    first, second = await cluster.play([request(0, 1, 2)], [request(5, 1, 2, 3)])
    keys = list(KEY_SPACE.chain([1, 2, 3]))
    blocks, others = cluster.told()
    assert [[block.key for block in one] for one in (blocks, others)] == [keys[:2], keys[2:]]
    fragments = fragment_count(BLOCK_BYTES)
    assert [(block.depth, block.chain_blocks, block.fragments) for block in blocks] == [
        (0, 2, fragments),
        (1, 2, fragments),
    ]
    assert blocks[1].parent == fingerprint(keys[0])
    assert others[0].recompute_ms == round(1000 * COST.block_prefill_s(2))
    for record, depths in ((first, [0, 1]), (second, [2])):
        assert record.expected == depths
        assert record.ttft_s is not None
        assert record.expected_s == pytest.approx(record.arrival_s + record.ttft_s - record.prefill_s)


@pytest.mark.parametrize("options", [InferenceOptions(expects=False), InferenceOptions()])
@in_virtual_time
async def test_nobody_is_told_where_that_is_not_wanted_or_there_is_no_controller(
    options: InferenceOptions,
) -> None:
    cluster = Cluster(options=options, controller=None if options.expects else CONTROLLER)
    await cluster.play([request(0, 1, 2)])
    assert not cluster.told()


@in_virtual_time
async def test_another_node_fetches_what_was_stored_and_computes_the_rest() -> None:
    cluster = Cluster(nodes=2)
    _, record = await cluster.play([request(0, 1, 2, 3)], [request(5, 1, 2, 3, 9)])
    assert came_from(record) == {"remote": 3, "recomputed": 1}
    assert record.prefill_s == pytest.approx(COST.prefill_s(512, 3 * 512))
    assert record.fetch_s > 0
    assert record.ttft_s == pytest.approx(record.prefill_s + record.fetch_s)
    assert cluster.clients[1].stats.blocks_put == 1


@in_virtual_time
async def test_coded_blocks_have_their_own_lengths_and_take_time_to_decode() -> None:
    sizes = BlockSizes(8, Compression("halves", 0, (0.3, 0.5), 1.0, 1.0))
    cluster = Cluster(nodes=2, coder=Coder(sizes, encode_s=0.1, decode_s=0.5))
    _, record = await cluster.play([request(0, *range(10))], [request(5, *range(10))])
    assert came_from(record) == {"remote": 10}
    assert 4.5 < record.decode_s <= 5.0  # the first begins while the others are on their way
    assert record.ttft_s == pytest.approx(record.fetch_s + record.decode_s + record.prefill_s)
    stored = [cluster.store.get(place(key)) for key in KEY_SPACE.chain(range(10))]
    lengths = [len(block.content) // 512 for block in stored if block is not None]
    assert lengths == [sizes.fragments(key) for key in KEY_SPACE.chain(range(10))]
    assert set(lengths) <= {2, 3, 4}
    assert len(set(lengths)) > 1


@in_virtual_time
async def test_what_the_node_holds_is_not_fetched() -> None:
    cluster = Cluster(gpu_blocks=3)
    *_, record = await cluster.play([request(0, 1, 2, 3, 4), request(5, 1, 2, 3, 4)])
    assert came_from(record) == {"gpu": 3, "dram": 1}
    assert record.fetch_s == 0
    assert record.prefill_s == pytest.approx(COST.prefill_s(1, 4 * 512 - 1))


@in_virtual_time
async def test_one_prefill_at_a_time_and_a_block_is_computed_once() -> None:
    cluster = Cluster()
    first, second = await cluster.play([request(0, 1, 2, 3, 4), request(0, 1, 2, 3, 4)])
    assert came_from(first) == {"recomputed": 4}
    assert came_from(second) == {"gpu": 4}
    assert second.queue_s == pytest.approx(PREFILL_S)
    assert (second.ttft_s or 0) > (first.ttft_s or 0)
    assert cluster.clients[0].stats.blocks_put == 4


@in_virtual_time
async def test_a_hole_makes_what_is_behind_it_worthless() -> None:
    cluster = Cluster()
    keys = list(KEY_SPACE.chain([1, 2, 3]))
    cluster.store.preload([place(keys[0]), place(keys[2])], BLOCK_BYTES)
    (record,) = await cluster.play([request(0, 1, 2, 3)])
    assert came_from(record) == {"remote": 1, "recomputed": 2}


@in_virtual_time
async def test_a_node_that_fetches_nothing_computes_what_it_does_not_hold() -> None:
    cluster = Cluster(gate=fetch_none)
    cluster.store.preload([place(key) for key in KEY_SPACE.chain([1, 2, 3, 4])], BLOCK_BYTES)
    one, two = await cluster.play([request(0, 1, 2, 3, 4), request(5, 1, 2, 3, 4)])
    assert came_from(one) == {"recomputed": 4}
    assert came_from(two) == {"gpu": 4}
    assert one.fetch_s == two.fetch_s == 0


@in_virtual_time
async def test_a_closed_gate_recomputes() -> None:
    async def first_two(missing: Sequence[BlockRef], gpu_wait_s: Callable[[], float]) -> Admitted:
        assert gpu_wait_s() == 0
        assert missing[0].recompute_ms == round(1000 * COST.block_prefill_s(0))
        assert missing[1].parent == int.from_bytes(missing[0].key[:4], "big")
        return Admitted(2, 2)

    cluster = Cluster(gate=first_two)
    cluster.store.preload([place(key) for key in KEY_SPACE.chain([1, 2, 3, 4])], BLOCK_BYTES)
    (record,) = await cluster.play([request(0, 1, 2, 3, 4)])
    assert came_from(record) == {"remote": 2, "recomputed": 2}
    assert record.refused == 2


@in_virtual_time
async def test_a_dead_home_delays_a_request_but_does_not_fail_it() -> None:
    cluster = Cluster()
    cluster.network.ports.clear()
    (record,) = await cluster.play([request(0, 1, 2)])
    assert came_from(record) == {"recomputed": 2}
    assert record.fetch_ended_by == "TransferTimeoutError"
    assert cluster.nodes[0].stats.completed == 1
    assert cluster.clients[0].stats.blocks_put == 0


@in_virtual_time
async def test_a_full_node_rejects_and_a_full_queue_does_not_store() -> None:
    cluster = Cluster(options=InferenceOptions(max_requests=1, max_waiting_puts=2, put_workers=1))
    served, rejected = await cluster.play([request(0, 1, 2, 3, 4), request(0, 5)])
    assert served.failure is None
    assert rejected.failure == "rejected: the node is full"
    stats = cluster.nodes[0].stats
    assert (stats.arrived, stats.completed, stats.failed) == (2, 1, 1)
    assert stats.puts_skipped == 2


@in_virtual_time
async def test_speed_compresses_the_time_of_the_gpu() -> None:
    cluster = Cluster()
    node = InferenceNode(
        cluster.clients[0], LocalTiers(10, 10), KEY_SPACE, COST, ScaleModel(SCALE.sigma, speed=4)
    )
    await node.play([request(0, 1, 2, 3, 4)], asyncio.get_running_loop().time())
    assert node.records[0].prefill_s == pytest.approx(PREFILL_S / 4)
