"""When a storage node counts as up: what it hears of lists, and whom it waits for when it returns."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from hostlib.protocol import wire
from hostlib.protocol.content import derivation, sealed_block
from hostlib.protocol.errors import TransferTimeoutError
from hostlib.protocol.members import SETTLED_S, Members, State
from hostlib.protocol.tombstones import LIST_FLAGS
from hostlib.storage import joining
from hostlib.storage.catch_up import Patiences
from hostlib.storage.graveyard import ALIVE_EVERY_S
from hostlib.storage.missed_deletions import DOUBT_S
from hostlib.storage.simulated_disk import SimulatedDisk
from hostlib.storage.storage_node import StorageNode
from hostlib.storage.storage_options import StorageOptions
from hostlib.storage.store import BlockStore
from tests.asynchronous import in_virtual_time, until
from tests.hostlib.network import Faults
from tests.hostlib.sealed import SEAL, place
from tests.hostlib.world import FRAGMENTS, World, content, key, put_all, ref

UP, DOWN, JOINING = State.UP, State.DOWN, State.JOINING


@in_virtual_time
async def test_stores_tell_the_controller_that_they_live() -> None:
    world = World(homes=2)
    one = world.members.nodes[0].address
    store = world.stores[one]
    node = StorageNode(
        world.network.port(one), store, StorageOptions(one, controller="10.255.255.254"), world.members
    )
    node.start()
    await asyncio.sleep(1.05)
    hellos = world.sent(one, wire.OP_HELLO)
    assert len(hellos) == 11
    assert {to for to, _ in hellos} == {"10.255.255.254"}
    assert not hellos[0][1].flags & wire.FLAG_HELD
    assert hellos[-1][1].flags & wire.FLAG_HELD
    node.close()


@in_virtual_time
async def test_a_store_that_was_cut_off_without_noticing_catches_up_when_it_is_told() -> None:
    world = World(replicas=2)
    gone = world.members.nodes[0].address
    node = world.nodes[gone]
    node.start()
    await asyncio.sleep(5)
    assert node.joining.caught_up
    world.network.dead.add(gone)
    world.announce(DOWN, UP, UP)
    await put_all(world, 0, 20)
    world.network.dead.discard(gone)
    world.announce(JOINING, UP, UP)
    assert not node.joining.caught_up
    await until(lambda: node.joining.caught_up)
    assert {n for n in range(20) if gone in world.homes(n)} <= {
        n for n in range(20) if gone in world.holders(n)
    }


@in_virtual_time
async def test_a_store_that_missed_a_list_may_have_been_down_by_it() -> None:
    world = World(replicas=2)
    gone = world.members.nodes[0].address
    node = world.nodes[gone]
    world.announce(JOINING, UP, UP)
    await until(lambda: node.joining.caught_up)
    world.network.dead.add(gone)
    world.announce(DOWN, UP, UP)
    await put_all(world, 0, 20)
    world.network.dead.discard(gone)
    world.announce(JOINING, UP, UP)
    assert not node.joining.caught_up


async def put_while_its_home_is_away(world: World, home: str) -> int:
    """A block that only another storage node holds; then that one is away, and its home is back."""
    at = world.members.nodes.index(next(one for one in world.members.nodes if one.address == home))
    world.kill(home)
    world.announce(*(DOWN if n == at else UP for n in range(len(world.nodes))))
    number = next(n for n in range(99) if world.members.order(key(n))[0].address == home)
    await world.client.put(ref(number), content(number), durable=True)
    return number


@in_virtual_time
async def test_who_returns_while_the_one_that_stood_in_is_down_waits_for_that() -> None:
    """Else a read would be told that there is no such block."""
    world = World(controller="10.255.255.254")
    home, *others = (one.address for one in world.members.nodes)
    number = await put_while_its_home_is_away(world, home)
    (standin,) = world.holders(number)
    away = [DOWN if one == standin else UP for one in others]
    world.kill(standin)
    world.announce(JOINING, *away)
    node = world.restart(home)
    node.start()
    await asyncio.sleep(60)
    assert not node.joining.caught_up
    with pytest.raises(TransferTimeoutError):
        await world.client.get(ref(number))

    world.restart(standin).start()
    world.announce(JOINING, *(JOINING if one is DOWN else UP for one in away))
    assert not node.joining.caught_up
    await until(lambda: node.joining.caught_up, 10)
    world.announce(UP, UP, UP)
    assert (await world.client.get(ref(number))).content == content(number)
    assert home in world.holders(number)


@pytest.mark.parametrize("comes_while_joining", [False, True])
@in_virtual_time
async def test_who_returns_has_on_disk_what_it_holds_in_memory_and_others_were_given_meanwhile(
    comes_while_joining: bool,
) -> None:
    """Else a durable block was lost with the home's memory, when it had left the one that stood in."""
    world = World(controller="10.255.255.254")
    home = world.members.nodes[0].address
    number = next(n for n in range(99) if world.members.order(key(n))[0].address == home)
    if not comes_while_joining:
        await world.client.put(ref(number), content(number))
    world.network.dead.add(home)
    world.announce(DOWN, UP, UP)
    await world.client.put(ref(number), content(number), durable=True)
    (standin,) = set(world.holders(number)) - {home}
    world.network.dead.discard(home)
    world.announce(JOINING, UP, UP)
    if comes_while_joining:
        await world.client.put(ref(number), content(number))
    await until(lambda: world.nodes[home].joining.caught_up)
    world.announce(UP, UP, UP)
    world.stores[standin].drop(place(key(number)))
    await asyncio.sleep(2 * SETTLED_S)
    world.kill(home)
    world.restart(home).start()
    world.announce(JOINING, UP, UP)
    assert (await world.client.get(ref(number))).content == content(number)


