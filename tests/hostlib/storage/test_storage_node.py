"""What a storage node does when more waits for its disk than it takes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from experiments.simulate_faults.virtual_time import run_virtual
from hostlib.protocol import wire
from hostlib.protocol.block import Place
from hostlib.protocol.catalog import FIRST
from hostlib.protocol.errors import DiskError, PutRefusedError
from hostlib.protocol.hints import Hint
from hostlib.protocol.members import State
from hostlib.protocol.tombstones import Tombstone, delete_message
from hostlib.storage import storage_node, waiting_acks, waiting_gets
from hostlib.storage.store import BlockStore
from tests.asynchronous import in_virtual_time, until
from tests.hostlib.sealed import SEAL, TENANT, WRITE, fragments, place
from tests.hostlib.world import FRAGMENTS, NODE, World, content, key, ref

pytestmark = pytest.mark.usefixtures("either_core")

BLOCKS = 12


async def put_all(world: World, replicas: int) -> None:
    for number in range(BLOCKS):
        await world.client.put(ref(number), content(number), durable=True, replicas=replicas)
    await asyncio.sleep(0.1)  # all but the last left DRAM for the disk


@pytest.mark.parametrize(
    "bound", ["MAX_WAITING_BLOCKS", "MAX_WAITING_OF_TENANT", "MAX_WAITING_GETS", "MAX_WAITING_GETS_OF_TENANT"]
)
def test_what_there_is_no_room_for_is_refused_as_busy_and_comes_later(
    monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    async def main() -> None:
        world = World(homes=1, dram_bytes=1)
        await put_all(world, 1)
        (home,) = world.nodes
        reader = world.another_client("10.0.0.2")
        both = (world.client, reader)
        blocks = await asyncio.gather(*(one.get(ref(n)) for n in range(BLOCKS - 1) for one in both))
        assert [block.content for block in blocks[::2]] == [content(n) for n in range(BLOCKS - 1)]
        refused = world.sent(home, wire.OP_REFUSED)
        assert refused
        assert {message.generation for _, message in refused} == {wire.REFUSED_BUSY}
        assert world.nodes[home].stats.overloaded == len(refused)

    monkeypatch.setattr(waiting_gets, bound, 1 if bound == "MAX_WAITING_GETS" else 4)
    run_virtual(main())


@in_virtual_time
async def test_a_block_that_changes_while_it_is_read_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its new record is like: one that can't be read must not end the reader."""
    world = World(homes=1, dram_bytes=1)
    ((home, node),) = world.nodes.items()
    await put_all(world, 1)
    load, calls = node._store.load, 0

    async def changes(where: Place, ahead: bool) -> None:
        nonlocal calls
        calls += 1
        if calls > 1:
            await load(where, ahead)

    monkeypatch.setattr(node._store, "load", changes)
    world.network.deliver(NODE, home, wire.encode(wire.Message(wire.OP_GET, key(0), 0, 0, tenant=TENANT)))
    await asyncio.sleep(0.1)
    ((_, value),) = world.sent(home, wire.OP_VALUE)
    assert (value.key, calls) == (key(0), 2)
    assert not world.sent(home, wire.OP_REFUSED)


@in_virtual_time
async def test_more_than_a_minute_of_work_is_said_as_the_most_that_can_be_said() -> None:
    world = World(homes=1, dram_bytes=1)
    ((home, node),) = world.nodes.items()
    await put_all(world, 1)
    node.set_ssd_rate(1.0)
    get = wire.Message(wire.OP_GET, key(0), 0, 0, tenant=TENANT)
    stat = wire.Message(wire.OP_STAT, key(1), 0, 0, tenant=TENANT)
    for asked in (get, stat):
        world.network.deliver(NODE, home, wire.encode(asked))
    ((_, found),) = world.sent(home, wire.OP_FOUND)
    assert found.backlog_ms == 0xFFFF


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize(("waits_s", "said_ms"), [(3.0, 3000), (100.0, 0xFFFF)])
@in_virtual_time
async def test_who_puts_a_block_is_told_how_long_the_next_one_waits(
    monkeypatch: pytest.MonkeyPatch, waits_s: float, said_ms: int, durable: bool
) -> None:
    monkeypatch.setattr(BlockStore, "commit_wait_s", lambda store: waits_s)
    world = World(homes=1)
    (home,) = world.nodes
    for message in fragments(wire.OP_PUT, key(1), content(1), flags=wire.FLAG_DURABLE * durable):
        world.network.deliver(NODE, home, wire.encode(message))
    await asyncio.sleep(0.1)
    assert {ack.backlog_ms for _, ack in world.sent(home, wire.OP_PUT_ACK)} == {said_ms}


