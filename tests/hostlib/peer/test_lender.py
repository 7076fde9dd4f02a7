"""What does not go with nodes that lend, and what they answer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hostlib.node.worker import WorkerConfig
from hostlib.protocol import wire
from hostlib.protocol.block import Place
from hostlib.protocol.errors import ConfigError
from tests.asynchronous import in_real_time
from tests.hostlib.lenders import LendingNode
from tests.hostlib.network import MemoryNetwork
from tests.hostlib.sealed import TENANT
from tests.hostlib.world import FRAGMENTS, key

A, B = NODES = ["10.0.0.1", "10.0.0.2"]


@pytest.mark.parametrize(
    "given",
    [
        {"fetch": False},
        {"push": True},
        {"blend": True},
        {"durable": True},
        {"router": "socket"},
        {"replicas": 2},
        {"hints": "homes", "gate": True},
        {"level": "adaptive", "codec": "cachegen", "ttft_slo_s": 1.0},
        {"address": "10.0.0.9"},
    ],
)
def test_what_does_not_go_with_lending_is_refused_with_its_name(given: dict[str, Any]) -> None:
    right: dict[str, Any] = {
        "result": "r", "address": A, "homes": NODES, "trace": "t", "gpu_blocks": 4, "dram_blocks": 4,
        "index": "socket", "link_bit_s": 1e6,
    }  # fmt: skip
    WorkerConfig(**right)
    with pytest.raises(ConfigError, match=next(iter(given)).replace("address", "homes").replace("_", ".")):
        WorkerConfig(**right | given)


def test_what_is_preloaded_is_lent() -> None:
    right: dict[str, Any] = {
        "result": "r", "address": A, "homes": NODES, "trace": "t", "gpu_blocks": 4, "dram_blocks": 4,
    }  # fmt: skip
    with pytest.raises(ConfigError, match="it needs index"):
        WorkerConfig(**right, preload="keys")


@in_real_time
async def test_a_lender_answers_questions_and_keeps_nothing_that_it_is_sent(tmp_path: Path) -> None:
    network = MemoryNetwork()
    node = LendingNode(network, A, NODES, tmp_path / "none")
    node.hold(1)
    await asyncio.sleep(0)
    asked = [wire.Message(wire.OP_GET, key(1), at, FRAGMENTS, tenant=TENANT) for at in range(FRAGMENTS)]
    asked.append(wire.Message(wire.OP_GET, key(2), 0, FRAGMENTS, tenant=TENANT))
    asked.append(wire.Message(wire.OP_STAT, key(1), 0, 0, tenant=TENANT))
    put = wire.Message(wire.OP_PUT, key(3), 0, 1, content=9, tenant=TENANT, value=bytes(512))
    network.deliver_burst(B, A, [wire.encode(message) for message in (put, *asked)])
    said = [wire.decode(data).op for source, _, data in network.log if source == A]
    assert said == [*[wire.OP_VALUE] * FRAGMENTS, wire.OP_NOT_FOUND, wire.OP_FOUND]
    assert Place(TENANT, key(3)) not in node.lender.store
    assert node.client.stats.unexpected == 1
    node.close()
