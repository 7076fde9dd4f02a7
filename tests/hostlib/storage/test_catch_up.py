"""A storage node that was away, or whose disk failed, gets from the others what it lacks."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from hostlib.client.client_options import ClientOptions
from hostlib.native.lane_options import LaneOptions
from hostlib.protocol import wire
from hostlib.protocol.block import Place
from hostlib.protocol.catalog import FIRST, Entry, make_page
from hostlib.protocol.content import derivation
from hostlib.protocol.members import Members, State
from hostlib.protocol.tombstones import LIST_FLAGS
from hostlib.storage import catch_up
from hostlib.storage.catch_up import FRAGMENT_S, MAX_EARNED_S, PATIENCE_S, Patience
from hostlib.storage.commit import CommitOptions
from hostlib.storage.simulated_disk import SimulatedDisk
from hostlib.storage.ssd import SsdTier
from hostlib.storage.storage_node import StorageNode
from hostlib.storage.storage_options import StorageOptions
from hostlib.storage.store import BlockStore
from hostlib.storage.store_options import StoreOptions
from hostlib.transport.transport import Receiver
from tests.asynchronous import in_virtual_time, until
from tests.hostlib.network import Faults, MemoryPort
from tests.hostlib.sealed import SEAL, TENANT, place
from tests.hostlib.world import FRAGMENTS, NODE, PATIENT, World, content, key, put_all, ref

UP, DOWN, JOINING = State.UP, State.DOWN, State.JOINING
BLOCKS = 60


def comes_back_empty(world: World, address: str) -> StorageNode:
    """A storage node whose disk was replaced; it has not started to catch up."""
    world.kill(address)
    world.disks[address] = SimulatedDisk()
    world.network.dead.discard(address)
    world.start(address)
    options = StorageOptions(address, controller="10.255.255.254")
    return StorageNode(world.network.port(address), world.stores[address], options, world.members)


def make_deaf_to_gets(port: MemoryPort) -> Receiver:
    """Drop the GETs that come to a port; returns its receiver, which hears them again when it is set."""
    hears = port.receiver
    assert hears is not None

    def deaf(source: str, datagrams: Sequence[wire.Buffer]) -> None:
        hears(source, [datagram for datagram in datagrams if datagram[1] != wire.OP_GET])

    port.set_receiver(deaf)
    return hears


@pytest.mark.parametrize("lost", [0.0, 0.05])
@in_virtual_time
async def test_a_returned_store_copies_what_it_missed_before_it_counts_as_caught_up(lost: float) -> None:
    options = ClientOptions(LaneOptions(deadline_s=60), health=PATIENT)
    world = World(replicas=2, faults=Faults(lost=lost), seed=3, options=options)
    gone = world.members.nodes[0].address
    await put_all(world, 0, BLOCKS // 2)
    world.kill(gone)
    world.announce(DOWN, UP, UP)
    await put_all(world, BLOCKS // 2, BLOCKS // 2)
    world.announce(JOINING, UP, UP)
    node = world.restart(gone)
    assert not node.joining.caught_up
    node.start()
    await until(lambda: node.joining.caught_up)
    for n in range(BLOCKS):
        assert (gone in world.homes(n)) <= (gone in world.holders(n))
    missed = {key(n) for n in range(BLOCKS // 2, BLOCKS)}  # the rest it never lost
    sent = [wire.decode(data) for source, _, data in world.network.log if source == gone]
    gets = [message for message in sent if message.op == wire.OP_GET]
    fetched = Counter((message.key, message.fragment) for message in gets)
    again = [message for message in gets if message.flags & wire.FLAG_RETRY]  # past what a switch merges
    assert len(again) == len(gets) - len(fetched)
    assert bool(again) == bool(lost)
    assert {place for place, _ in fetched} <= missed
    assert lost or set(fetched.values()) == {1}  # though both others list it
    assert lost or not node.stats.unexpected
    world.announce(UP, UP, UP)
    for other in world.members.nodes[1:]:
        world.network.dead.add(other.address)
    world.network.faults = Faults()
    for n in range(BLOCKS):  # what it copied is what was written, tags and all
        if world.homes(n)[0] == gone:
            assert (await world.client.get(ref(n))).content == content(n, 100 + 200 * n)


@pytest.mark.parametrize("repeats", [False, True])
@in_virtual_time
async def test_what_is_written_to_a_peer_that_has_listed_already_is_copied_before_one_is_caught_up(
    repeats: bool,
) -> None:
    """Who writes does not know yet that the storage node is back. What the peer said in the first pass may
    come once more in the second: it was asked twice, or the network repeats it."""
    world = World(replicas=1)
    gone, listed, _ = (node.address for node in world.members.nodes)
    world.kill(gone)
    world.announce(DOWN, UP, UP)
    for n in range(4 * BLOCKS):
        await world.client.put(ref(n), content(n), durable=True)
    node = world.restart(gone)
    node.start()
    passes = node.joining.catch_up.stats
    while passes.passes < 1:
        await asyncio.sleep(0.0001)
    orders = {n: [one.address for one in world.members.order(key(n))] for n in range(1000, 1050)}
    own = [n for n, order in orders.items() if order[:2] == [gone, listed]]
    await world.client.put(ref(own[0]), content(own[0]), durable=True)
    assert passes.passes == 1
    assert world.holders(own[0]) == [listed]
    late = [
        data
        for source, to, data in world.network.log
        if (source, to, data[1]) == (listed, gone, wire.OP_KEYS)
    ]
    while not node.joining.caught_up:
        for data in late * repeats:
            world.network.deliver(listed, gone, data)
        await asyncio.sleep(0.0005)
    assert gone in world.holders(own[0])


@pytest.mark.parametrize("op", [wire.OP_NOT_FOUND, wire.OP_REFUSED])
@in_virtual_time
async def test_a_peer_that_lacks_one_write_does_not_say_that_it_holds_none(op: int) -> None:
    """The network repeats its answer while it is asked, too, which write it holds."""
    world = World(replicas=2)
    await put_all(world, 0, 1)
    (own, peer), block = world.holders(0), Place(TENANT, key(0))
    catch_up, held = world.nodes[own].joining.catch_up, world.stores[peer].find(block)
    assert held is not None
    world.network.dead.add(peer)
    question = asyncio.create_task(catch_up.write_at(peer, block))
    await asyncio.sleep(0)
    answer = wire.Message(
        op, key(0), 0, FRAGMENTS, wire.FLAG_BYPASS, generation=wire.REFUSED_UNREADABLE, tenant=TENANT,
        sequence=wire.numbered_from(asyncio.get_running_loop().time()) + 1000, content=held[1] + 1,
    )  # fmt: skip
    world.network.dead.discard(peer)
    world.network.deliver(peer, own, wire.encode(answer))
    assert await question == held[1]


@in_virtual_time
async def test_peers_who_still_think_that_it_is_down_tell_it_all_the_same() -> None:
    world = World(replicas=2)
    gone = world.members.nodes[0].address
    world.nodes[gone].start()  # lists what is not there yet
    await asyncio.sleep(0.1)
    world.kill(gone)
    world.announce(DOWN, UP, UP)
    await put_all(world, 0, 20)
    world.restart(gone).start()
    await asyncio.sleep(5)
    everything_up = Members(99, 2, tuple(replace(m, state=UP) for m in world.members.nodes))
    for n in range(20):
        if gone in [home.address for home in everything_up.homes(key(n))]:
            assert gone in world.holders(n)


@in_virtual_time
async def test_it_copies_only_blocks_whose_home_it_is() -> None:
    world = World(homes=3, replicas=1)
    await asyncio.gather(*(world.client.put(ref(n), content(n)) for n in range(BLOCKS)))
    address = world.members.nodes[0].address
    before = {n for n in range(BLOCKS) if address in world.holders(n)}
    world.nodes[address].start()
    await asyncio.sleep(10)
    assert world.nodes[address].joining.caught_up
    assert {n for n in range(BLOCKS) if address in world.holders(n)} == before


@pytest.mark.parametrize("pooled", [False, True])
@in_virtual_time
async def test_an_unreadable_block_is_said_so_read_from_the_replica_and_repaired(pooled: bool) -> None:
    """Also when a pool on the way to the replica has another write of it."""
    world = World(replicas=2)
    if pooled:
        other = wire.Message(
            wire.OP_FOUND, key(1), 0, FRAGMENTS, wire.FLAG_FROM_POOL, tenant=TENANT, content=7
        )
        world.network.pooled[key(1)] = other
    await world.client.put(ref(1), content(1), durable=True, replicas=2)
    first, second = world.homes(1)
    world.restart(first)
    world.disks[first].damage(place(key(1)).name())
    assert (await world.client.get(ref(1))).content == content(1)
    assert world.client.stats.refused == 1
    assert world.nodes[first].stats.unreadable == 1
    await asyncio.sleep(1)
    assert first in world.holders(1)
    world.network.dead.add(second)
    assert (await world.client.get(ref(1))).content == content(1)


@in_virtual_time
async def test_many_unreadable_blocks_are_repaired_a_few_at_a_time() -> None:
    """A rotten disk has many, and the replica does not answer."""
    world = World(homes=2, replicas=2)
    await put_all(world, 0, 200)
    rotten, other = world.members.nodes
    world.restart(rotten.address)
    for number in range(200):
        world.disks[rotten.address].damage(place(key(number)).name())
    world.network.dead.add(other.address)
    before = len(asyncio.all_tasks())
    for number in range(200):
        asked = wire.Message(wire.OP_GET, key(number), 0, 0, wire.FLAG_BYPASS, tenant=TENANT)
        world.network.deliver(NODE, rotten.address, wire.encode(asked))
    await until(lambda: world.nodes[rotten.address].stats.unreadable == 200)
    assert len(asyncio.all_tasks()) - before < 100
    world.network.dead.clear()
    await until(lambda: all(rotten.address in world.holders(number) for number in range(200)), 600)


@in_virtual_time
async def test_a_peer_that_never_ends_its_list_is_left() -> None:
    world = World(homes=2)
    one, other = (node.address for node in world.members.nodes)
    port = world.network.ports[other]

    def answer(source: str, datagrams: Sequence[wire.Buffer]) -> None:
        for datagram in datagrams:
            asked = wire.decode(bytes(datagram))
            if asked.op == wire.OP_LIST:
                port.send(source, [wire.encode(asked._replace(op=wire.OP_KEYS, value=bytes(18)))])

    port.set_receiver(answer)
    world.nodes[one].start()
    await asyncio.sleep(10)
    assert world.nodes[one].joining.caught_up
    assert len(world.sent(one, wire.OP_LIST)) <= 6  # of blocks, deletions and lifetimes, twice


LISTED = 65_535
"""Fragments that a lying peer says its blocks have."""


@pytest.mark.parametrize("gives", [False, True])
@in_virtual_time
async def test_a_peer_that_lists_without_end_keeps_nobody_away(gives: bool) -> None:
    """Page after page of longest blocks, which it then does not give, or slowly."""
    world = World(homes=2, replicas=2)
    one, other = (node.address for node in world.members.nodes)
    port, at = world.network.ports[other], 1

    def answer(source: str, datagrams: Sequence[wire.Buffer]) -> None:
        nonlocal at
        for datagram in datagrams:
            asked = wire.decode(bytes(datagram))
            if asked.op == wire.OP_LIST:
                at += 20
                places = [Place(1, (at + n).to_bytes(16, "big")) for n in range(20)]
                page = make_page(places, FIRST, lambda place: (5, LISTED))
                port.send(source, [wire.encode(asked._replace(op=wire.OP_KEYS, value=page))])
            elif asked.op == wire.OP_GET and gives:
                value = asked._replace(op=wire.OP_VALUE, value=bytes(512))
                asyncio.get_running_loop().call_later(0.9, port.send, source, [wire.encode(value)])

    port.set_receiver(answer)
    options = StorageOptions(one, controller="10.255.255.254")
    node = StorageNode(world.network.port(one), world.stores[one], options, world.members)
    node.start()
    await until(lambda: node.joining.caught_up, PATIENCE_S * 1.5)
    assert not world.stores[one].sizes()["dram"]
    node.close()


@in_virtual_time
async def test_what_is_copied_waits_for_the_disk() -> None:
    world = World(homes=2, replicas=2)
    one, _ = (member.address for member in world.members.nodes)
    await put_all(world, 0, BLOCKS)
    world.kill(one)

    async def slow(work: Callable[[], None]) -> None:
        await asyncio.sleep(1)
        work()

    most = 20_000
    ssd = SsdTier(SimulatedDisk(), 1 << 30, CommitOptions(max_batch_bytes=most), run=slow)
    store = BlockStore(1 << 20, ssd, derivation(SEAL), StoreOptions(max_waiting_bytes=most))
    world.network.dead.discard(one)
    node = StorageNode(world.network.port(one), store, StorageOptions(one), world.members)
    node.start()
    longest = 100 + 200 * BLOCKS + 1000
    while not node.joining.caught_up:
        await asyncio.sleep(0.01)
        assert ssd.waiting_bytes <= most + 4 * longest
    assert len(ssd) == BLOCKS
    node.close()


@in_virtual_time
async def test_what_only_a_node_that_is_no_home_lists_and_does_not_give_is_asked_for_again() -> None:
    world = World(homes=3, replicas=2)
    await put_all(world, 0, 1)
    one, other = world.homes(0)
    (stranger,) = set(world.nodes) - {one, other}
    block = world.stores[other].get(place(key(0)))
    assert block is not None
    world.stores[stranger].put(place(key(0)), block, True)
    world.stores[other].drop(place(key(0)))
    node = comes_back_empty(world, one)
    port = world.network.ports[stranger]
    hears = make_deaf_to_gets(port)
    node.start()
    await asyncio.sleep(20)
    assert not node.joining.caught_up
    port.set_receiver(hears)
    await until(lambda: node.joining.caught_up, 20)
    assert one in world.holders(0)
    node.close()


@in_virtual_time
async def test_more_than_is_remembered_of_what_no_home_lists_is_copied_in_further_passes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(catch_up, "MAX_STRANGERS_ENTRIES", 2)
    world = World(homes=3)
    home, stranger, _ = world.nodes
    numbers = [n for n in range(100) if world.homes(n) == [home]][:9]
    for n in numbers:
        await world.client.put(ref(n), content(n))
        block = world.stores[home].get(place(key(n)))
        assert block is not None
        world.stores[stranger].put(place(key(n)), block, True)
    node = comes_back_empty(world, home)
    node.start()
    await until(lambda: node.joining.caught_up, 60)
    assert all(home in world.holders(n) for n in numbers)
    node.close()


@in_virtual_time
async def test_a_peer_whose_turn_was_before_that_of_one_that_took_long_is_asked_for_what_it_listed() -> None:
    """It has no less time for that."""
    world = World(replicas=2)
    stranger, one, other = world.nodes
    missed, long = [n for n in range(99) if set(world.homes(n)) == {one, other}][:2]
    await world.client.put(ref(missed), content(missed), replicas=2)
    await world.client.put(ref(long), content(long, 1300 * 512), replicas=2)
    block = world.stores[other].get(place(key(missed)))
    assert block is not None
    world.stores[stranger].put(place(key(missed)), block, True)
    world.stores[other].drop(place(key(missed)))
    node = comes_back_empty(world, one)
    world.network.faults = Faults(min_delay_s=0.4, max_delay_s=0.4)
    began_s = asyncio.get_running_loop().time()
    node.start()
    await until(lambda: one in world.holders(missed), 2 * PATIENCE_S)
    assert asyncio.get_running_loop().time() - began_s > PATIENCE_S
    assert node.joining.catch_up.stats.copied == 2
    node.close()


@in_virtual_time
async def test_a_block_is_repaired_from_the_first_peer_that_has_it() -> None:
    world = World(replicas=1)
    await world.client.put(ref(1), content(1))
    (holder,) = world.homes(1)
    one, other = set(world.nodes) - {holder}
    await world.nodes[one].joining.catch_up.repair(place(key(1)), [other, holder])
    copied, block = (world.stores[at].get(place(key(1))) for at in (one, holder))
    assert copied is not None
    assert block is not None
    assert copied.content == block.content


@in_virtual_time
async def test_a_peer_that_knows_no_deletions_is_asked_for_few_blocks_and_for_all_once_it_knows() -> None:
    """Nodes that were away together asked one another for everything at each pass."""
    world = World(homes=2, replicas=2)
    one, other = (member.address for member in world.members.nodes)
    await put_all(world, 0, BLOCKS)
    node = comes_back_empty(world, one)
    world.nodes[other].joining.missed.in_doubt = True
    node.start()
    await asyncio.sleep(0.5)
    asked = len(world.sent(one, wire.OP_GET))
    assert 0 < asked <= 4 * BLOCKS
    await asyncio.sleep(20)
    assert len(world.sent(one, wire.OP_GET)) == asked
    assert 20 <= len(world.sent(one, wire.OP_STAT)) <= len(world.sent(one, wire.OP_LIST))
    assert not node.joining.caught_up
    world.nodes[other].joining.missed.in_doubt = False
    await until(lambda: len(world.stores[one].places()) >= BLOCKS, 2)
    node.close()


@in_virtual_time
async def test_a_peer_that_can_not_read_some_blocks_now_is_asked_for_the_others() -> None:
    world = World(homes=2, replicas=2)
    one, other = (member.address for member in world.members.nodes)
    await put_all(world, 0, BLOCKS)
    node = comes_back_empty(world, one)
    port, refused = world.network.ports[other], place(key(0))
    hears = port.receiver
    assert hears is not None

    def hear(source: str, datagrams: Sequence[wire.Buffer]) -> None:
        for datagram in datagrams:
            asked = wire.decode(bytes(datagram))
            if asked.op == wire.OP_GET and asked.key == refused.key:
                busy = asked._replace(op=wire.OP_REFUSED, generation=wire.REFUSED_BUSY)
                port.send(source, [wire.encode(busy)])
            else:
                hears(source, [datagram])

    port.set_receiver(hear)
    node.start()
    await asyncio.sleep(0.5)
    assert set(world.stores[one].places()) == {*world.stores[other].places()} - {refused}
    node.close()


@in_virtual_time
async def test_a_peer_that_says_only_what_was_deleted_is_asked_for_its_blocks_again() -> None:
    world = World(homes=2, replicas=2)
    one, other = (member.address for member in world.members.nodes)
    await put_all(world, 0, 3)
    node = comes_back_empty(world, one)
    port = world.network.ports[other]
    hears = port.receiver
    assert hears is not None

    def hear(source: str, datagrams: Sequence[wire.Buffer]) -> None:
        messages = [wire.decode(bytes(datagram)) for datagram in datagrams]
        hears(source, [wire.encode(m) for m in messages if m.op != wire.OP_LIST or m.flags & LIST_FLAGS])

    port.set_receiver(hear)
    node.start()
    await asyncio.sleep(20)
    assert node.joining.catch_up.stats.silent_peers >= 2
    assert not node.joining.caught_up
    port.set_receiver(hears)
    await until(lambda: node.joining.caught_up, 20)
    assert len(world.stores[one].places()) == 3
    node.close()


@in_virtual_time
async def test_a_pass_whose_copies_failed_is_gone_through_again() -> None:
    world = World(homes=2, replicas=2)
    one, other = (member.address for member in world.members.nodes)
    await put_all(world, 0, 3)
    node = comes_back_empty(world, one)
    port = world.network.ports[other]
    hears = make_deaf_to_gets(port)
    node.start()
    await asyncio.sleep(20)
    assert node.joining.catch_up.stats.failed
    assert not node.joining.caught_up
    port.set_receiver(hears)
    await until(lambda: node.joining.caught_up, 20)
    assert all(one in world.holders(n) for n in range(3))
    node.close()


@in_virtual_time
async def test_a_copy_that_is_under_way_counts_when_it_has_ended() -> None:
    world = World(homes=2, replicas=2)
    one, other = (member.address for member in world.members.nodes)
    await put_all(world, 0, 1)
    block = world.stores[other].get(place(key(0)))
    assert block is not None
    entry = Entry(place(key(0)), block.write, block.fragments)
    node = comes_back_empty(world, one)
    catch_up = node.joining.catch_up
    for gives in (False, True):
        hears = make_deaf_to_gets(world.network.ports[other])
        copies = [asyncio.ensure_future(catch_up.copy(other, entry, Patience())) for _ in range(2)]
        await asyncio.sleep(0.01)
        assert not any(copy.done() for copy in copies)
        if gives:
            world.network.ports[other].set_receiver(hears)
        assert await asyncio.gather(*copies) == [gives] * 2
        world.network.ports[other].set_receiver(hears)
    assert catch_up.stats.copied == 1
    node.close()


@in_virtual_time
async def test_what_was_put_by_an_older_list_is_copied_to_who_is_home_by_the_newer() -> None:
    world = World(homes=2)
    number = next(n for n in range(99) if world.homes(n)[0] == world.members.nodes[0].address)
    home, other = world.homes(number, 2)
    world.announce(DOWN, UP)
    world.nodes[home].joining.caught_up = True
    world.announce(UP, UP)
    await asyncio.sleep(0.01)
    before = world.members
    late = world.another_client("10.0.0.2")
    late._exchange.health.members = replace(
        before, epoch=before.epoch - 1, nodes=(replace(before.nodes[0], state=DOWN), before.nodes[1])
    )
    await late.put(ref(number), content(number), durable=True)
    assert world.holders(number) == [other]
    await until(lambda: home in world.holders(number), 10)


@in_virtual_time
async def test_a_peer_that_says_without_end_what_was_deleted_keeps_nobody_away() -> None:
    """Page after page, each just before it is asked for again for the last time."""
    world = World(homes=2, replicas=2)
    one, other = (node.address for node in world.members.nodes)
    port, page = world.network.ports[other], 0

    def answer(source: str, datagrams: Sequence[wire.Buffer]) -> None:
        nonlocal page
        for datagram in datagrams:
            asked = wire.decode(bytes(datagram))
            if asked.op == wire.OP_LIST and asked.flags & wire.FLAG_TOMBSTONES:
                page += 1
                value = (1).to_bytes(2, "big") + page.to_bytes(16, "big")
                keys = wire.encode(asked._replace(op=wire.OP_KEYS, value=value))
                asyncio.get_running_loop().call_later(2.5, port.send, source, [keys])
            elif asked.op == wire.OP_LIST:
                value = make_page([], FIRST, lambda place: None)
                port.send(source, [wire.encode(asked._replace(op=wire.OP_KEYS, value=value))])

    port.set_receiver(answer)
    options = StorageOptions(one, controller="10.255.255.254")
    node = StorageNode(world.network.port(one), world.stores[one], options, world.members)
    node.start()
    await until(lambda: node.joining.caught_up, PATIENCE_S * 3)
    node.close()


def test_patience_with_a_peer_grows_with_what_it_gives_to_a_bound() -> None:
    patience = Patience()
    patience.begin(0.0)
    patience.earned(100)
    earned_s = 100 * FRAGMENT_S
    assert not patience.is_over(PATIENCE_S + earned_s - 0.1)
    assert patience.is_over(PATIENCE_S + earned_s)
    patience.end(30.0)
    patience.begin(1000.0)  # nothing passes while it is not asked
    assert not patience.is_over(1000.0 + PATIENCE_S + earned_s - 30.1)
    patience.earned(10**9)
    assert patience.is_over(1000.0 + PATIENCE_S + MAX_EARNED_S - 30.0)