@in_virtual_time
async def test_a_deletion_is_answered_with_what_was_asked_for() -> None:
    world = World(homes=1)
    (home,) = world.nodes
    stone = Tombstone(place(key(1)), 5, bytes(16))
    world.network.deliver(NODE, home, delete_message(stone, FRAGMENTS, 77))
    await asyncio.sleep(0.1)
    ((to, done),) = world.sent(home, wire.OP_DELETED)
    asked = wire.Message(wire.OP_DELETED, key(1), 0, FRAGMENTS, sequence=77, tenant=TENANT, content=5)
    assert (to, done) == (NODE, asked)


@in_virtual_time
async def test_a_question_is_no_order_whatever_its_other_fields_say() -> None:
    world = World(homes=1)
    (home,) = world.nodes
    await world.client.put(ref(1), content(1))
    question = wire.Message(wire.OP_STAT, key(1), 0, 0, backlog_ms=Hint.EXPIRE, generation=1, tenant=TENANT)
    world.network.deliver(NODE, home, wire.encode(question))
    ((_, found),) = world.sent(home, wire.OP_FOUND)
    assert (found.flags, found.fragments) == (0, FRAGMENTS)
    assert world.stores[home].lifetimes.next_s() is None


def test_a_busy_home_is_left_for_the_replica_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        world = World(homes=2, replicas=2, dram_bytes=1)
        await put_all(world, 2)
        first = world.homes(0)[0]
        number = next(n for n in range(1, BLOCKS) if world.homes(n)[0] == first)
        blocks = await asyncio.gather(world.client.get(ref(0)), world.client.get(ref(number)))
        assert world.nodes[first].stats.overloaded
        assert [block.content for block in blocks] == [content(0), content(number)]
        assert max(block.elapsed_s for block in blocks) < 0.1
        assert world.client.stats.retransmits == 0

    monkeypatch.setattr(waiting_gets, "MAX_WAITING_BLOCKS", 1)
    run_virtual(main())


@in_virtual_time
async def test_a_put_that_is_repeated_while_its_block_is_synced_waits_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(homes=1)
    (node,), (store,) = world.nodes.values(), world.stores.values()
    waited: list[object] = []
    when_safe = store.when_safe

    def count(place: Place, done: Callable[[DiskError | None], None]) -> None:
        waited.append(place)
        when_safe(place, done)

    monkeypatch.setattr(store, "when_safe", count)
    writing = asyncio.create_task(world.client.put(ref(1), content(1), durable=True))
    while not waited:
        await asyncio.sleep(0.0005)
    last = wire.encode(world.sent(NODE, wire.OP_PUT)[-1][1])
    for _ in range(50):
        node._on_datagrams(NODE, [last])
    await writing
    assert len(waited) == 1


@in_virtual_time
async def test_who_repeats_a_put_of_a_block_that_another_made_is_not_told_that_it_made_it() -> None:
    world = World(homes=1)
    ((home, node),) = world.nodes.items()
    writing = asyncio.create_task(world.client.put(ref(1), content(1), durable=True))
    while not node._puts._acks:
        await asyncio.sleep(0.0005)
    last = wire.encode(world.sent(NODE, wire.OP_PUT)[-1][1])
    other = "10.0.0.77"
    for _ in range(2):
        node._on_datagrams(other, [last])
    await writing
    (ack,) = [message for to, message in world.sent(home, wire.OP_PUT_ACK) if to == other]
    assert ack.flags & (wire.FLAG_HELD | wire.FLAG_CREATED) == wire.FLAG_HELD


@pytest.mark.parametrize("flags", [wire.FLAG_DURABLE, 0])
@in_virtual_time
async def test_a_put_is_not_acknowledged_when_a_write_is_synced_that_was_deleted_before_it_came(
    monkeypatch: pytest.MonkeyPatch, flags: int
) -> None:
    """Also the one whose write it was: another one is there then, in memory alone perhaps."""

    async def commit_slowly(work: Callable[[], None]) -> None:
        await asyncio.sleep(0.1)
        work()

    monkeypatch.setattr("tests.hostlib.world.commit_in_virtual_time", commit_slowly)
    world = World(homes=1)
    ((home, node),) = world.nodes.items()
    first = asyncio.create_task(world.client.put(ref(1), content(1), durable=True))
    await until(lambda: node._puts._acks)
    await asyncio.sleep(0.01)  # the disk is at it
    held = world.sent(NODE, wire.OP_PUT)[0][1]
    proof = SEAL.proof(key(1), FRAGMENTS, held.content, held.value)
    node._on_datagrams(NODE, [delete_message(Tombstone(place(key(1)), held.content, proof), FRAGMENTS, 1)])
    assert not world.holders(1)
    puts = [wire.encode(put) for put in fragments(wire.OP_PUT, key(1), content(2), flags=flags)]
    node._on_datagrams("10.0.0.77", puts)
    await until(lambda: "10.0.0.77" in {to for to, ack in world.sent(home, wire.OP_PUT_ACK) if is_held(ack)})
    if not flags:
        await first
        await asyncio.sleep(1)
    world.kill(home)
    world.restart(home)
    assert world.stores[home].find(place(key(1))) == (len(content(2)), WRITE)
    first.cancel()


