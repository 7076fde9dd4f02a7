"""Blocks with a lifetime: gone after it everywhere, for good, whoever was away or restarted meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from hostlib.protocol import wire
from hostlib.protocol.block import Place
from hostlib.protocol.hints import MAX_LIFETIME_S, Hint, HintOutcome
from hostlib.protocol.seal import Seal
from hostlib.protocol.tombstones import ENDS, Tombstone
from hostlib.storage import expiry, lifetimes
from hostlib.storage.expiry import AGAIN_S, LOOK_S
from hostlib.storage.lifetimes import Lifetimes
from hostlib.storage.simulated_disk import SimulatedDisk
from tests.asynchronous import in_virtual_time, until
from tests.hostlib.deletions import DOWN, UP, come_back, is_found, write_at
from tests.hostlib.network import Faults
from tests.hostlib.sealed import SEAL, TENANT, place
from tests.hostlib.world import World, content, key, ref

pytestmark = pytest.mark.usefixtures("either_core")

LIFETIME_S = 100


async def pass_s(world: World, seconds: float) -> None:
    """Let time pass on all clocks."""
    world.clock_s += seconds
    await asyncio.sleep(max(seconds, LOOK_S) + 1)


async def store(world: World, number: int, replicas: int = 1) -> None:
    await world.client.put(ref(number), content(number), durable=True, replicas=replicas)


async def let_expire(world: World, number: int, seconds: int = LIFETIME_S) -> HintOutcome:
    return await world.client.hint(ref(number), Hint.EXPIRE, seconds)


@pytest.mark.parametrize("replicas", [1, 2])
@in_virtual_time
async def test_a_block_is_there_until_its_time_is_over_and_nowhere_after_it(replicas: int) -> None:
    world = World(replicas=replicas)
    for number in (1, 2):
        await store(world, number, replicas)
    assert await let_expire(world, 1) is HintOutcome.DONE
    await pass_s(world, LIFETIME_S - 1)
    assert await is_found(world.client, 1)
    await pass_s(world, 2)
    assert not world.holders(1)
    assert not await is_found(world.client, 1)
    assert await is_found(world.client, 2)


@in_virtual_time
async def test_what_is_stored_anew_after_it_has_no_lifetime() -> None:
    world = World()
    await store(world, 1)
    assert await let_expire(world, 1) is HintOutcome.DONE
    assert await world.client.delete(ref(1))
    await store(world, 1)
    await pass_s(world, LIFETIME_S + 1)
    assert await is_found(world.client, 1)


@in_virtual_time
async def test_of_two_lifetimes_the_earlier_end_counts() -> None:
    world = World()
    await store(world, 1)
    for seconds in (LIFETIME_S, 10 * LIFETIME_S, LIFETIME_S // 2):
        assert await let_expire(world, 1, seconds) is HintOutcome.DONE
    await pass_s(world, LIFETIME_S // 2 + 1)
    assert not await is_found(world.client, 1)


@pytest.mark.parametrize("seconds", [LIFETIME_S, 2 * LIFETIME_S])
@in_virtual_time
async def test_a_lifetime_that_a_disk_did_not_take_is_written_when_it_is_asked_for_again(
    seconds: int,
) -> None:
    world = World(homes=1)
    (home,) = world.nodes
    await store(world, 1)
    world.disks[home].failing = True
    assert await let_expire(world, 1) is HintOutcome.REFUSED
    world.disks[home].failing = False
    assert await let_expire(world, 1, seconds) is HintOutcome.DONE
    world.kill(home)
    world.restart(home).start()
    await pass_s(world, LIFETIME_S + 1)
    assert not world.holders(1)


@in_virtual_time
async def test_an_earlier_end_that_a_disk_did_not_take_is_written_when_it_is_asked_for_again() -> None:
    world = World(homes=1)
    (home,) = world.nodes
    await store(world, 1)
    assert await let_expire(world, 1, 9 * LIFETIME_S) is HintOutcome.DONE
    world.disks[home].failing = True
    assert await let_expire(world, 1) is HintOutcome.REFUSED
    world.disks[home].failing = False
    assert await let_expire(world, 1) is HintOutcome.DONE
    world.kill(home)
    world.restart(home).start()
    await pass_s(world, LIFETIME_S + 1)
    assert not world.holders(1)


@pytest.mark.parametrize("off_s", [LIFETIME_S / 2, 2 * LIFETIME_S])
@in_virtual_time
async def test_a_storage_node_that_lost_its_power_knows_the_lifetimes(off_s: float) -> None:
    world = World(homes=1)
    (home,) = world.nodes
    await store(world, 1)
    assert await let_expire(world, 1) is HintOutcome.DONE
    world.kill(home)
    world.clock_s += off_s
    node = world.restart(home)
    node.start()
    await asyncio.sleep(1)
    assert await is_found(world.client, 1) is (off_s < LIFETIME_S)
    await pass_s(world, LIFETIME_S)
    assert not world.holders(1)
    assert not len(world.stores[home].lifetimes)


@in_virtual_time
async def test_who_copied_a_block_meanwhile_forgets_it_too() -> None:
    """It was away when the lifetime was said, and took the block from another home."""
    world = World(replicas=2)
    away = world.members.nodes[0].address
    number = next(number for number in range(99) if away in world.homes(number))
    world.kill(away)
    world.announce(DOWN, UP, UP)
    await store(world, number, 2)
    assert await let_expire(world, number) is HintOutcome.DONE
    await come_back(world, away)
    world.announce(UP, UP, UP)
    await until(lambda: away in world.holders(number))
    assert len(world.stores[away].lifetimes) == 1
    await pass_s(world, LIFETIME_S + 1)
    assert not world.holders(number)


@in_virtual_time
async def test_an_order_does_not_wait_for_deletions_that_a_silent_home_holds_up() -> None:
    world = World(homes=2, replicas=2)
    world.announce(UP, UP)
    await world.client.put(ref(0), content(0), replicas=2)
    world.network.dead.add(world.homes(0)[1])
    deletions = [asyncio.create_task(world.client.delete(ref(number))) for number in range(1, 200)]
    began_s = asyncio.get_running_loop().time()
    await asyncio.sleep(0)
    assert await world.client.hint(ref(0), Hint.EXPIRE, 100) is HintOutcome.NO_ANSWER
    assert asyncio.get_running_loop().time() - began_s <= 12
    for deletion in deletions:
        deletion.cancel()


@pytest.mark.parametrize("comes_back", [True, False])
@in_virtual_time
async def test_a_home_that_does_not_answer_is_waited_for_until_it_is_down(comes_back: bool) -> None:
    world = World(replicas=2)
    await asyncio.sleep(1)
    world.announce(UP, UP, UP)
    await store(world, 1, 2)
    other, silent = world.homes(1)
    world.network.dead.add(silent)
    await asyncio.gather(*(is_found(world.client, n) for n in range(20)), return_exceptions=True)
    assert world.client.suspects == [silent]
    order = asyncio.create_task(let_expire(world, 1))
    await asyncio.sleep(1)
    assert not order.done()
    if comes_back:
        world.network.dead.discard(silent)
    else:
        world.announce(*(DOWN if one.address == silent else UP for one in world.members.nodes))
    assert await order is HintOutcome.DONE
    assert len(world.stores[silent].lifetimes) == comes_back
    assert len(world.stores[other].lifetimes) == 1


@pytest.mark.parametrize("falls_meanwhile", [False, True])
@in_virtual_time
async def test_the_only_home_that_is_down_may_hold_it(falls_meanwhile: bool) -> None:
    world = World(replicas=1)
    await asyncio.sleep(1)
    world.announce(UP, UP, UP)
    await store(world, 1)
    (home,) = world.homes(1)
    world.network.dead.add(home)
    if falls_meanwhile:
        order = asyncio.create_task(let_expire(world, 1))
        await asyncio.sleep(0.05)
    world.announce(*(DOWN if one.address == home else UP for one in world.members.nodes))
    if not falls_meanwhile:
        order = asyncio.create_task(let_expire(world, 1))
    assert await order is HintOutcome.NO_ANSWER


@in_virtual_time
async def test_the_end_of_a_lifetime_reaches_everybody_through_a_network_that_loses_packets() -> None:
    world = World(replicas=2, faults=Faults(lost=0.1), seed=5)
    for number in range(8):
        await store(world, number, 2)
        assert await let_expire(world, number) is HintOutcome.DONE
    await pass_s(world, LIFETIME_S + 1)
    assert not any(world.holders(number) for number in range(8))


@in_virtual_time
async def test_the_controller_hears_of_the_end_so_that_pools_forget_the_block() -> None:
    controller = "10.255.255.254"
    world = World(homes=1, controller=controller)
    (home,) = world.nodes
    await store(world, 1)
    await let_expire(world, 1)
    assert not world.sent(home, wire.OP_DELETE)
    await pass_s(world, LIFETIME_S + 1)
    told = [(to, message) for to, message in world.sent(home, wire.OP_DELETE) if message.key == key(1)]
    assert {to for to, _ in told} == {controller}
    assert told[0][1].content
    assert told[0][1].fragments


async def until_it_orders_a_deletion(world: World, home: str) -> None:
    while not world.sent(home, wire.OP_DELETE):
        await asyncio.sleep(0.1)


@in_virtual_time
async def test_the_controller_hears_of_the_end_from_a_home_that_was_restarted_meanwhile() -> None:
    controller = "10.255.255.254"
    world = World(homes=1, controller=controller)
    (home,) = world.nodes
    world.nodes[home].start()
    await store(world, 1)
    await let_expire(world, 1)
    world.clock_s += LIFETIME_S
    await until_it_orders_a_deletion(world, home)
    await asyncio.sleep(0.1)  # the tombstone is safe; nothing has reached the controller
    world.kill(home)
    world.network.log.clear()
    world.restart(home).start()
    await until_it_orders_a_deletion(world, home)
    ((to, told),) = world.sent(home, wire.OP_DELETE)
    assert (to, told.key) == (controller, key(1))
    done = told._replace(op=wire.OP_DELETED, flags=wire.FLAG_HELD, tag=bytes(16))
    world.network.deliver(controller, home, wire.encode(done))
    await asyncio.sleep(0.1)
    assert world.disks[home].synced(lifetime_name(told)) is None


@pytest.mark.parametrize("then", ["restart", "new list", "same list"])
@in_virtual_time
async def test_a_controller_that_did_not_answer_hears_of_the_end_when_it_is_heard_again(
    then: str,
) -> None:
    """A storage node was cut off while a lifetime ended, or a switch from the controller, which sends no new
    list for that: pools still serve the block."""
    controller = "10.255.255.254"
    world = World(homes=1, controller=controller)
    (home,) = world.nodes
    await store(world, 1)
    await let_expire(world, 1)
    await pass_s(world, LIFETIME_S + 1)
    world.network.log.clear()
    await asyncio.sleep(20)
    assert not world.sent(home, wire.OP_DELETE)
    if then == "restart":
        world.kill(home)
        world.restart(home).start()
    elif then == "new list":
        world.announce(UP)
    await until(lambda: bool(world.sent(home, wire.OP_DELETE)), AGAIN_S if then == "same list" else 1)
    (told, *_) = [message for to, message in world.sent(home, wire.OP_DELETE) if to == controller]
    assert told.key == key(1)
    assert world.disks[home].synced(lifetime_name(told))
    done = told._replace(op=wire.OP_DELETED, flags=wire.FLAG_HELD, tag=bytes(16))
    world.network.deliver(controller, home, wire.encode(done))
    await asyncio.sleep(0.1)
    assert world.disks[home].synced(lifetime_name(told)) is None
    await asyncio.sleep(1)
    world.network.log.clear()
    world.announce(UP)
    await asyncio.sleep(2 * AGAIN_S)
    assert not world.sent(home, wire.OP_DELETE)


@in_virtual_time
async def test_a_lifetime_stays_on_a_disk_that_does_not_take_its_end() -> None:
    world = World(homes=1, controller="10.255.255.254")
    (home,) = world.nodes
    await store(world, 1)
    await let_expire(world, 1)
    world.disks[home].failing = True
    await pass_s(world, LIFETIME_S + 1)
    world.disks[home].failing = False
    await asyncio.sleep(20)
    (told, *_) = [message for _, message in world.sent(home, wire.OP_DELETE)]
    assert world.disks[home].synced(lifetime_name(told))


def lifetime_name(told: wire.Message) -> bytes:
    return Tombstone(place(told.key), told.content, told.tag).name(ENDS)


@in_virtual_time
async def test_nobody_without_the_tenants_secret_gives_a_block_a_lifetime() -> None:
    world = World(homes=1)
    (home,) = world.nodes
    await store(world, 1)
    stranger = world.another_client("10.0.0.9")
    stranger._deletions._seal = Seal(TENANT, b"guessed" * 4)
    assert await stranger.hint(ref(1), Hint.EXPIRE, 1) is HintOutcome.NOT_FOUND
    found = world.stores[home].find(next(iter(world.stores[home].places())))
    assert found is not None
    forged = wire.Message(
        wire.OP_STAT, key(1), 0, 4, wire.FLAG_BYPASS | wire.FLAG_HINT, generation=1, content=found[1],
        backlog_ms=Hint.EXPIRE, tenant=TENANT, tag=bytes(16),
    )  # fmt: skip
    world.network.deliver("10.0.0.9", home, wire.encode(forged))
    await pass_s(world, 100)
    assert await is_found(world.client, 1)
    assert not len(world.stores[home].lifetimes)


@in_virtual_time
async def test_lifetimes_are_bounded_and_impossible_ones_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifetimes, "MAX_OF_TENANT", 2)
    world = World(homes=1)
    for number in range(3):
        await store(world, number)
    assert await let_expire(world, 9) is HintOutcome.NOT_FOUND
    outcomes = [await let_expire(world, number) for number in range(3)]
    assert outcomes == [HintOutcome.DONE, HintOutcome.DONE, HintOutcome.REFUSED]
    for seconds in (0, MAX_LIFETIME_S + 1):
        with pytest.raises(ValueError, match="a block lives for 1 to"):
            await let_expire(world, 2, seconds)
    world.kill(next(iter(world.nodes)))
    assert await let_expire(world, 2) is HintOutcome.NO_ANSWER


@in_virtual_time
async def test_a_lifetime_goes_with_the_copies_while_one_home_after_the_other_is_replaced() -> None:
    world = World(replicas=2)
    await store(world, 1, 2)
    assert await let_expire(world, 1) is HintOutcome.DONE
    for at, member in enumerate(world.members.nodes):
        world.kill(member.address)
        world.announce(*(DOWN if other == at else UP for other in range(3)))
        await asyncio.sleep(10)
        world.disks[member.address] = SimulatedDisk()
        node = world.restart(member.address)
        node.start()
        await until(lambda node=node: node.joining.caught_up)  # type: ignore[misc]
        world.announce(UP, UP, UP)
    assert set(world.homes(1)) <= set(world.holders(1))
    await pass_s(world, LIFETIME_S + 1)
    assert not world.holders(1)


@in_virtual_time
async def test_a_block_ends_on_time_however_late_others_hear_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The controller does not answer; of eight blocks others are told of two at a time."""
    monkeypatch.setattr(expiry, "MAX_TOLD", 2)
    monkeypatch.setattr(expiry, "BATCH", 2)
    world = World(homes=1, controller="10.255.255.254")
    for number in range(8):
        await store(world, number)
        assert await let_expire(world, number) is HintOutcome.DONE
    world.clock_s += LIFETIME_S + 1
    await asyncio.sleep(LOOK_S + 1)
    assert not any(world.holders(number) for number in range(8))
    await asyncio.sleep(60)
    told = {message.key for _, message in world.sent(world.homes(0)[0], wire.OP_DELETE)}
    assert told == {key(number) for number in range(8)}


