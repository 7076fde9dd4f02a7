"""Storage nodes on real loopback sockets, answering the real client and hand-made messages."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

import pytest

from hostlib import wire
from hostlib.client import Client
from hostlib.content import block_content, is_intact
from hostlib.endpoint import UdpEndpoint
from hostlib.errors import BlockNotFoundError, ConfigError
from hostlib.storage import StorageNode, read_keys
from hostlib.store import BlockStore
from hostlib.transfer import BlockRef
from tests.hostlib.loopback import own_address, until

BLOCK_BYTES = 4 * 512
KEY = blake2b(b"a block", digest_size=16).digest()


@contextmanager
def storage_and_peer(link_bit_s: float = 0.0) -> Iterator[tuple[StorageNode, str, UdpEndpoint, BlockStore]]:
    address = own_address()
    served, peer = UdpEndpoint(address), UdpEndpoint(own_address())
    store = BlockStore(BLOCK_BYTES, 1 << 20, None)
    try:
        yield StorageNode(served, store, link_bit_s), address, peer, store
    finally:
        served.close()
        peer.close()


async def ask(
    peer: UdpEndpoint, address: str, messages: list[wire.Message], replies: int
) -> list[wire.Message]:
    arrived: list[wire.Message] = []

    def receive(source: str, datagrams: Sequence[wire.Buffer]) -> None:
        assert source == address
        arrived.extend(wire.decode(bytes(datagram)) for datagram in datagrams)

    peer.set_receiver(receive)
    peer.send(address, [wire.encode(message) for message in messages])
    await until(lambda: len(arrived) >= replies)
    return arrived


def test_blocks_put_by_one_client_are_fetched_by_another() -> None:
    async def main() -> None:
        with storage_and_peer() as (_, address, peer, _), storage_and_peer() as (_, second, other_peer, _):
            homes = [address, second]
            writer = Client(peer, homes, BLOCK_BYTES, is_intact)
            reader = Client(other_peer, homes, BLOCK_BYTES, is_intact)
            refs = [BlockRef(blake2b(bytes([n]), digest_size=16).digest(), n, 50) for n in range(50)]
            await asyncio.gather(*(writer.put(ref, block_content(ref.key, BLOCK_BYTES)) for ref in refs))
            chain = await reader.get_chain(refs)
            assert [block.content for block in chain.blocks] == [
                block_content(ref.key, BLOCK_BYTES) for ref in refs
            ]
            with pytest.raises(BlockNotFoundError):
                await reader.get(BlockRef(KEY))

    asyncio.run(main())


def test_a_get_is_answered_with_what_it_asked_echoed() -> None:
    async def main() -> None:
        with storage_and_peer() as (node, address, peer, store):
            store.preload([KEY])
            flags = wire.FLAG_BYPASS | wire.FLAG_FILL | wire.FLAG_RETRY
            get = wire.Message(
                wire.OP_GET, KEY, 2, 4, flags, generation=9, sequence=77, depth=3, chain_blocks=8, parent=5,
                hint_ms=44,
            )  # fmt: skip
            (reply,) = await ask(peer, address, [get], 1)
            value = block_content(KEY, BLOCK_BYTES)[1024:1536]
            echoed = wire.FLAG_BYPASS | wire.FLAG_FILL
            assert reply == get._replace(op=wire.OP_VALUE, flags=echoed, generation=0, hint_ms=0, value=value)
            (missing,) = await ask(peer, address, [get._replace(key=KEY[::-1])], 1)
            assert missing == get._replace(
                op=wire.OP_NOT_FOUND, key=KEY[::-1], flags=echoed, generation=0, hint_ms=0
            )
            stats = node.stats
            assert (stats.gets, stats.retries, stats.bypasses, stats.fills) == (2, 2, 2, 2)
            assert (stats.values, stats.not_found) == (1, 1)

    asyncio.run(main())


def test_a_reclaimed_block_is_kept_and_acknowledged_as_one() -> None:
    async def main() -> None:
        with storage_and_peer() as (node, address, peer, store):
            content = block_content(KEY, BLOCK_BYTES)
            puts = [
                wire.Message(wire.OP_PUT, KEY, at, 4, wire.FLAG_RECLAIM, value=content[512 * at :][:512])
                for at in range(4)
            ]
            acks = await ask(peer, address, puts, 4)
            assert {ack.op for ack in acks} == {wire.OP_PUT_ACK}
            assert [ack.fragment for ack in acks] == [0, 1, 2, 3]
            held = wire.FLAG_RECLAIM | wire.FLAG_HELD
            assert [ack.flags for ack in acks] == [*[wire.FLAG_RECLAIM] * 3, held]
            assert store.get(KEY) == content
            assert node.stats.reclaims == 4
            (again,) = await ask(peer, address, puts[:1], 1)
            assert again.flags == held

    asyncio.run(main())


def test_messages_that_do_not_fit_are_dropped_and_counted() -> None:
    async def main() -> None:
        with storage_and_peer() as (node, address, peer, store):
            store.preload([KEY])
            strange = [
                wire.Message(wire.OP_GET, KEY, 0, 5),
                wire.Message(wire.OP_PUT, KEY[::-1], 0, 4, value=b"too short"),
                wire.Message(wire.OP_VALUE, KEY, 0, 4, value=bytes(512)),
                wire.Message(wire.OP_RECLAIM, KEY, 0, 4),
            ]
            peer.send(address, [b"", b"hello", bytes(560), bytes(48)])
            (reply,) = await ask(peer, address, [*strange, wire.Message(wire.OP_GET, KEY, 0, 4)], 1)
            assert reply.op == wire.OP_VALUE
            assert (node.stats.mismatched, node.stats.unexpected) == (2, 2)
            assert node.stats.malformed == {"short": 2, "version": 2}

    asyncio.run(main())


def test_the_backlog_is_what_waits_over_the_links_rate() -> None:
    async def main() -> None:
        with storage_and_peer(link_bit_s=1e6) as (node, _, peer, _):
            assert node.backlog_ms() == 0
            node._transport.send("127.0.0.1", [bytes(500)] * 25)
            assert node.backlog_ms() == 100
            del peer

    asyncio.run(main())


def test_preload_files_say_where_they_are_wrong(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(f"{KEY.hex()}\n{KEY[::-1].hex()}\n")
    assert read_keys(path) == [KEY, KEY[::-1]]
    path.write_text(f"{KEY.hex()}\nnothing\n")
    with pytest.raises(ConfigError, match=":2: not hexadecimal"):
        read_keys(path)
    path.write_text(f"{KEY.hex()}00\n")
    with pytest.raises(ConfigError, match=":1: a key has 32 hexadecimal digits"):
        read_keys(path)
    with pytest.raises(ConfigError, match="No such file"):
        read_keys(tmp_path / "missing")