@in_virtual_time
async def test_a_block_that_was_refused_as_its_sync_failed_and_deleted_is_not_back_after_a_restart() -> None:
    world = World(homes=1)
    (home,) = world.nodes
    world.disks[home].syncs_nothing = True
    with pytest.raises(PutRefusedError):
        await world.client.put(ref(1), content(1), durable=True)
    world.disks[home].syncs_nothing = False
    await world.client.delete(ref(1))
    world.kill(home)
    world.restart(home)
    assert not world.holders(1)


def is_held(ack: wire.Message) -> bool:
    return bool(ack.flags & wire.FLAG_HELD)


@in_virtual_time
async def test_where_no_more_acknowledgements_may_wait_who_waits_already_gets_its_newest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each sender has one acknowledgement waiting for a fragment, which echoes what it sent last."""
    monkeypatch.setattr(waiting_acks, "MAX_WAITING_ACKS", 1)
    world = World(homes=1)
    ((home, node),) = world.nodes.items()
    writing = asyncio.create_task(world.client.put(ref(1), content(1), durable=True))
    while not node._puts._acks:
        await asyncio.sleep(0.0005)
    last = world.sent(NODE, wire.OP_PUT)[-1][1]
    node._on_datagrams("10.0.0.77", [wire.encode(last)])
    node._on_datagrams(NODE, [wire.encode(last._replace(sequence=99_999))])
    assert node.stats.overloaded == 1
    await writing
    held = [to for to, ack in world.sent(home, wire.OP_PUT_ACK) if ack.flags & wire.FLAG_HELD]
    assert set(held) == {NODE}
    assert 99_999 in {ack.sequence for _, ack in world.sent(home, wire.OP_PUT_ACK)}


@pytest.mark.parametrize("bound", ["MAX_WAITING_RECORDS", "MAX_WAITING_ORDERS"])
@pytest.mark.parametrize("keys", [1, 60])
@in_virtual_time
async def test_what_waits_of_deletions_while_a_disk_does_nothing_is_bounded(
    monkeypatch: pytest.MonkeyPatch, bound: str, keys: int
) -> None:
    """Of made-up ones, of one block or of many, new ones and repeated ones."""
    monkeypatch.setattr(storage_node, bound, 20)
    world = World(homes=1)
    ((home, node),) = world.nodes.items()
    store = world.stores[home]
    for number in range(300):
        place = Place(TENANT, key(number % keys))
        stone = Tombstone(place, 1 + number // 2, bytes([number % 7]) * 16)
        node._on_datagrams("10.0.0.66", [delete_message(stone, FRAGMENTS, number)])
        assert node._orders_waiting <= storage_node.MAX_WAITING_ORDERS
        assert store.waiting_records <= storage_node.MAX_WAITING_RECORDS + 2
    assert node.stats.overloaded or node.stats.refused
    await asyncio.sleep(1)
    assert (node._orders_waiting, store.waiting_records) == (0, 0)
    await world.client.put(ref(1000), content(1000), durable=True)
    assert await world.client.delete(ref(1000))


@pytest.mark.parametrize("durable", [False, True])
@in_virtual_time
async def test_a_home_says_once_that_a_put_has_made_the_block(durable: bool) -> None:
    """Whoever puts it again, and whatever is sent again meanwhile, did not."""
    world = World(homes=2, replicas=2)
    made = wire.FLAG_HELD | wire.FLAG_CREATED
    for created in (1, 1):
        await world.client.put(ref(1), content(1), durable=durable, replicas=2)
        for home in world.homes(1):
            acks = [message for _, message in world.sent(home, wire.OP_PUT_ACK)]
            assert sum(ack.flags & made == made for ack in acks) == created
    write = next(message.content for _, message in world.sent(world.homes(1)[0], wire.OP_PUT_ACK))
    assert {message.content for _, message in world.sent(world.homes(1)[1], wire.OP_PUT_ACK)} == {write}


@in_virtual_time
async def test_what_waits_of_lifetimes_while_a_disk_does_nothing_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sender of the block repeats a lifetime that it can prove."""
    monkeypatch.setattr(storage_node, "MAX_WAITING_ORDERS", 20)
    world = World(homes=1)
    ((home, node),) = world.nodes.items()
    await world.client.put(ref(1), content(1), durable=True)
    held = await world.client._deletions.write_at(ref(1), home)
    assert held is not None
    order = wire.Message(
        wire.OP_STAT, key(1), 0, held[1], wire.FLAG_BYPASS | wire.FLAG_HINT, generation=100,
        content=held[0].write, backlog_ms=Hint.EXPIRE, tenant=TENANT, tag=held[0].proof,
    )  # fmt: skip
    for number in range(100):
        node._on_datagrams("10.0.0.66", [wire.encode(order._replace(sequence=number))])
    assert node.stats.overloaded == 80
    await asyncio.sleep(1)
    assert len([True for to, _ in world.sent(home, wire.OP_FOUND) if to == "10.0.0.66"]) == 20
    assert node._orders_waiting == 0


