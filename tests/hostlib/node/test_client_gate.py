"""The gate of a node on what its client knows of the load, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from hostlib.client.client import Client
from hostlib.client.client_options import ClientOptions
from hostlib.model.blending import Blending
from hostlib.model.gate import ANSWERS, HOMES, SWITCH
from hostlib.node.client_gate import ClientGate
from hostlib.protocol import wire
from hostlib.protocol.content import block_content
from hostlib.protocol.members import Members
from hostlib.protocol.transfer import BlockRef
from tests.asynchronous import in_virtual_time
from tests.hostlib.network import MemoryNetwork
from tests.hostlib.sealed import SEAL, fragments
from workload.cost import make_cost_model
from workload.keys import KeySpace
from workload.scale import ScaleModel
from workload.trace import Request

HOME = "10.0.0.101"
COST = make_cost_model(gpu="h800")
SCALE = ScaleModel(sigma=40_000, speed=2)
BLOCK_BYTES = SCALE.block_bytes(COST.block_bytes)
FRAGMENTS = wire.fragment_count(BLOCK_BYTES)
FAST_BIT_S, SLOW_BIT_S = SCALE.rate_bit_s(200e9), SCALE.rate_bit_s(10e9)


def chain(blocks: int) -> list[BlockRef]:
    keys = KeySpace().chain(range(blocks))
    return [BlockRef(key, depth, blocks) for depth, key in enumerate(keys)]


def idle() -> float:
    """The GPU is."""
    return 0.0


class Home:
    """Answers with a backlog that the test sets, or not at all; and a pool before it."""

    def __init__(self, network: MemoryNetwork) -> None:
        self.backlog_ms: int | None = 0
        self.promised_ms = 0
        self.held = 8
        """Blocks of the chain, by depth."""
        self.pooled = 0
        self.asked: list[wire.Message] = []
        self._port = network.port(HOME)
        self._port.set_receiver(self._receive)

    def _receive(self, address: str, datagrams: Sequence[wire.Buffer]) -> None:
        for datagram in datagrams:
            if self.backlog_ms is not None:
                self._port.send(address, [wire.encode(self._reply(wire.decode(bytes(datagram))))])

    def _reply(self, get: wire.Message) -> wire.Message:
        if get.op == wire.OP_STAT:
            return self._told(get)
        values = fragments(wire.OP_VALUE, get.key, block_content(get.key, BLOCK_BYTES))
        return values[get.fragment]._replace(backlog_ms=self.backlog_ms or 0, sequence=get.sequence)

    def _told(self, stat: wire.Message) -> wire.Message:
        self.asked.append(stat)
        if stat.depth >= self.held:
            return stat._replace(op=wire.OP_NOT_FOUND)
        found = stat._replace(op=wire.OP_FOUND, content=1, fragments=FRAGMENTS)
        if stat.depth < self.pooled:
            return found._replace(flags=wire.FLAG_FROM_POOL)
        return found._replace(backlog_ms=self.backlog_ms or 0, recompute_ms=self.promised_ms)


def make(link_bit_s: float, hints: str = ANSWERS) -> tuple[ClientGate, Client, Home]:
    network = MemoryNetwork()
    home = Home(network)
    options = ClientOptions(asks_past_pool=hints == HOMES)
    client = Client(network.port("10.0.0.1"), Members.of([HOME]), SEAL, options)
    return ClientGate(client, COST, SCALE, link_bit_s, asks=hints != ANSWERS), client, home


@pytest.mark.parametrize(("link_bit_s", "admitted"), [(FAST_BIT_S, 8), (SLOW_BIT_S, 0)])
@in_virtual_time
async def test_the_links_rate_decides_when_nothing_waits(link_bit_s: float, admitted: int) -> None:
    gate, _, _ = make(link_bit_s)
    assert await gate(chain(8), idle) == (admitted, 8 - admitted)
    assert gate.stats.refused_blocks == 8 - admitted
    assert await gate(chain(8), lambda: 10.0) == (8, 0)  # hidden behind the GPU's queue


@in_virtual_time
async def test_chunks_are_blended_where_that_is_sooner_than_computing() -> None:
    blending = Blending(COST, 0.15, SCALE.duration_s)
    chunks = (None, *range(8), None)
    plan = blending.plan(Request(0.0, 9 * 512 + 40, 1, tuple(range(10)), chunks=chunks), 1)
    assert plan is not None
    missing = [BlockRef(key) for key in KeySpace().chunks(range(8)) if key is not None]
    gate, client, home = make(FAST_BIT_S)
    assert gate.blends(blending, plan, missing, 0.0) == 8
    slow, *_ = make(0.2 * SLOW_BIT_S)
    assert slow.blends(blending, plan, missing, 0.0) is None
    assert slow.blends(blending, plan, missing, 100.0) == 8  # hidden behind the GPU's queue
    home.backlog_ms = 500
    await client.get(missing[0])
    assert gate.blends(blending, plan, missing, 0.0) is None


@in_virtual_time
async def test_a_report_closes_it_for_as_long_as_the_queue_lasts() -> None:
    gate, client, home = make(FAST_BIT_S)
    home.backlog_ms = 500
    await client.get(chain(1)[0])
    assert client.backlog_s(HOME) == pytest.approx(0.5, abs=0.01)
    assert (await gate(chain(8), idle)).blocks == 0
    await asyncio.sleep(0.48)
    assert (await gate(chain(8), idle)).blocks == 8
    await asyncio.sleep(10)
    assert client.backlog_s(HOME) == 0


@in_virtual_time
async def test_what_the_node_has_asked_for_closes_it() -> None:
    gate, client, home = make(FAST_BIT_S)
    home.backlog_ms = None
    fetch = asyncio.create_task(client.get_chain(chain(200)))
    await asyncio.sleep(0.001)
    assert client.outstanding(FRAGMENTS) == {HOME: 200 * FRAGMENTS}
    assert (await gate(chain(8), idle)).blocks == 0
    fetch.cancel()
    client.close()


@pytest.mark.parametrize(("hints", "flags"), [(HOMES, wire.FLAG_BYPASS), (SWITCH, 0)])
@in_virtual_time
async def test_asked_first_a_home_says_what_it_holds_and_has_promised(hints: str, flags: int) -> None:
    gate, _, home = make(FAST_BIT_S, hints)
    home.held = 5
    assert await gate(chain(8), idle) == (5, 0)  # of what nobody has none is refused
    assert [stat.flags for stat in home.asked] == 8 * [flags]
    home.promised_ms = 500
    assert await gate(chain(8), idle) == (0, 5)
    assert await gate(chain(8), lambda: 10.0) == (5, 0)
    home.held = 0
    assert await gate(chain(8), idle) == (0, 0)
    assert gate.stats.refused_blocks == 5


@in_virtual_time
async def test_what_nobody_has_is_computed_in_any_case() -> None:
    """A block that takes longer to fetch than to compute is not fetched for what is missing behind it."""
    gate, _, home = make(SLOW_BIT_S, HOMES)
    home.held = 1
    assert await gate(chain(40), idle) == (0, 1)


@in_virtual_time
async def test_of_blocks_of_which_it_is_known_who_has_them_the_others_are_computed_in_any_case() -> None:
    waits_s = {HOME: 0.0}
    for link_bit_s, admitted in ((SLOW_BIT_S, (0, 1)), (FAST_BIT_S, (1, 0))):
        _, client, _ = make(link_bit_s)
        gate = ClientGate(client, COST, SCALE, link_bit_s, home_s=waits_s.__getitem__)
        blocks = chain(40)
        located = [blocks[0]._replace(homes=(HOME,)), *blocks[1:]]
        assert await gate(located, idle) == admitted
        assert await gate(blocks, idle) == (0, 0)
    waits_s[HOME] = 10.0
    assert await gate(located, idle) == (0, 1)


@in_virtual_time
async def test_what_a_pool_holds_waits_for_nobody() -> None:
    gate, _, home = make(FAST_BIT_S, SWITCH)
    home.promised_ms, home.pooled = 500, 3
    assert await gate(chain(8), idle) == (3, 5)


@in_virtual_time
async def test_a_silent_home_is_compared_as_if_it_had_not_been_asked() -> None:
    gate, client, home = make(FAST_BIT_S, HOMES)
    home.backlog_ms = None
    assert await gate(chain(8), idle) == (8, 0)
    client.close()
