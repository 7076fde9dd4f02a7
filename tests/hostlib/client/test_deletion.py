"""A tenant's blocks are deleted: everywhere, for good, by nobody else, and stored anew afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.client.client import Client
from hostlib.client.client_options import ClientOptions
from hostlib.protocol import wire
from hostlib.protocol.content import sealed_block
from hostlib.protocol.errors import (
    DeleteRefusedError,
    PutRefusedError,
    TransferError,
    TransferTimeoutError,
)
from hostlib.protocol.seal import Seal
from hostlib.protocol.tombstones import Tombstone
from tests.asynchronous import in_virtual_time, until
from tests.hostlib.deletions import DOWN, UP, absent_home, is_found, listens_to_no_list, write_at
from tests.hostlib.network import Faults
from tests.hostlib.sealed import SEAL, TENANT, place
from tests.hostlib.world import FRAGMENTS, NODE, PATIENT, World, content, key, ref

CONTROLLER = "10.255.255.254"
pytestmark = pytest.mark.usefixtures("either_core")


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("replicas", [1, 2])
@in_virtual_time
async def test_a_deleted_block_is_nowhere_and_its_neighbours_stay(replicas: int, durable: bool) -> None:
    world = World(replicas=replicas)
    for n in (1, 2):
        await world.client.put(ref(n), content(n), durable=durable, replicas=replicas)
    assert await world.client.delete(ref(1))
    assert not world.holders(1)
    assert not await is_found(world.client, 1)
    assert await is_found(world.client, 2)
    assert not await world.client.delete(ref(1))
    assert world.client.stats.blocks_deleted == 1


@in_virtual_time
async def test_only_what_was_not_answered_is_asked_for_as_a_repetition() -> None:
    """A switch lets repetitions past what it merges."""
    world = World(replicas=2)
    await world.client.put(ref(1), content(1), replicas=2)
    await world.client.delete(ref(1))
    assert not [one for _, one in world.sent(NODE, wire.OP_GET) if one.flags & wire.FLAG_RETRY]
    await world.client.put(ref(1), content(1), replicas=2)
    world.network.faults = Faults(lost=0.5)
    await world.client.delete(ref(1))
    assert [one for _, one in world.sent(NODE, wire.OP_GET) if one.flags & wire.FLAG_RETRY]


@in_virtual_time
async def test_what_nobody_stored_is_not_there_to_be_deleted() -> None:
    world = World()
    assert not await world.client.delete(ref(1))


@in_virtual_time
async def test_a_block_that_is_stored_again_is_there_again() -> None:
    world = World(replicas=2)
    for again in range(3):
        await world.client.put(ref(1), content(again), durable=True, replicas=2)
        assert (await world.client.get(ref(1))).content == content(again)
        assert await world.client.delete(ref(1))
        assert not await is_found(world.client, 1)


@in_virtual_time
async def test_a_replayed_delete_does_not_touch_what_was_stored_later() -> None:
    world = World()
    await world.client.put(ref(1), content(1), durable=True)
    await world.client.delete(ref(1))
    await world.client.put(ref(1), content(2), durable=True)
    for to, data in [(to, wire.encode(message)) for to, message in world.sent(NODE, wire.OP_DELETE)]:
        world.network.deliver("10.0.0.66", to, data)
    await asyncio.sleep(1)
    assert (await world.client.get(ref(1))).content == content(2)


@pytest.mark.parametrize("proof", [bytes(16), b"tag of 16 bytes."])
@in_virtual_time
async def test_who_lacks_the_secret_deletes_nothing(proof: bytes) -> None:
    """It knows key, content id and length, and may send as the tenant."""
    world = World()
    await world.client.put(ref(1), content(1))
    (home,) = world.holders(1)
    forged = wire.Message(
        wire.OP_DELETE, key(1), 0, FRAGMENTS, tenant=TENANT, content=write_at(world, home, 1), tag=proof
    )
    for address in world.stores:
        world.network.deliver("10.0.0.66", address, wire.encode(forged))
    await asyncio.sleep(1)
    assert await is_found(world.client, 1)
    refused = [message for _, message in world.sent(home, wire.OP_REFUSED)]
    assert [message.generation for message in refused] == [wire.REFUSED_PROOF]


@in_virtual_time
async def test_the_tag_that_everybody_sees_is_no_proof() -> None:
    world = World()
    await world.client.put(ref(1), content(1))
    await world.client.get(ref(1))
    (home,) = world.holders(1)
    seen = next(m for _, m in world.sent(home, wire.OP_VALUE) if not m.fragment)
    forged = wire.Message(
        wire.OP_DELETE, key(1), 0, FRAGMENTS, tenant=TENANT, content=seen.content, tag=seen.tag
    )
    world.network.deliver("10.0.0.66", home, wire.encode(forged))
    await asyncio.sleep(1)
    assert await is_found(world.client, 1)


@in_virtual_time
async def test_another_tenant_deletes_nothing_though_it_knows_the_key() -> None:
    world = World()
    await world.client.put(ref(1), content(1))
    port = world.network.port("10.0.0.2")
    other = Client(port, world.members, Seal(TENANT, b"another secret of 16 bytes and more"))
    assert not await other.delete(ref(1))
    assert await is_found(world.client, 1)


@in_virtual_time
async def test_what_was_made_up_beforehand_keeps_no_block_out() -> None:
    """A storage node that lacks a block takes any tombstone of it: a wrong proof matches nothing."""
    made_up = ClientOptions(new_content=lambda: 77)
    world = World(options=made_up)
    forged = wire.Message(
        wire.OP_DELETE, key(1), 0, FRAGMENTS, tenant=TENANT, content=77, tag=b"tag of 16 bytes."
    )
    for address in world.stores:
        world.network.deliver("10.0.0.66", address, wire.encode(forged))
    await world.client.put(ref(1), content(1), durable=True)
    assert await is_found(world.client, 1)


@in_virtual_time
async def test_both_of_two_writes_of_one_block_are_deleted() -> None:
    world = World(replicas=2)
    first, second = world.homes(1)
    await world.client.put(ref(1), content(1))
    another = sealed_block(SEAL, key(1), 99, content(2))
    world.stores[second].put(place(key(1)), another, durable=False)
    assert write_at(world, first, 1) != write_at(world, second, 1)
    assert await world.client.delete(ref(1))
    assert not world.holders(1)


@in_virtual_time
async def test_it_is_deleted_only_when_every_storage_node_that_is_up_says_so() -> None:
    world = World(replicas=2)
    await world.client.put(ref(1), content(1), replicas=2)
    world.network.dead.add(world.homes(1)[1])
    with pytest.raises(TransferTimeoutError, match="does not say that it is deleted"):
        await world.client.delete(ref(1))


@in_virtual_time
async def test_who_is_down_is_not_waited_for() -> None:
    world = World(replicas=2)
    await world.client.put(ref(1), content(1), durable=True, replicas=2)
    gone = world.members.nodes[0].address
    world.kill(gone)
    world.announce(DOWN, UP, UP)
    await asyncio.sleep(0.1)
    assert await world.client.delete(ref(1))


@in_virtual_time
async def test_a_disk_that_fails_is_said() -> None:
    world = World(homes=1)
    await world.client.put(ref(1), content(1), durable=True)
    (disk,) = world.disks.values()
    disk.failing = True
    with pytest.raises(DeleteRefusedError, match="disk does not take it"):
        await world.client.delete(ref(1))
    disk.failing = False
    await asyncio.sleep(2)
    await world.client.delete(ref(1))


@in_virtual_time
async def test_a_pool_is_asked_also_when_all_homes_are_silent() -> None:
    """It may have the only copy, as the home that is back lost what was in its memory."""
    world = World()
    (home,) = world.homes(1)
    world.network.dead.add(home)
    with pytest.raises(TransferError):
        await world.client.get(ref(1))
    assert world.client.suspects == [home]
    world.network.log.clear()
    deletion = asyncio.ensure_future(world.client.delete(ref(1)))
    await asyncio.sleep(0.5)
    world.network.dead.clear()
    assert not await deletion
    gets = [message for _, message in world.sent(NODE, wire.OP_GET) if message.key == key(1)]
    assert any(not message.flags & wire.FLAG_BYPASS for message in gets)


@in_virtual_time
async def test_a_peer_that_lists_what_was_deleted_is_told() -> None:
    """Its deletion was never acknowledged there: the client gave up."""
    world = World(replicas=2)
    await world.client.put(ref(1), content(1), replicas=2)
    first, second = world.homes(1)
    world.network.dead.add(second)
    with pytest.raises(TransferTimeoutError):
        await world.client.delete(ref(1))
    world.network.dead.clear()
    if first in world.holders(1):  # it was not told before the other did not say what it has
        await world.client.delete(ref(1))
    world.nodes[first].start()
    await until(lambda: not world.holders(1))


@in_virtual_time
async def test_a_put_of_the_write_that_was_deleted_is_refused() -> None:
    """It went on at another home while the first one's copy was found and deleted."""
    world = World(homes=2, replicas=2)
    first, second = world.homes(1)
    await world.client.put(ref(1), content(1))
    datagrams = [
        (to, data) for source, to, data in world.network.log if data[1] == wire.OP_PUT and source == NODE
    ]
    await world.client.delete(ref(1))
    for _, data in datagrams:
        for home in (first, second):
            world.network.deliver(NODE, home, data)
    await asyncio.sleep(0.1)
    assert not world.holders(1)
    reasons = {m.generation for home in (first, second) for _, m in world.sent(home, wire.OP_REFUSED)}
    assert reasons == {wire.REFUSED_DELETED}
    assert world.stores[second].stats.came_back == 1