@in_virtual_time
async def test_a_block_whose_record_is_damaged_where_its_proof_is_checked_ends_too() -> None:
    world = World(homes=1, dram_bytes=1)
    (home,) = world.nodes
    await store(world, 1)
    assert await let_expire(world, 1) is HintOutcome.DONE
    disk, name = world.disks[home], place(key(1)).name()
    tag = SEAL.tag(key(1), 0, 4, write_at(world, home, 1), content(1)[:512])
    world.kill(home)
    disk._seen[name] = disk._seen[name].replace(tag, bytes(16))
    world.restart(home).start()
    assert world.holders(1)
    await pass_s(world, LIFETIME_S + 1)
    assert not world.holders(1)
    assert len(world.stores[home].graveyard.stones) == 1


@pytest.mark.parametrize("number", [1, 2])
@in_virtual_time
async def test_a_home_that_does_not_know_what_was_deleted_does_not_say_that_a_block_is_not_there(
    number: int,
) -> None:
    """The outcome would be that of the other homes alone."""
    world = World(homes=1)
    (home,) = world.nodes
    await store(world, 1)
    world.nodes[home].joining.missed.in_doubt = True
    order = wire.Message(
        wire.OP_STAT, key(number), 0, 4, wire.FLAG_BYPASS | wire.FLAG_HINT, generation=1, tenant=TENANT,
        content=write_at(world, home, 1), backlog_ms=Hint.EXPIRE, tag=bytes(16),
    )  # fmt: skip
    world.network.deliver("10.0.0.9", home, wire.encode(order))
    assert not world.sent(home, wire.OP_NOT_FOUND)


@in_virtual_time
async def test_a_deleted_write_takes_no_room_among_lifetimes() -> None:
    world = World(homes=1)
    (home,) = world.nodes
    for number in range(3):
        await store(world, number)
        assert await let_expire(world, number) is HintOutcome.DONE
        assert await world.client.delete(ref(number))
    await asyncio.sleep(1)
    assert not len(world.stores[home].lifetimes)
    world.kill(home)
    world.restart(home)
    assert not len(world.stores[home].lifetimes)


def test_tenants_that_take_all_the_lifetimes_they_may_leave_some_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lifetimes, "MAX_LIFETIMES", 64)
    known = Lifetimes(lambda: 0.0, None)

    def begin(tenant: int, number: int) -> bool:
        stone = Tombstone(Place(tenant, key(number)), 1 + number, bytes(16))
        return known.begin(lifetimes.Lifetime(100.0, stone, 1), lambda error: None)

    for tenant in range(1, 6):
        for number in range(64):
            begin(tenant, number)
    assert begin(8, 0)
    assert len(known) <= 64
