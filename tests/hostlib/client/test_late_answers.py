"""The network repeats packets or delays them: an answer does not count for a later question."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

import pytest

from hostlib.protocol import wire
from hostlib.protocol.errors import BlockNotFoundError
from hostlib.protocol.hints import Hint, HintOutcome
from tests.asynchronous import in_virtual_time
from tests.hostlib.deletions import is_found
from tests.hostlib.network import Faults
from tests.hostlib.world import NODE, World, content, ref

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from hostlib.transport.transport import Receiver

Result = TypeVar("Result")
OTHER = "10.0.0.2"

pytestmark = pytest.mark.usefixtures("either_core")


def said(world: World, op: int) -> list[tuple[str, bytes]]:
    """Answers of one operation that the client got so far, with the addresses that they came from."""
    log = world.network.log
    return [(source, data) for source, to, data in log if to == NODE and wire.op_of(data) == op]


def sent(world: World, op: int) -> list[tuple[str, bytes]]:
    """Requests of one operation that the client has sent, with the addresses that they went to."""
    return [(to, data) for source, to, data in world.network.log if source == NODE and wire.op_of(data) == op]


async def beside(world: World, late: list[tuple[str, bytes]], work: Coroutine[None, None, Result]) -> Result:
    """Have these answers come again and again while the client does something."""
    assert late

    async def arrive() -> None:
        while True:
            for source, data in late:
                world.network.deliver(source, NODE, data)
            await asyncio.sleep(0.0002)

    repeats = asyncio.create_task(arrive())
    try:
        return await work
    finally:
        repeats.cancel()


@pytest.mark.parametrize("replicas", [1, 2])
@in_virtual_time
async def test_a_deletion_asks_anew_what_there_is(replicas: int) -> None:
    world = World(homes=2, replicas=replicas)
    assert not await world.client.delete(ref(1))
    late = said(world, wire.OP_NOT_FOUND)
    await world.client.put(ref(1), content(1), replicas=replicas)
    assert await beside(world, late, world.client.delete(ref(1)))
    assert not world.holders(1)


@pytest.mark.parametrize("durable", [False, True])
@in_virtual_time
async def test_a_put_counts_when_it_is_acknowledged_itself(durable: bool) -> None:
    world = World(homes=2)
    await world.client.put(ref(1), content(1), durable=durable)
    late = said(world, wire.OP_PUT_ACK)
    await world.client.delete(ref(1))
    await beside(world, late, world.client.put(ref(1), content(2), durable=durable))
    assert world.holders(1)
    assert (await world.client.get(ref(1))).content == content(2)


@pytest.mark.parametrize("durable", [False, True])
@in_virtual_time
async def test_a_put_that_another_write_answered_is_not_stored_after_the_deletion(durable: bool) -> None:
    world = World(homes=2, replicas=2)
    await world.client.put(ref(1), content(1), durable=durable, replicas=2)
    first = len(world.network.log)
    await world.client.put(ref(1), content(2), durable=durable, replicas=2)
    late = [data for _, _, data in world.network.log[first:] if wire.op_of(data) == wire.OP_PUT]
    assert late
    assert await world.client.delete(ref(1))
    for home in world.homes(1):
        for data in late:
            world.network.deliver(NODE, home, data)
    await asyncio.sleep(0.1)
    assert not world.holders(1)
    await world.client.put(ref(1), content(3), durable=durable, replicas=2)
    assert (await world.client.get(ref(1))).content == content(3)


@in_virtual_time
async def test_a_deleted_write_is_not_read_from_an_answer_of_before() -> None:
    world = World(homes=2)
    await world.client.put(ref(1), content(1, 100))
    assert await is_found(world.client, 1)
    late = said(world, wire.OP_VALUE)
    await world.client.delete(ref(1))
    with pytest.raises(BlockNotFoundError):
        await beside(world, late, world.client.get(ref(1)))
    await world.client.put(ref(1), content(2, 100))
    assert (await beside(world, late, world.client.get(ref(1)))).content == content(2, 100)


@pytest.mark.parametrize("asks", [False, True])
@in_virtual_time
async def test_what_was_not_there_before_a_put_is_found_behind_it(asks: bool) -> None:
    world = World(homes=2)
    assert not await world.client.exists([ref(1)])
    assert not await world.client.delete(ref(1))  # asks past the pool
    late = said(world, wire.OP_NOT_FOUND)
    await world.client.put(ref(1), content(1))
    if asks:
        assert await beside(world, late, world.client.exists([ref(1)])) == 1
    else:
        assert (await beside(world, late, world.client.get(ref(1)))).content == content(1)


@pytest.mark.parametrize("replicas", [1, 2])
@in_virtual_time
async def test_what_a_disk_could_not_give_before_a_put_is_found_behind_it(replicas: int) -> None:
    """The homes have given up what was damaged meanwhile, and hold the block anew."""
    world = World(homes=2, replicas=replicas)
    with pytest.raises(BlockNotFoundError):
        await world.client.get(ref(1))
    said_so = [(home, wire.decode(data)) for home, data in said(world, wire.OP_NOT_FOUND)]
    late = [
        (home, wire.encode(message._replace(op=wire.OP_REFUSED, generation=wire.REFUSED_UNREADABLE)))
        for home, message in said_so
    ]
    await world.client.put(ref(1), content(1), replicas=replicas)
    assert (await beside(world, late, world.client.get(ref(1)))).content == content(1)


@in_virtual_time
async def test_an_answer_to_an_earlier_read_is_no_reason_to_wait() -> None:
    """A switch lets a read wait for what the same node asked for before."""
    world = World(homes=2)
    await world.client.put(ref(1), content(1))
    assert await is_found(world.client, 1)
    late = said(world, wire.OP_VALUE)
    read = asyncio.create_task(world.client.get(ref(1)))
    await asyncio.sleep(0.0005)
    asked_s = asyncio.get_running_loop().time()
    world.network.dead.update(world.homes(1))  # the switch has absorbed the question
    await asyncio.sleep(0.001)
    world.network.dead.clear()
    for source, data in late:
        world.network.deliver(source, NODE, data)
    assert (await read).content == content(1)
    assert asyncio.get_running_loop().time() - asked_s < 0.02


@pytest.mark.parametrize("ran_s", [0, 2400])
@in_virtual_time
async def test_what_answers_an_earlier_program_of_the_node_counts_for_nothing(ran_s: int) -> None:
    """The later one began to count its messages anew; the numbers begin anew after 4,295 s."""
    world = World(homes=2)
    await asyncio.sleep(ran_s)
    await world.client.put(ref(1), content(1))
    for _ in range(20):
        await world.client.get(ref(1))
    late = said(world, wire.OP_VALUE)
    await world.client.delete(ref(1))
    world.client.close()
    await asyncio.sleep(1)
    again = world.another_client(NODE)
    world.network.faults = Faults(min_delay_s=0.01, max_delay_s=0.01)
    with pytest.raises(BlockNotFoundError):
        await beside(world, late, again.get(ref(1)))


@in_virtual_time
async def test_an_order_counts_when_it_is_answered_itself_also_after_a_restart() -> None:
    world = World(homes=2)
    await world.client.put(ref(1), content(1))
    assert await world.client.hint(ref(1), Hint.EXPIRE, 100) is HintOutcome.DONE
    late = [(source, data) for source, data in said(world, wire.OP_FOUND) if wire.decode(data).flags]
    world.client.close()
    await asyncio.sleep(1)
    again = world.another_client(NODE)
    for home in world.homes(1):
        world.network.ports[home].set_receiver(only_gets(world.network.ports[home].receiver))
    assert await beside(world, late, again.hint(ref(1), Hint.EXPIRE, 1)) is HintOutcome.NO_ANSWER


def only_gets(hears: Receiver | None) -> Receiver:
    assert hears is not None

    def hear(source: str, datagrams: Sequence[wire.Buffer]) -> None:
        hears(source, [one for one in datagrams if wire.op_of(one) == wire.OP_GET])

    return hear


@pytest.mark.parametrize("durable", [False, True])
@in_virtual_time
async def test_a_put_counts_for_no_task_that_began_after_the_block_was_deleted(durable: bool) -> None:
    """Its acknowledgements come when another node has deleted the block already."""
    world = World(homes=2)
    other = world.another_client(OTHER)
    port, held = world.network.ports[NODE], list[tuple[str, list[wire.Buffer]]]()
    hears = port.receiver
    assert hears is not None
    port.set_receiver(lambda source, datagrams: held.append((source, list(datagrams))))
    first = asyncio.create_task(world.client.put(ref(1), content(1), durable=durable))
    await asyncio.sleep(0.05)
    assert await other.delete(ref(1))
    second = asyncio.create_task(world.client.put(ref(1), content(2), durable=durable))
    await asyncio.sleep(0)
    port.set_receiver(hears)
    for source, datagrams in held:
        hears(source, datagrams)
    await asyncio.gather(first, second)
    assert (await world.client.get(ref(1))).content == content(2)


@pytest.mark.parametrize("is_silent", [True, False])
@in_virtual_time
async def test_the_rest_of_a_block_is_asked_of_the_home_that_gave_its_beginning(is_silent: bool) -> None:
    """Also where that came when another one was asked already. The block was put after the home had said that
    it has none, and the network repeats the question."""
    world = World(homes=2, replicas=2)
    home, other = world.homes(1)
    world.network.dead.add(other)
    reading = asyncio.create_task(world.client.get(ref(1)))
    await asyncio.sleep(0.01)
    assert [source for source, _ in said(world, wire.OP_NOT_FOUND)] == [home]
    await world.another_client(OTHER).put(ref(1), content(1))
    if not is_silent:
        world.network.dead.discard(other)
    asked = next(data for to, data in sent(world, wire.OP_GET) if to == home)
    world.network.deliver(NODE, home, asked)
    await asyncio.sleep(0.01)
    assert reading.done()
    assert (await reading).content == content(1)


@in_virtual_time
async def test_a_read_goes_on_though_a_home_says_to_lack_what_it_has_given_already() -> None:
    """The block may have left meanwhile, and a pool has the rest."""
    world = World(homes=1)
    fragments = 50
    await world.client.put(ref(1), content(1, fragments * 512))
    port = world.network.ports[NODE]
    hears = port.receiver
    assert hears is not None

    def says_both(source: str, datagrams: Sequence[wire.Buffer]) -> None:
        hears(source, datagrams)
        for message in map(wire.decode, datagrams):
            lacks = message._replace(op=wire.OP_NOT_FOUND, tag=bytes(16), value=b"")
            hears(source, [wire.encode(lacks)])

    port.set_receiver(says_both)
    assert (await world.client.get(ref(1))).content == content(1, fragments * 512)
    assert len(sent(world, wire.OP_GET)) == fragments