@in_virtual_time
async def test_the_writer_is_told_that_its_write_was_deleted() -> None:
    world = World(homes=2, replicas=2, options=ClientOptions(new_content=lambda: 78))
    await world.client.put(ref(1), content(1), durable=True)
    await world.client.delete(ref(1))
    with pytest.raises(PutRefusedError, match="it was deleted"):
        await world.client.put(ref(1), content(1), durable=True)


@in_virtual_time
async def test_deletions_at_once_are_bounded_and_all_end() -> None:
    world = World(replicas=2)
    await asyncio.gather(*(world.client.put(ref(n), content(n), replicas=2) for n in range(200)))
    assert all(await asyncio.gather(*(world.client.delete(ref(n)) for n in range(200))))
    assert not any(world.holders(n) for n in range(200))


@pytest.mark.parametrize("answers", [False, True])
@in_virtual_time
async def test_a_controller_is_asked_for_the_pools_of_all_switches(answers: bool) -> None:
    world = World(replicas=2, options=ClientOptions(controller=CONTROLLER))
    world.announce(UP, UP, UP)
    port = world.network.port(CONTROLLER)

    def answer(source: str, datagrams: Sequence[wire.Buffer]) -> None:
        for datagram in datagrams:
            asked = wire.decode(bytes(datagram))
            if asked.op == wire.OP_DELETE and answers:
                assert not world.holders(1)  # the storage nodes were first
                done = asked._replace(
                    op=wire.OP_DELETED, flags=wire.FLAG_HELD, generation=world.members.epoch
                )
                port.send(source, [wire.encode(done)])

    port.set_receiver(answer)
    await world.client.put(ref(1), content(1), replicas=2)
    assert await world.client.delete(ref(1))
    assert world.client.stats.pools_untold == (not answers)
    told = {to for to, _ in world.sent(NODE, wire.OP_DELETE)}
    assert told == {CONTROLLER, *world.stores}


