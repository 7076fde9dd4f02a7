"""Links that are asked for more than they carry, with queues of 64 packets at the switch."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from experiments.simulate_faults.virtual_time import run_virtual
from hostlib.client.client import Client
from hostlib.client.client_options import ClientOptions
from hostlib.client.health import HealthOptions
from hostlib.native.lane_options import LaneOptions
from hostlib.protocol.block import Place
from hostlib.protocol.content import derivation
from hostlib.protocol.members import Members
from hostlib.protocol.transfer import chain_references
from hostlib.protocol.wire import VALUE_FRAME_BYTES
from hostlib.storage.storage_node import StorageNode
from hostlib.storage.storage_options import StorageOptions
from hostlib.storage.store import BlockStore
from tests.hostlib.flows import BOTH, STORE_TO_NODES, STORES_TO_NODE, Flow, Keys, fairness_of, groups
from tests.hostlib.sealed import SEAL, TENANT
from tests.hostlib.shaped import ShapedNetwork
from tests.slow import rest_slow

NODES, STORES = 16, 8
BLOCKS, FRAGMENTS = 8, 16
QUEUE_PACKETS = 64
PATIENT = HealthOptions(silence_s=30)
USUAL = ClientOptions(health=PATIENT)


@dataclass(frozen=True)
class Shown:
    loss: float
    jain: float
    throughput: float


async def shown(pattern: str, rate_bit_s: float, options: ClientOptions = USUAL) -> Shown:
    """All ask at the same moment for blocks that only their homes have."""
    network = ShapedNetwork(rate_bit_s, QUEUE_PACKETS)
    stores = {f"s{at}": f"10.0.1.{1 + at}" for at in range(STORES)}
    nodes = {f"n{at}": f"10.0.0.{1 + at}" for at in range(NODES)}
    asked = groups(pattern, list(nodes), list(stores), Keys(stores, 1), BLOCKS)
    flows = [flow for group in asked for flow in group.flows]
    for name, address in stores.items():
        store = BlockStore(1 << 30, None, derivation(SEAL))
        held = [Place(TENANT, key) for flow in flows if flow.store == name for key in flow.keys]
        store.preload(held, 512 * FRAGMENTS)
        StorageNode(network.port(address), store, StorageOptions(link_bit_s=rate_bit_s))
    members = Members.of(stores.values())
    clients = {name: Client(network.port(address), members, SEAL, options) for name, address in nodes.items()}
    loop = asyncio.get_running_loop()
    began_s, took_s = loop.time(), dict.fromkeys(flows, 0.0)

    async def fetch(flow: Flow) -> None:
        client = clients[flow.node]
        await asyncio.gather(*(client.get(block) for block in chain_references(flow.keys)))
        took_s[flow] = loop.time() - began_s

    await asyncio.gather(*map(fetch, flows))
    used = []
    for group in asked:
        values = FRAGMENTS * sum(len(flow.keys) for flow in group.flows)
        used.append(8 * VALUE_FRAME_BYTES * values / rate_bit_s / max(took_s[flow] for flow in group.flows))
    fairness = min(fairness_of(group, took_s) for group in asked)
    return Shown(network.drops / network.packets, fairness, min(used))


@pytest.mark.parametrize("rate_bit_s", rest_slow([5e6], [5e6, 20e6, 100e6]))
@pytest.mark.parametrize("pattern", [STORES_TO_NODE, STORE_TO_NODES, BOTH])
def test_nodes_that_begin_at_the_same_microsecond_lose_nothing_and_use_and_share_links(
    pattern: str, rate_bit_s: float
) -> None:
    """16 nodes, or 8 storage nodes, and queues of 64 packets."""
    found = run_virtual(shown(pattern, rate_bit_s))
    assert found.loss == 0
    assert found.jain >= 0.95
    assert found.throughput >= 0.9


AT_ONCE = ClientOptions(LaneOptions(initial_window=32), health=PATIENT)


def test_windows_that_are_open_from_the_start_overrun_the_queue_and_that_is_made_good() -> None:
    found = run_virtual(shown(STORE_TO_NODES, 5e6, AT_ONCE))
    assert 0.01 < found.loss < 0.1
    assert found.jain >= 0.95
    assert found.throughput >= 0.9
