"""A node of the tenant fills no pool through a storage node that is no home of the block."""

from __future__ import annotations

from collections.abc import Sequence

from scapy.packet import Raw

from hostlib.protocol import wire
from hostlib.protocol.block import Block, Place
from hostlib.protocol.members import Members
from hostlib.protocol.seal import Seal
from hostlib.storage.storage_node import StorageNode
from hostlib.storage.storage_options import StorageOptions
from hostlib.storage.store import BlockStore
from hostlib.transport.transport import Receiver
from tests.asynchronous import in_real_time
from tests.p4.rig import FRAGMENTS, NODES, STORES, TENANT, Rig, ip

INTRUDER, VICTIM, _ = NODES
SEAL = Seal(TENANT, b"a secret of sixteen bytes or more")
GENUINE, GARBAGE = 77, 666


class Answers:
    """A `Transport` that keeps what is sent."""

    queued_bytes = 0

    def __init__(self) -> None:
        self.sent: list[tuple[str, bytes]] = []

    def set_receiver(self, receiver: Receiver) -> None:
        self.receive = receiver

    def send(self, address: str, datagrams: Sequence[bytes]) -> None:
        self.sent += [(address, datagram) for datagram in datagrams]


class Network:
    """The switch with honest storage nodes at its ports."""

    def __init__(self, rig: Rig, key: bytes) -> None:
        self.rig = rig
        members = Members.of([ip(port) for port in STORES], 1)
        self.order = [int(member.address.split(".")[-1]) for member in members.order(key)]
        self.transports = {port: Answers() for port in STORES}
        self.stores = {port: BlockStore(1 << 20, None, _nothing) for port in STORES}
        for port, transport in self.transports.items():
            StorageNode(transport, self.stores[port], StorageOptions(ip(port)), members)

    def send(self, port: int, message: wire.Message, to: int) -> list[wire.Message]:
        """What comes to nodes in the end."""
        return self._carry(port, wire.encode(message), to)

    def _carry(self, port: int, payload: bytes, to: int) -> list[wire.Message]:
        came: list[wire.Message] = []
        for out, frame in self.rig.send(port, self.rig.frame(port, to, Raw(payload))):
            data = bytes(frame["UDP"].payload)
            if out not in self.transports:
                came.append(wire.decode(data))
                continue
            transport = self.transports[out]
            transport.sent.clear()
            transport.receive(str(frame["IP"].src), [data])
            for address, reply in list(transport.sent):
                came += self._carry(out, reply, int(address.split(".")[-1]))
        return came


def _nothing(place: Place, length: int) -> Block:
    raise AssertionError((place, length))


@in_real_time
async def test_garbage_put_to_no_home_is_refused_and_the_pool_serves_what_the_home_has(rig: Rig) -> None:
    key = SEAL.key(b"hot")
    network = Network(rig, key)
    home, stranger = network.order[0], network.order[-1]
    content = bytes(range(256)) * 2 * FRAGMENTS
    values = [content[512 * at :][:512] for at in range(FRAGMENTS)]
    tags = b"".join(SEAL.tag(key, at, FRAGMENTS, GENUINE, value) for at, value in enumerate(values))
    network.stores[home].put(Place(TENANT, key), Block(GENUINE, content, tags), durable=False)
    rig.install(key, tenant=TENANT)
    for at in range(FRAGMENTS):
        put = wire.Message(
            wire.OP_PUT, key, at, FRAGMENTS, tenant=TENANT, content=GARBAGE, tag=bytes(16),
            value=b"garbage!" * 64,
        )  # fmt: skip
        (answer,) = network.send(INTRUDER, put, stranger)
        assert (answer.op, answer.generation) == (wire.OP_REFUSED, wire.REFUSED_NOT_HOME)
    for at in (*range(FRAGMENTS), *range(FRAGMENTS)):  # from the home, then from the pool
        get = wire.Message(wire.OP_GET, key, at, FRAGMENTS, tenant=TENANT)
        (value,) = network.send(VICTIM, get, home)
        assert SEAL.is_genuine(value)
    assert value.flags & wire.FLAG_FROM_POOL