def controller_by_list(world: World, epochs: list[int]) -> None:
    """A controller that answers each DELETE by the next of these lists, by the last again and again, and not
    at all by list 0."""
    port = world.network.port(CONTROLLER)

    def answer(source: str, datagrams: Sequence[wire.Buffer]) -> None:
        for asked in map(wire.decode, map(bytes, datagrams)):
            if asked.op == wire.OP_DELETE and (epoch := epochs.pop(0) if epochs[1:] else epochs[0]):
                done = asked._replace(op=wire.OP_DELETED, flags=wire.FLAG_HELD, generation=epoch)
                port.send(source, [wire.encode(done)])

    port.set_receiver(answer)


@in_virtual_time
async def test_who_is_up_by_the_controllers_earlier_list_deletes_it_too() -> None:
    """The clock of a controller was set back: its lists come before the one that the node goes by."""
    world = World(replicas=3, options=ClientOptions(controller=CONTROLLER))
    await world.client.put(ref(1), content(1), replicas=3)
    earlier = world.announce(UP, UP, UP).epoch
    later = world.announce(DOWN, UP, UP).epoch
    controller_by_list(world, [earlier, earlier, later + 1])
    deletion = asyncio.ensure_future(world.client.delete(ref(1)))
    await asyncio.sleep(0.15)
    assert not deletion.done()
    assert world.holders(1) == [absent_home(world)]
    world.announce(UP, UP, UP)
    assert await deletion
    assert not world.holders(1)


