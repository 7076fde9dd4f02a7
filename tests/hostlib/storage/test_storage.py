"""Storage nodes on real loopback sockets, answering the real client and hand-made messages."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

import pytest

from hostlib.client.client import Client
from hostlib.protocol import wire
from hostlib.protocol.content import block_content, derivation, derived_write
from hostlib.protocol.errors import BlockNotFoundError, ConfigError
from hostlib.protocol.members import Members
from hostlib.protocol.transfer import BlockRef
from hostlib.storage.storage import read_keys, read_preload
from hostlib.storage.storage_node import StorageNode
from hostlib.storage.storage_options import StorageOptions
from hostlib.storage.store import BlockStore
from hostlib.transport.endpoint import UdpEndpoint
from tests.asynchronous import in_real_time, until
from tests.hostlib.loopback import own_address
from tests.hostlib.sealed import SEAL, TENANT, WRITE, derived_fragments, place

BLOCK_BYTES = 4 * 512
KEY = blake2b(b"a block", digest_size=16).digest()


@contextmanager
def storage_and_peer(link_bit_s: float = 0.0) -> Iterator[tuple[StorageNode, str, UdpEndpoint, BlockStore]]:
    address = own_address()
    served, peer = UdpEndpoint(address), UdpEndpoint(own_address())
    store = BlockStore(1 << 20, None, derivation(SEAL))
    try:
        yield StorageNode(served, store, StorageOptions(link_bit_s=link_bit_s)), address, peer, store
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


def get(fragment: int, fragments: int = 0, flags: int = 0, content: int = 0) -> wire.Message:
    return wire.Message(
        wire.OP_GET, KEY, fragment, fragments, flags, sequence=77, depth=3, chain_blocks=8, parent=5,
        recompute_ms=44, tenant=TENANT, content=content,
    )  # fmt: skip


@in_real_time
async def test_blocks_put_by_one_client_are_fetched_by_another() -> None:
    with storage_and_peer() as (_, address, peer, _), storage_and_peer() as (_, second, other_peer, _):
        members = Members.of([address, second])
        writer, reader = Client(peer, members, SEAL), Client(other_peer, members, SEAL)
        refs = [BlockRef(blake2b(bytes([n]), digest_size=16).digest(), n, 50) for n in range(50)]
        await asyncio.gather(*(writer.put(ref, block_content(ref.key, BLOCK_BYTES)) for ref in refs))
        chain = await reader.get_chain(refs)
        assert [block.content for block in chain.blocks] == [
            block_content(ref.key, BLOCK_BYTES) for ref in refs
        ]
        with pytest.raises(BlockNotFoundError):
            await reader.get(BlockRef(KEY))


@in_real_time
async def test_a_get_is_answered_with_what_it_asked_echoed() -> None:
    with storage_and_peer() as (node, address, peer, store):
        store.preload([place(KEY)], BLOCK_BYTES)
        echoed = wire.FLAG_BYPASS | wire.FLAG_REPAIR
        asked = get(2, 4, echoed | wire.FLAG_RETRY, derived_write(KEY))
        (reply,) = await ask(peer, address, [asked], 1)
        block = derivation(SEAL)(place(KEY), BLOCK_BYTES)
        assert reply == asked._replace(op=wire.OP_VALUE, flags=echoed, value=block.value(2), tag=block.tag(2))
        assert SEAL.is_genuine(reply)
        (missing,) = await ask(peer, address, [asked._replace(key=KEY[::-1])], 1)
        assert missing == asked._replace(op=wire.OP_NOT_FOUND, key=KEY[::-1], flags=echoed)
        stats = node.stats
        assert (stats.gets, stats.retries, stats.bypasses, stats.repairs, stats.fills) == (2, 2, 2, 2, 0)
        assert (stats.values, stats.not_found) == (1, 1)


@pytest.mark.parametrize("first", [0, 1, 3])
@in_real_time
async def test_a_get_for_a_pool_is_answered_with_all_fragments_from_that_on(first: int) -> None:
    with storage_and_peer() as (node, address, peer, store):
        store.preload([place(KEY)], BLOCK_BYTES)
        asked = get(first, 4, wire.FLAG_FILL, 0)
        replies = await ask(peer, address, [asked], 4 - first)
        block = derivation(SEAL)(place(KEY), BLOCK_BYTES)
        assert replies == [
            asked._replace(
                op=wire.OP_VALUE, fragment=at, content=derived_write(KEY), value=block.value(at),
                tag=block.tag(at),
            )
            for at in range(first, 4)
        ]  # fmt: skip
        missing = asked._replace(key=KEY[::-1])
        assert await ask(peer, address, [missing], 1) == [missing._replace(op=wire.OP_NOT_FOUND)]
        stats = node.stats
        assert (stats.gets, stats.fills, stats.values, stats.not_found) == (2, 2, 4 - first, 1)


@in_real_time
async def test_a_probe_learns_length_and_write_and_others_writes_are_not_found() -> None:
    with storage_and_peer() as (node, address, peer, store):
        store.preload([place(KEY)], BLOCK_BYTES)
        (probe,) = await ask(peer, address, [get(0)], 1)
        assert (probe.op, probe.fragments, probe.content) == (wire.OP_VALUE, 4, derived_write(KEY))
        for other in (get(1, 4, content=99), get(1, 5, content=derived_write(KEY))):
            (missing,) = await ask(peer, address, [other], 1)
            assert missing == other._replace(op=wire.OP_NOT_FOUND)
        assert node.stats.other_writes == 2


@in_real_time
async def test_a_question_is_answered_without_the_block() -> None:
    with storage_and_peer() as (_, address, peer, store):
        store.preload([place(KEY)], BLOCK_BYTES)
        (found,) = await ask(peer, address, [get(0)._replace(op=wire.OP_STAT)], 1)
        assert (found.op, found.fragments, found.content) == (wire.OP_FOUND, 4, derived_write(KEY))
        (missing,) = await ask(peer, address, [get(0)._replace(op=wire.OP_STAT, key=KEY[::-1])], 1)
        assert missing.op == wire.OP_NOT_FOUND


@in_real_time
async def test_a_reclaimed_block_is_kept_and_acknowledged_as_one() -> None:
    with storage_and_peer() as (node, address, peer, store):
        puts = derived_fragments(wire.OP_PUT, KEY, BLOCK_BYTES, wire.FLAG_RECLAIM)
        acks = await ask(peer, address, puts, 4)
        assert {(ack.op, ack.content) for ack in acks} == {(wire.OP_PUT_ACK, WRITE)}
        assert [ack.fragment for ack in acks] == [0, 1, 2, 3]
        held = wire.FLAG_RECLAIM | wire.FLAG_HELD  # not CREATED: nobody's slots are to count by it
        assert [ack.flags for ack in acks] == [*[wire.FLAG_RECLAIM] * 3, held]
        kept = store.get(place(KEY))
        assert kept is not None
        assert kept.content == block_content(KEY, BLOCK_BYTES)
        assert node.stats.reclaims == 4
        (again,) = await ask(peer, address, puts[:1], 1)
        assert again.flags == held


@in_real_time
async def test_a_durable_put_without_a_disk_is_refused_by_name() -> None:
    with storage_and_peer() as (node, address, peer, _):
        puts = derived_fragments(wire.OP_PUT, KEY, BLOCK_BYTES, wire.FLAG_DURABLE)
        (refused,) = await ask(peer, address, puts[:1], 1)
        assert (refused.op, refused.generation) == (wire.OP_REFUSED, wire.REFUSED_FULL)
        assert (refused.content, refused.fragments) == (WRITE, 4)
        assert node.stats.refused == 1


@in_real_time
async def test_messages_that_do_not_fit_are_refused_or_dropped_and_counted() -> None:
    with storage_and_peer() as (node, address, peer, store):
        store.preload([place(KEY)], BLOCK_BYTES)
        (value,) = derived_fragments(wire.OP_VALUE, KEY[::-1], 512)
        strange = [
            wire.Message(wire.OP_PUT, KEY[::-1], 0, 4, tenant=TENANT, content=1, value=b"too short"),
            value,
            wire.Message(wire.OP_RECLAIM, KEY, 0, 4),
            wire.Message(wire.OP_LIST, KEY, 0, 0),
        ]
        peer.send(address, [b"", b"hello", bytes(560), bytes(80)])
        refused, reply = await ask(peer, address, [*strange, get(0)], 2)
        assert (refused.op, refused.generation) == (wire.OP_REFUSED, wire.REFUSED_LENGTH)
        assert reply.op == wire.OP_VALUE
        assert (node.stats.refused, node.stats.unexpected) == (1, 3)
        assert node.stats.malformed == {"short": 1, "version 104": 1, "version 0": 2}


@in_real_time
async def test_the_backlog_is_what_waits_over_the_links_rate() -> None:
    with storage_and_peer(link_bit_s=1e6) as (node, _, peer, _):
        assert node.backlog_ms() == 0
        node._transport.send("127.0.0.1", [bytes(500)] * 25)
        assert node.backlog_ms() == 100
        del peer


def test_preload_files_say_where_they_are_wrong(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(f"{KEY.hex()}\n{KEY[::-1].hex()}\n")
    assert read_keys(path) == [KEY, KEY[::-1]]
    path.write_text(f"{KEY.hex()}\n{KEY[::-1].hex()} 1536\n")
    assert read_preload(path) == [(KEY, None), (KEY[::-1], 1536)]
    path.write_text(f"{KEY.hex()} 0\n")
    with pytest.raises(ConfigError, match=":1: a block has 1 to"):
        read_preload(path)
    path.write_text(f"{KEY.hex()}\nnothing\n")
    with pytest.raises(ConfigError, match=":2: not hexadecimal"):
        read_keys(path)
    path.write_text(f"{KEY.hex()}00\n")
    with pytest.raises(ConfigError, match=":1: a key has 32 hexadecimal digits"):
        read_keys(path)
    with pytest.raises(ConfigError, match="No such file"):
        read_keys(tmp_path / "missing")
