"""The endpoint on real sockets of the loopback interface."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import sys
from collections.abc import Callable, Sequence
from itertools import count

import pytest

from hostlib import native
from hostlib.native import Core
from hostlib.native.python_sockets import UDP_GRO
from hostlib.protocol.errors import ConfigError
from hostlib.protocol.wire import KV_PORT, Buffer
from hostlib.transport.endpoint import EndpointOptions, UdpEndpoint
from tests.asynchronous import in_real_time, until
from tests.hostlib.loopback import own_address

pytestmark = pytest.mark.usefixtures("either_core")


class Pair:
    """Two endpoints; what arrives at the second is kept."""

    def __init__(self, options: EndpointOptions | None = None) -> None:
        self.source, self.destination = own_address(), own_address()
        self.sender = UdpEndpoint(self.source, options)
        self.receiver = UdpEndpoint(self.destination, options)
        self.arrived: list[bytes] = []
        self.sources: set[str] = set()
        self.receiver.set_receiver(self.receive)

    def receive(self, source: str, datagrams: Sequence[Buffer]) -> None:
        self.sources.add(source)
        self.arrived.extend(bytes(datagram) for datagram in datagrams)

    def __enter__(self) -> Pair:
        return self

    def __exit__(self, *exc: object) -> None:
        self.sender.close()
        self.receiver.close()


IP_MTU_DISCOVER, IP_PMTUDISC_INTERFACE = 10, 4


@in_real_time
async def test_no_icmp_message_makes_it_send_in_parts_or_nothing() -> None:
    """Any host may send one; `make intruders ATTACKS=frag_needed` does, on a real network."""
    with Pair() as pair:
        how = pair.sender._socket.getsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER)
        assert how == IP_PMTUDISC_INTERFACE


UDP_NO_CHECK6_RX = 102
"""Of linux/udp.h: says nothing to a socket of IPv4."""
MIXED = [bytes([n]) * length for n, length in enumerate([560] * 20 + [48] * 3 + [1] + [560] * 9)]


@pytest.mark.parametrize("batch_bytes", [1, 8 * 602, 64_000])
@in_real_time
async def test_datagrams_arrive_as_they_were_sent(batch_bytes: int) -> None:
    with Pair(EndpointOptions(batch_bytes=batch_bytes)) as pair:
        pair.sender.send(pair.destination, MIXED)
        await until(lambda: len(pair.arrived) == len(MIXED))
        assert pair.arrived == MIXED
        assert pair.sources == {pair.source}
        sent, received = pair.sender.stats, pair.receiver.stats
        assert sent.sent == received.received == len(MIXED)
        assert sent.sent_bytes == received.received_bytes == sum(map(len, MIXED))
        assert sent.egress_frame_bytes == sum(42 + len(datagram) for datagram in MIXED)


@pytest.mark.parametrize("options", [EndpointOptions(batch_bytes=8 * 8286), EndpointOptions.of_link(0)])
@in_real_time
async def test_no_batch_is_longer_than_one_datagram_to_the_kernel(options: EndpointOptions) -> None:
    """Eight values of 8 KiB are; the kernel refuses them."""
    long = [bytes([n]) * 8244 for n in range(20)]
    with Pair(options) as pair:
        pair.sender.send(pair.destination, long)
        await until(lambda: pair.sender.stats.sent + pair.sender.stats.dropped == len(long))
        assert pair.sender.stats.dropped == 0
        await until(lambda: len(pair.arrived) == len(long))
        assert pair.arrived == long


@pytest.mark.parametrize(("link_bit_s", "datagrams"), [(0.0, 64), (1e9, 64), (20e6, 4), (5e6, 1), (1e3, 1)])
def test_a_batch_takes_no_more_than_a_millisecond_of_the_link(link_bit_s: float, datagrams: int) -> None:
    assert EndpointOptions.of_link(link_bit_s).gso_datagrams(560) == datagrams


SMALL_AND_LARGE = [bytes(80)] * 100 + [bytes(592)] * 100


@pytest.mark.parametrize(
    ("link_bit_s", "batches"),
    [
        (0.0, [(64, 80), (36, 80), (64, 592), (36, 592)]),
        (40e6, [(40, 80), (40, 80), (20, 80), *[(7, 592)] * 14, (2, 592)]),
        (1e6, [(1, 80)] * 100 + [(1, 592)] * 100),
    ],
)
def test_what_leaves_as_one_is_bounded_in_bytes(link_bit_s: float, batches: list[tuple[int, int]]) -> None:
    """How many datagrams of which length: the loopback interface gives as one what was sent as one."""

    def receive(receiver: socket.socket) -> tuple[int, int]:
        data, ancillary, _, _ = receiver.recvmsg(65_535, socket.CMSG_SPACE(4), socket.MSG_DONTWAIT)
        one = int.from_bytes(ancillary[0][2], sys.byteorder) if ancillary else len(data)
        return len(data) // one, one

    async def main() -> list[tuple[int, int]]:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
            receiver.bind((own_address(), KV_PORT))
            receiver.setsockopt(socket.IPPROTO_UDP, UDP_GRO, 1)
            sender = UdpEndpoint(own_address(), EndpointOptions.of_link(link_bit_s))
            with contextlib.closing(sender):
                sender.send(receiver.getsockname()[0], SMALL_AND_LARGE)
                await until(lambda: sender.stats.sent == len(SMALL_AND_LARGE))
            return [receive(receiver) for _ in batches]

    assert asyncio.run(main()) == batches


class UnwillingCore:
    """A core before a kernel that refuses some of what it is given."""

    def __init__(self, core: Core, refuses: Callable[[bool], OSError | None]) -> None:
        self.receive, self.total = core.receive, core.total
        self._send, self._refuses = core.send, refuses

    def send(
        self,
        sock: socket.socket,
        address: str,
        port: int,
        datagrams: list[bytes],
        at: int,
        batch_bytes: int,
        together: bool,
    ) -> tuple[int, int]:
        error = self._refuses(together and len(datagrams) - at > 1)
        if error is not None:
            raise error
        return self._send(sock, address, port, datagrams[: at + 3], at, batch_bytes, together)


def test_a_kernel_that_refuses_segmentation_gets_single_datagrams(
    monkeypatch: pytest.MonkeyPatch, either_core: Core
) -> None:
    async def main() -> None:
        with Pair() as pair:
            pair.sender.send(pair.destination, MIXED)
            await until(lambda: len(pair.arrived) == len(MIXED))
            assert pair.arrived == MIXED

    refused = OSError(errno.EIO, "no segmentation without checksum offload")
    core = UnwillingCore(either_core, lambda together: refused if together else None)
    monkeypatch.setattr(native, "core", lambda: core)
    asyncio.run(main())


def test_a_full_socket_makes_datagrams_wait_in_order(
    monkeypatch: pytest.MonkeyPatch, either_core: Core
) -> None:
    attempts = count()

    async def main() -> None:
        with Pair(EndpointOptions(batch_bytes=4 * 602)) as pair:
            for _ in range(5):
                pair.sender.send(pair.destination, MIXED)
            assert pair.sender.queued_bytes >= 5 * sum(map(len, MIXED))
            await until(lambda: len(pair.arrived) == 5 * len(MIXED))
            assert pair.arrived == MIXED * 5
            await until(lambda: pair.sender.queued_bytes == 0)

    core = UnwillingCore(either_core, lambda together: BlockingIOError() if next(attempts) % 3 else None)
    monkeypatch.setattr(native, "core", lambda: core)
    asyncio.run(main())


@in_real_time
async def test_what_waits_is_handed_over_at_once_by_sender(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hostlib.transport.endpoint.UDP_GRO", UDP_NO_CHECK6_RX)
    calls: list[tuple[str, list[bytes]]] = []
    with Pair() as pair, contextlib.closing(UdpEndpoint(own_address())) as other:
        pair.receiver.set_receiver(lambda source, some: calls.append((source, [bytes(d) for d in some])))
        for number in range(6):
            pair.sender.send(pair.destination, [bytes([number]) * 10])
            pair.sender._flush()
            other.send(pair.destination, [bytes([100 + number]) * 20])
            other._flush()
        await until(lambda: len(calls) == 2)
        assert calls[0] == (pair.source, [bytes([number]) * 10 for number in range(6)])
        assert calls[1][1] == [bytes([100 + number]) * 20 for number in range(6)]


@in_real_time
async def test_the_queue_is_bounded() -> None:
    with Pair(EndpointOptions(queue_datagrams=10)) as pair:
        pair.sender.send(pair.destination, MIXED)
        await until(lambda: len(pair.arrived) == 10)
        assert pair.sender.stats.queue_drops == len(MIXED) - 10


@in_real_time
async def test_what_cannot_be_sent_is_counted() -> None:
    with Pair() as pair:
        pair.sender.send("255.255.255.255", [b"no broadcast from here"] * 3)
        await until(lambda: pair.sender.stats.queue_drops == 3)
        assert pair.sender.queued_bytes == 0


def test_a_refused_datagram_takes_no_other_with_it(
    monkeypatch: pytest.MonkeyPatch, either_core: Core
) -> None:
    """Where each is sent by itself, though others of its length wait behind it."""
    attempts = count(1)

    def refuses(together: bool = False) -> OSError | None:
        return OSError(errno.ENOBUFS, "no room") if next(attempts) == 2 else None

    async def main() -> None:
        with Pair(EndpointOptions(sends_together=False)) as pair:
            pair.sender.send(pair.destination, MIXED)
            await until(lambda: pair.sender.queued_bytes == 0)
            assert pair.sender.stats.queue_drops == 1
            await until(lambda: len(pair.arrived) == len(MIXED) - 1)

    core = UnwillingCore(either_core, refuses)
    monkeypatch.setattr(native, "core", lambda: core)
    asyncio.run(main())


@in_real_time
async def test_datagrams_from_another_port_are_dropped() -> None:
    with Pair() as pair, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.bind((pair.source, 0))
        stranger.sendto(b"from the wrong port", (pair.destination, KV_PORT))
        stranger.sendto(b"", (pair.destination, KV_PORT))
        await until(lambda: pair.receiver.stats.foreign == 2)
        assert pair.arrived == []


@in_real_time
async def test_datagrams_that_found_no_room_are_counted() -> None:
    options = EndpointOptions(receive_buffer_bytes=4096, queue_datagrams=1000)
    with Pair(options) as pair:
        pair.sender.send(pair.destination, [bytes(560)] * 1000)
        await until(lambda: pair.sender.stats.sent == 1000)
        await until(lambda: bool(pair.arrived))
        pair.sender.send(pair.destination, [b"the last one tells"])
        await until(lambda: pair.arrived[-1] == b"the last one tells")
        assert pair.receiver.stats.socket_drops > 0


@in_real_time
async def test_an_address_that_is_taken_is_an_error() -> None:
    with Pair() as pair, pytest.raises(ConfigError, match="in use"):
        UdpEndpoint(pair.source)


@in_real_time
async def test_a_receiver_that_fails_keeps_nobody_else_from_sending() -> None:
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    with Pair() as pair:
        heard: list[str] = []

        def fails(source: str, datagrams: Sequence[Buffer]) -> None:
            pair.receiver.send(source, [b"before"])
            pair.receiver.soon(lambda: heard.append("behind"))
            raise ValueError

        answers: list[bytes] = []
        pair.sender.set_receiver(lambda source, some: answers.extend(map(bytes, some)))
        pair.receiver.set_receiver(fails)
        pair.sender.send(pair.destination, [b"question"])
        await until(lambda: answers == [b"before"] and heard == ["behind"])
        assert len(failures) == 1