@in_virtual_time
async def test_pools_off_the_way_forget_what_no_storage_node_holds_any_more() -> None:
    """Another deletion of the block is under way, or failed when the storage nodes had obeyed."""
    world = World(replicas=2, options=ClientOptions(controller=CONTROLLER))
    controller_by_list(world, [world.announce(UP, UP, UP).epoch])
    await asyncio.sleep(0.1)
    assert not await world.client.delete(ref(1))
    ((to, asked),) = world.sent(NODE, wire.OP_DELETE)
    assert (to, asked.key, asked.tenant, asked.content) == (CONTROLLER, key(1), TENANT, 0)


@pytest.mark.parametrize("ends_silent", [False, True])
@in_virtual_time
async def test_while_the_controller_goes_by_another_list_nothing_is_said_to_be_deleted(
    ends_silent: bool,
) -> None:
    world = World(replicas=2, options=ClientOptions(controller=CONTROLLER))
    await world.client.put(ref(1), content(1), replicas=2)
    earlier = world.announce(UP, UP, UP).epoch
    world.announce(UP, UP, UP)
    controller_by_list(world, [earlier, 0 if ends_silent else earlier])
    with pytest.raises(TransferTimeoutError, match="changes all the time"):
        async with asyncio.timeout(22):
            await world.client.delete(ref(1))


@given(
    seed=st.integers(0, 1 << 16),
    faults=st.builds(
        Faults,
        lost=st.floats(0, 0.2),
        duplicated=st.floats(0, 0.2),
        corrupted=st.floats(0, 0.1),
        max_delay_s=st.floats(0.001, 0.05),
    ),
    replicas=st.integers(1, 3),
)
@in_virtual_time
async def test_over_a_bad_network_what_is_deleted_stays_away(
    seed: int, faults: Faults, replicas: int
) -> None:
    options = ClientOptions(health=PATIENT)
    world = World(replicas=replicas, faults=faults, seed=seed, options=options)
    try:
        for n in range(4):
            await world.client.put(ref(n), content(n), durable=True, replicas=replicas)
        for n in range(3):
            await world.client.delete(ref(n))
    except TransferError as error:
        assert isinstance(error, TransferTimeoutError)  # noqa: PT017  (very much was lost)
        return
    world.network.faults = Faults()
    await world.client.put(ref(2), content(7), durable=True, replicas=replicas)
    await asyncio.sleep(1)  # what was late or repeated has come
    assert [await is_found(world.client, n) for n in range(4)] == [False, False, True, True]
    assert (await world.client.get(ref(2))).content == content(7)