@in_virtual_time
async def test_who_returns_waits_for_one_that_falls_while_it_copies() -> None:
    world = World(controller="10.255.255.254")
    home, *others = (one.address for one in world.members.nodes)
    number = await put_while_its_home_is_away(world, home)
    (standin,) = world.holders(number)
    world.network.dead.add(standin)
    world.announce(JOINING, UP, UP)
    node = world.restart(home)
    node.start()
    await asyncio.sleep(0.5)
    world.announce(JOINING, *(DOWN if one == standin else UP for one in others))
    await asyncio.sleep(60)
    assert not node.joining.caught_up


@in_virtual_time
async def test_who_returns_copies_from_one_that_was_down_during_both_passes_but_not_behind_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was there, too, when the first pass began, which was gone through again for it."""
    world = World(controller="10.255.255.254")
    home, *others = (one.address for one in world.members.nodes)
    number = await put_while_its_home_is_away(world, home)
    (standin,) = world.holders(number)
    world.kill(standin)
    world.announce(JOINING, UP, UP)
    node = world.restart(home)
    node.start()
    await asyncio.sleep(0.5)
    world.announce(JOINING, *(DOWN if one == standin else UP for one in others))
    run, complete = node.joining.catch_up.run, 0

    async def passes(members: Members, own: str, patience: Patiences) -> bool:
        nonlocal complete
        if complete == 1 and standin in world.network.dead:
            world.restart(standin).start()
            world.announce(JOINING, *(JOINING if one == standin else UP for one in others))
        is_complete = await run(members, own, patience)
        complete += is_complete and asyncio.current_task() is node.joining._join_task
        return is_complete

    monkeypatch.setattr(node.joining.catch_up, "run", passes)
    await until(lambda: node.joining.caught_up, 20)
    assert home in world.holders(number)


@in_virtual_time
async def test_who_returns_copies_all_from_the_only_one_that_has_it_however_long_that_takes() -> None:
    world = World(homes=2, controller="10.255.255.254")
    home, _ = world.nodes
    missed = [n for n in range(40) if world.homes(n)[0] == home][:6]
    world.kill(home)
    world.announce(DOWN, UP)
    for n in missed:
        await world.client.put(ref(n), content(n, 400 * 512), durable=True)
    world.network.faults = Faults(min_delay_s=0.4, max_delay_s=0.4)
    node = world.restart(home)
    node.start()
    world.announce(JOINING, UP)
    await until(lambda: node.joining.caught_up, 1000)
    assert [n for n in missed if home in world.holders(n)] == missed


@in_virtual_time
async def test_who_returns_does_not_wait_for_one_that_left_the_list_or_is_one_of_two_homes() -> None:
    world = World(controller="10.255.255.254")
    home = world.members.nodes[0].address
    world.announce(JOINING, DOWN, UP)
    node = world.nodes[home]
    await asyncio.sleep(60)
    assert not node.joining.caught_up
    world.members = replace(world.members, nodes=(world.members.nodes[0], world.members.nodes[2]))
    world.announce(JOINING, UP)
    await asyncio.sleep(5)
    assert node.joining.caught_up

    world = World(replicas=2, controller="10.255.255.254")
    world.announce(JOINING, DOWN, UP)
    await asyncio.sleep(5)
    assert world.nodes[home].joining.caught_up


@pytest.mark.parametrize("is_listed", [True, False])
@in_virtual_time
async def test_who_was_killed_knows_that_it_was_there_until_lately(is_listed: bool) -> None:
    world = World(controller="10.255.255.254")
    home = world.members.nodes[0].address
    world.nodes[home].start()
    for _ in range(3):
        world.clock_s += 12 * 3600
        if is_listed:
            world.announce(UP, UP, UP)
        await asyncio.sleep(2)
    world.kill(home)
    world.clock_s += 1
    world.restart(home)
    assert world.stores[home].graveyard.last_there_s == pytest.approx(world.clock_s, abs=ALIVE_EVERY_S)


@in_virtual_time
async def test_who_has_no_peers_has_missed_nothing() -> None:
    world = World(homes=1)
    (home,) = world.nodes
    await world.client.put(ref(1), content(1), durable=True)
    world.kill(home)
    node = world.restart(home)
    node.start()
    assert not node.joining.missed.in_doubt


@in_virtual_time
async def test_what_was_compared_with_what_others_hold_gives_way_to_no_copy() -> None:
    world = World(homes=2, replicas=2)
    for node in world.nodes.values():
        node.start()
    await asyncio.sleep(1)
    world.announce(UP, UP)
    await world.client.put(ref(1), content(1), replicas=2)
    nodes = [node.joining for node in world.nodes.values()]
    assert all(joined.is_fresh(place(key(1))) for joined in nodes)
    await asyncio.sleep(3 * SETTLED_S)
    assert not any(joined.is_fresh(place(key(1))) for joined in nodes)


@in_virtual_time
async def test_of_blocks_that_came_meanwhile_those_that_left_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(joining, "FRESH_LOOK", 8)
    world = World(homes=2, replicas=2)
    await put_all(world, 0, 3)
    (home, *_) = world.nodes
    node, held = world.nodes[home].joining, world.stores[home].places()
    node.made(place(key(1000)))
    assert not node.is_fresh(place(key(1000)))  # it is settled
    node.settled = False
    for one in (*held, *(place(key(number)) for number in range(1000, 1100))):
        node.made(one)
    assert all(map(node.is_fresh, held))
    assert len(node._fresh) < 2 * 8


@pytest.mark.parametrize("standin_is", [UP, DOWN])
@in_virtual_time
async def test_while_homes_are_joining_what_another_took_for_them_is_not_said_to_be_missing(
    standin_is: State,
) -> None:
    """Two that were away together are back, and the one that is up already is no home of the block."""
    world = World(controller="10.255.255.254")
    home, second, third = (one.address for one in world.members.order(key(1)))
    states = dict.fromkeys((home, second), DOWN) | {third: UP}

    def announce() -> None:
        world.announce(*(states[one.address] for one in world.members.nodes))

    for address in (home, second):
        world.kill(address)
    announce()
    await world.client.put(ref(1), content(1), durable=True)
    assert world.holders(1) == [third]
    states |= {home: JOINING, second: UP, third: standin_is}
    if standin_is is DOWN:
        world.kill(third)
    announce()
    for address in (home, second):
        world.restart(address)
    if standin_is is UP:
        assert (await world.client.get(ref(1))).content == content(1)
    else:
        with pytest.raises(TransferTimeoutError):
            await world.client.get(ref(1))
        with pytest.raises(TransferTimeoutError, match=f"{third}: down, and may hold it"):
            await world.client.delete(ref(1))


@pytest.mark.parametrize("fault", ["full", "failing"])
@in_virtual_time
async def test_who_returns_with_a_disk_that_takes_nothing_is_not_up_before_it_does(fault: str) -> None:
    """Its memory is too short for what another took for it: it would say that this is missing."""
    world = World(dram_bytes=4 * FRAGMENTS * 512, controller="10.255.255.254")
    away = world.members.nodes[0].address
    numbers = [number for number in range(60) if away in world.homes(number)]
    world.kill(away)
    world.announce(DOWN, UP, UP)
    for number in numbers:
        await world.client.put(ref(number), content(number), durable=True)
    setattr(world.disks[away], fault, True)
    world.announce(JOINING, UP, UP)
    node = world.restart(away)
    node.start()
    await asyncio.sleep(60)
    assert not node.joining.caught_up
    setattr(world.disks[away], fault, False)
    await until(lambda: node.joining.caught_up, 2 * joining.MAX_PATIENCE)
    world.announce(UP, UP, UP)
    for number in numbers:
        assert (await world.client.get(ref(number))).content == content(number)


@in_virtual_time
async def test_who_has_less_room_than_others_is_up_all_the_same() -> None:
    world = World(replicas=2, dram_bytes=4 * FRAGMENTS * 512, controller="10.255.255.254")
    home, *_ = world.nodes
    await put_all(world, 0, 60)
    world.kill(home)
    world.disks[home] = SimulatedDisk()
    node = world.restart(home)
    ssd = world.stores[home]._ssd
    assert ssd is not None
    ssd.capacity_bytes = 20_000
    node.start()
    await asyncio.sleep(10)
    assert node.joining.caught_up
    assert ssd.dropped


@in_virtual_time
async def test_who_is_closed_while_it_waits_for_others_does_nothing_any_more() -> None:
    world = World(replicas=2, controller="10.255.255.254")
    home, *others = world.nodes
    await put_all(world, 0, 5)
    world.kill(home)
    others_tasks = asyncio.all_tasks()
    world.network.dead.update(others)
    node = world.restart(home)
    node.start()
    await asyncio.sleep(1)
    assert node.joining.missed.in_doubt
    node.close()
    await asyncio.sleep(0.01)
    assert asyncio.all_tasks() == others_tasks


@in_virtual_time
async def test_without_a_controller_a_silent_peer_keeps_no_block_back_for_long() -> None:
    world = World(homes=2, replicas=2)
    home, peer = world.nodes
    await put_all(world, 0, 5)
    for one in (home, peer):
        world.kill(one)
    node = world.restart(home)
    node.start()
    assert node.joining.missed.in_doubt
    await until(lambda: not node.joining.missed.in_doubt, DOUBT_S / 2)


@in_virtual_time
async def test_one_peer_that_was_there_says_all_that_was_deleted_though_another_says_nothing() -> None:
    world = World(replicas=2, controller="10.255.255.254")
    home, silent, there = world.nodes
    await put_all(world, 0, 5)
    world.kill(home)
    world.announce(DOWN, UP, UP)
    world.network.dead.add(silent)
    port = world.network.ports[there]
    hears = port.receiver
    assert hears is not None

    def says_no_lifetimes(source: str, datagrams: Sequence[wire.Buffer]) -> None:
        lists = (wire.decode(one).flags & LIST_FLAGS == LIST_FLAGS for one in datagrams)
        hears(source, [one for one, dropped in zip(datagrams, lists, strict=True) if not dropped])

    port.set_receiver(says_no_lifetimes)
    node = world.restart(home)
    node.start()
    world.announce(JOINING, UP, UP)
    assert node.joining.missed.in_doubt
    await until(lambda: not node.joining.missed.in_doubt, 1)


@in_virtual_time
async def test_who_returns_copies_what_one_got_behind_the_first_pass_that_was_down_during_the_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is back when the second pass ends, and gave all that it had in the first."""
    world = World(controller="10.255.255.254")
    home, standin, _ = (one.address for one in world.members.nodes)
    number = next(n for n in range(99) if world.homes(n) == [home])
    world.kill(home)
    world.announce(JOINING, UP, UP)
    node = world.restart(home)
    node.start()
    run, complete = node.joining.catch_up.run, 0

    async def passes(members: Members, own: str, patience: Patiences) -> bool:
        nonlocal complete
        is_complete = await run(members, own, patience)
        complete += is_complete and asyncio.current_task() is node.joining._join_task
        if complete == 1 and standin not in world.network.dead:
            block = sealed_block(SEAL, key(number), 5, content(number))
            world.stores[standin].put(place(key(number)), block, True)
            world.network.dead.add(standin)
            world.announce(JOINING, DOWN, UP)
        elif complete == 2:
            world.network.dead.discard(standin)
            world.announce(JOINING, UP, UP)
        return is_complete

    monkeypatch.setattr(node.joining.catch_up, "run", passes)
    await until(lambda: node.joining.caught_up, 20)
    assert home in world.holders(number)


