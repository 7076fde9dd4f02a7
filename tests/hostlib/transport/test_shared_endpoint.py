"""A client and who answers, at one endpoint."""

from __future__ import annotations

from collections.abc import Sequence

from hostlib.protocol import wire
from hostlib.transport.shared_endpoint import SharedEndpoint
from tests.asynchronous import in_real_time
from tests.hostlib.network import MemoryNetwork
from tests.hostlib.world import key

HERE, THERE = "10.0.0.1", "10.0.0.2"


def message(op: int, number: int) -> bytes:
    value = bytes(512) if op in (wire.OP_VALUE, wire.OP_PUT, wire.OP_KEYS) else b""
    return wire.encode(wire.Message(op, key(number), 0, 1, value=value, content=1))


@in_real_time
async def test_each_side_gets_its_part_in_order_and_both_send() -> None:
    network = MemoryNetwork()
    shared = SharedEndpoint(network.port(HERE))
    got: list[tuple[str, str, int]] = []

    def of(side: str) -> None:
        def receive(address: str, datagrams: Sequence[wire.Buffer]) -> None:
            got.extend((side, address, wire.op_of(datagram)) for datagram in datagrams)

        getattr(shared, side).set_receiver(receive)

    of("client")
    of("answering")
    ops = [
        wire.OP_GET,
        wire.OP_STAT,
        wire.OP_VALUE,
        wire.OP_PUT,
        wire.OP_GET,
        wire.OP_LIST,
        wire.OP_FOUND,
    ]
    datagrams = [message(op, number) for number, op in enumerate(ops)]
    network.deliver_burst(THERE, HERE, [*datagrams, b"", b"x"])
    asked = {wire.OP_GET, wire.OP_STAT}
    expected = [("answering" if op in asked else "client", THERE, op) for op in ops]
    assert got == [*expected, ("client", THERE, 0), ("client", THERE, 0)]
    for side in (shared.client, shared.answering):
        side.send(THERE, [datagrams[0]])
    assert [destination for _, destination, _ in network.log] == [THERE, THERE]


@in_real_time
async def test_what_comes_before_anybody_listens_is_dropped() -> None:
    network = MemoryNetwork()
    shared = SharedEndpoint(network.port(HERE))
    network.deliver(THERE, HERE, message(wire.OP_GET, 1))
    assert shared.client.queued_bytes == shared.answering.queued_bytes == 0