def test_a_tombstone_says_which_write_it_is_of() -> None:
    value = content(1)[: wire.VALUE_BYTES]
    proof = SEAL.proof(key(1), FRAGMENTS, 5, value)
    tag = SEAL.tag(key(1), 0, FRAGMENTS, 5, value)
    assert Tombstone(place(key(1)), 5, proof).deletes(5, tag)
    assert not Tombstone(place(key(1)), 5, proof).deletes(6, tag)
    assert not Tombstone(place(key(1)), 5, tag).deletes(5, tag)


@in_virtual_time
async def test_a_storage_node_that_refuses_ends_a_deletion_at_once_though_another_is_silent() -> None:
    world = World(homes=2, replicas=2)
    await world.client.put(ref(1), content(1), durable=True, replicas=2)
    refuses, silent = world.homes(1)
    world.disks[refuses].failing = True
    listens_to_no_list(world, silent, op=wire.OP_DELETE)
    with pytest.raises(DeleteRefusedError):
        async with asyncio.timeout(5):
            await world.client.delete(ref(1))


def hears_before_values(world: World, made_of: Callable[[wire.Message], list[wire.Message]]) -> None:
    """Have the node hear what is made of a value before the value itself."""
    port = world.network.ports[NODE]
    hears = port.receiver
    assert hears is not None

    def receive(source: str, datagrams: Sequence[wire.Buffer]) -> None:
        for message in map(wire.decode, datagrams):
            if message.op == wire.OP_VALUE:
                hears(source, [wire.encode(one) for one in made_of(message)])
        hears(source, datagrams)

    port.set_receiver(receive)


@pytest.mark.parametrize("wrong", [1, ClientOptions().corrupt_limit])
@in_virtual_time
async def test_some_damaged_answers_do_not_say_that_there_is_nothing_to_delete(wrong: int) -> None:
    world = World(homes=1)
    await world.client.put(ref(1), content(1))
    hears_before_values(world, lambda value: [value._replace(tag=bytes(16))] * wrong)
    assert await world.client.delete(ref(1))
    assert not world.holders(1)


@pytest.mark.parametrize("lacks", [(wire.OP_NOT_FOUND, 0), (wire.OP_REFUSED, wire.REFUSED_UNREADABLE)])
@in_virtual_time
async def test_that_a_home_lacks_one_write_does_not_say_that_there_is_nothing_to_delete(
    lacks: tuple[int, int],
) -> None:
    """The answer to what a read of the same node asks meanwhile."""
    world = World(homes=1)
    await world.client.put(ref(1), content(1))
    op, why = lacks
    hears_before_values(
        world,
        lambda value: [value._replace(op=op, generation=why, content=5, tag=bytes(16), value=b"")],
    )
    assert await world.client.delete(ref(1))
    assert not world.holders(1)


@in_virtual_time
async def test_an_answer_that_the_network_repeats_at_once_disturbs_nothing() -> None:
    world = World(homes=1)
    await world.client.put(ref(1), content(1))
    port = world.network.ports[NODE]
    hears = port.receiver
    assert hears is not None
    errors: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: errors.append(context))
    port.set_receiver(lambda source, datagrams: hears(source, [*datagrams, *datagrams]))
    assert await world.client.delete(ref(1))
    assert not errors


@in_virtual_time
async def test_a_deletion_waits_for_the_list_by_which_a_storage_node_goes() -> None:
    """By that list there may be others who hold the block."""
    controller = "10.255.255.254"
    world = World(homes=2, replicas=2, options=ClientOptions(controller=controller))
    world.announce(UP, UP)
    await world.client.put(ref(1), content(1), replicas=2)
    world.members = replace(world.members, epoch=world.members.epoch + 1)
    newer = wire.Message(wire.OP_MEMBERS, bytes(16), 0, 0, value=world.members.encode())
    for home in world.nodes:
        world.network.deliver(controller, home, wire.encode(newer))
    deletion = asyncio.create_task(world.client.delete(ref(1)))
    await asyncio.sleep(5)
    assert not deletion.done()
    assert len(world.sent(NODE, wire.OP_HELLO)) > 2  # it asks for the list again and again
    world.network.deliver(controller, NODE, wire.encode(newer))
    assert await deletion