@in_virtual_time
async def test_who_is_not_in_the_list_is_the_home_of_nothing() -> None:
    world = World()
    address = "10.0.0.200"
    store = BlockStore(1 << 20, None, derivation(SEAL))
    node = StorageNode(world.network.port(address), store, StorageOptions(address), world.members)
    assert not any(node.joining.is_home(key(number)) for number in range(20))
    world.announce(UP, UP, UP)
    assert not any(node.joining.is_home(key(number)) for number in range(20))


@in_virtual_time
async def test_who_is_cut_off_was_there_until_a_list_that_all_have_heard_since() -> None:
    """Another that did not hear it yet may delete without this node."""
    world = World(controller="10.255.255.254")
    home = world.members.nodes[0].address
    world.announce(UP, UP, UP)
    missed, began_s = world.nodes[home].joining.missed, world.clock_s
    there_s = []
    for after_s in (1, SETTLED_S - 1, SETTLED_S + 1, 2 * SETTLED_S + 2):
        world.clock_s = began_s + after_s
        world.repeat()
        there_s.append(missed._there_s - began_s)
    assert there_s == [0, 0, 0, SETTLED_S + 1]


@in_virtual_time
async def test_a_probe_is_answered_at_once() -> None:
    controller = "10.255.255.254"
    world = World(homes=1, controller=controller)
    ((home, node),) = world.nodes.items()
    node.start()
    await asyncio.sleep(1.01)
    said = len(world.sent(home, wire.OP_HELLO))
    probe = wire.Message(wire.OP_MEMBERS, bytes(16), 0, 0, sequence=77, value=world.members.encode())
    world.network.deliver(controller, home, wire.encode(probe))
    assert [(to, hello.sequence) for to, hello in world.sent(home, wire.OP_HELLO)[said:]] == [
        (controller, 77)
    ]


@in_virtual_time
async def test_who_has_heard_of_all_that_was_deleted_was_there() -> None:
    world = World(replicas=2, controller="10.255.255.254")
    home = world.members.nodes[0].address
    await put_all(world, 0, 5)
    world.kill(home)
    world.announce(DOWN, UP, UP)
    world.clock_s += 3600
    node = world.restart(home)
    node.start()
    world.announce(JOINING, UP, UP)
    await until(lambda: node.joining.caught_up)
    await asyncio.sleep(1)
    world.kill(home)
    assert world.restart(home) is not node
    assert world.stores[home].graveyard.last_there_s == world.clock_s
