"""Worlds in which blocks are deleted: what their tests share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from hostlib.client.client import Client
from hostlib.protocol import wire
from hostlib.protocol.block import Place
from hostlib.protocol.errors import BlockNotFoundError
from hostlib.protocol.members import State
from hostlib.transport.transport import Receiver
from tests.asynchronous import until
from tests.hostlib.network import MemoryPort
from tests.hostlib.sealed import TENANT
from tests.hostlib.world import NODE, World, key, ref

UP, DOWN, JOINING = State.UP, State.DOWN, State.JOINING


async def is_found(client: Client, number: int) -> bool:
    try:
        await client.get(ref(number))
    except BlockNotFoundError:
        return False
    return True


def write_at(world: World, address: str, number: int) -> int:
    """The content id of a block that a storage node holds."""
    found = world.stores[address].find(Place(TENANT, key(number)))
    assert found is not None
    return found[1]


def absent_home(world: World) -> str:
    return world.members.nodes[0].address


def blocks_of(world: World, home: str) -> list[int]:
    """Numbers of blocks that have this home, in order."""
    return [number for number in range(40) if home in world.homes(number)]


async def come_back(world: World, address: str) -> None:
    world.announce(JOINING, UP, UP)
    node = world.restart(address)
    node.start()
    await until(lambda: node.joining.caught_up)
    world.announce(UP, UP, UP)
    await asyncio.sleep(0.1)


async def goes_down(world: World, home: str) -> None:
    """Kill the first storage node, and let all know that it is down."""
    world.kill(home)
    world.announce(DOWN, UP, UP)
    await asyncio.sleep(0.1)


def listens_to_no_list(
    world: World, *homes: str, op: int = wire.OP_LIST, start: bytes | None = None
) -> Callable[[], None]:
    """LISTs, or messages of another kind, do not reach these, or only those that name the key `start`; all
    else does. Call what is returned to end that."""
    heard: list[tuple[MemoryPort, Receiver]] = []
    for home in homes:
        port = world.network.ports[home]
        hears = port.receiver
        assert hears is not None

        def is_heard(datagram: wire.Buffer) -> bool:
            return datagram[1] != op or start not in (None, wire.decode(datagram).key)

        def deaf(source: str, datagrams: Sequence[wire.Buffer], hears: Receiver = hears) -> None:
            hears(source, list(filter(is_heard, datagrams)))

        port.set_receiver(deaf)
        heard.append((port, hears))

    def listen_again() -> None:
        for port, hears in heard:
            port.set_receiver(hears)

    return listen_again


async def answers_of(world: World, home: str, number: int) -> set[int]:
    """Ask one storage node for a block, past the client; return the kinds of its answers."""
    before = len(world.network.log)
    get = wire.Message(wire.OP_GET, key(number), 0, 0, wire.FLAG_BYPASS, tenant=TENANT)
    world.network.deliver(NODE, home, wire.encode(get))
    await asyncio.sleep(0.01)
    sent = ((source, wire.decode(data)) for source, _, data in world.network.log[before:])
    return {message.op for source, message in sent if source == home and message.key == key(number)}