@in_virtual_time
async def test_acknowledgements_that_wait_for_a_disk_are_bounded_over_all_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever made them up: a block that is here is acknowledged for fragments that it does not have, too."""
    monkeypatch.setattr(waiting_acks, "MAX_WAITING_ACKS_OF_ALL", 30)
    world = World(homes=1)
    (node,) = world.nodes.values()
    puts = fragments(wire.OP_PUT, key(1), content(1), flags=wire.FLAG_DURABLE)
    for number in range(8):
        made = [wire.encode(put._replace(key=key(number))) for put in puts]
        node._on_datagrams(NODE, made)
        for fragment in range(10, 20):
            again = puts[0]._replace(key=key(number), fragment=fragment, fragments=1000)
            node._on_datagrams("10.0.0.77", [wire.encode(again)])
    assert len(node._puts._acks) == 30
    await asyncio.sleep(1)
    assert not node._puts._acks


@in_virtual_time
async def test_a_wrong_proof_has_no_block_read_from_the_disk() -> None:
    """Else anybody has a home read its largest blocks, at once and before what others wait for."""
    world = World(homes=1, dram_bytes=1)
    ((home, node),) = world.nodes.items()
    for number in (1, 2):
        await world.client.put(ref(number), content(number), durable=True)
    held = await world.client._deletions.write_at(ref(1), home)
    assert held is not None
    await world.client.get(ref(2))
    disk, name = world.disks[home], place(key(1)).name()
    disk._seen[name] = disk._seen[name][:-1] + bytes([disk._seen[name][-1] ^ 1])
    wrong = held[0]._replace(proof=bytes(16))
    node._on_datagrams("10.0.0.66", [delete_message(wrong, FRAGMENTS, 0)])
    assert [m.generation for _, m in world.sent(home, wire.OP_REFUSED)] == [wire.REFUSED_PROOF]
    assert world.holders(1) == [home]
    node._on_datagrams(NODE, [delete_message(held[0], FRAGMENTS, 0)])
    assert not world.holders(1)


@pytest.mark.parametrize("is_storage_node", [True, False])
@in_virtual_time
async def test_only_another_storage_node_says_of_a_deletion_that_it_is_of_another_host(
    is_storage_node: bool,
) -> None:
    """Else a host could have its deletions displace another's."""
    world = World(homes=2)
    home, peer = world.nodes
    sender = peer if is_storage_node else NODE
    stone = Tombstone(place(key(1)), 5, bytes(16))
    world.network.deliver(sender, home, delete_message(stone, FRAGMENTS, source="10.0.0.77"))
    source = world.stores[home].graveyard.stones.source_of(stone)
    assert source == ("10.0.0.77" if is_storage_node else NODE)


@in_virtual_time
async def test_whoever_asks_and_answers_says_by_which_list() -> None:
    world = World(homes=1)
    epoch = world.announce(State.UP).epoch
    (home,) = world.nodes
    await world.client.put(ref(1), content(1))
    await world.client.get(ref(1))
    assert await world.client.delete(ref(1))
    for sender, ops in (
        (NODE, (wire.OP_PUT, wire.OP_GET, wire.OP_DELETE)),
        (home, (wire.OP_PUT_ACK, wire.OP_VALUE, wire.OP_DELETED)),
    ):
        for op in ops:
            assert {message.epoch for _, message in world.sent(sender, op)} == {epoch}


@in_virtual_time
async def test_who_doubts_what_was_deleted_does_not_say_that_it_lists_all() -> None:
    world = World(homes=2)
    home, peer = world.nodes
    asked = wire.Message(wire.OP_LIST, FIRST.key, 0, 0, wire.FLAG_TOMBSTONES, tenant=FIRST.tenant)
    for in_doubt in (False, True):
        world.nodes[home].joining.missed.in_doubt = in_doubt
        world.network.deliver(peer, home, wire.encode(asked))
        await asyncio.sleep(0.1)
    assert [bool(page.flags & wire.FLAG_HELD) for _, page in world.sent(home, wire.OP_KEYS)] == [True, False]
