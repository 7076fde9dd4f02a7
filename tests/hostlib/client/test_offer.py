"""Blocks being put: how many packets, what counts as held, and what is said when it can't be."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.simulate_faults.virtual_time import run_virtual
from hostlib.client.client_options import ClientOptions
from hostlib.native.lane_options import LaneOptions
from hostlib.protocol import wire
from hostlib.protocol.content import sealed_block
from hostlib.protocol.errors import PutRefusedError, TransferTimeoutError
from hostlib.protocol.members import State
from hostlib.storage.simulated_disk import SimulatedDisk
from hostlib.storage.store_options import StoreOptions
from tests.asynchronous import in_virtual_time, until
from tests.hostlib.network import Faults
from tests.hostlib.sealed import SEAL, place
from tests.hostlib.world import FRAGMENTS, NODE, PATIENT, World, content, key, ref

pytestmark = pytest.mark.usefixtures("either_core")
UP, DOWN, JOINING = State.UP, State.DOWN, State.JOINING


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("replicas", [1, 2, 3])
@in_virtual_time
async def test_when_put_returns_so_many_homes_hold_the_block(replicas: int, durable: bool) -> None:
    world = World(replicas=replicas)
    await world.client.put(ref(1), content(1), durable=durable, replicas=replicas)
    assert sorted(world.holders(1)) == sorted(world.homes(1, replicas))
    safe = [disk for disk in world.disks.values() if list(disk.scan())]
    assert len(safe) == (replicas if durable else 0)
    assert len(world.sent(NODE, wire.OP_PUT)) == FRAGMENTS


def test_the_clients_link_carries_replicas_once() -> None:
    async def main() -> dict[int, int]:
        packets = {}
        for replicas in (1, 2, 3):
            world = World(replicas=replicas, faults=Faults(min_delay_s=0.001, max_delay_s=0.005), seed=1)
            await asyncio.gather(
                *(
                    world.client.put(ref(n), content(n, 8192), durable=True, replicas=replicas)
                    for n in range(12)
                )
            )
            packets[replicas] = len(world.sent(NODE, wire.OP_PUT))
        return packets

    packets = run_virtual(main())
    assert packets[2] <= 1.1 * packets[1]
    assert packets[3] <= 1.1 * packets[1]


@in_virtual_time
async def test_without_switches_that_copy_each_home_gets_its_own() -> None:
    world = World(replicas=2, options=ClientOptions(multicast=False))
    world.network.members = None
    await world.client.put(ref(1), content(1), replicas=2)
    assert sorted(world.holders(1)) == sorted(world.homes(1, 2))
    puts = world.sent(NODE, wire.OP_PUT)
    assert [message.homes for _, message in puts] == [(0, 0, 0)] * 2 * FRAGMENTS


@in_virtual_time
async def test_what_one_home_did_not_acknowledge_is_sent_to_it_alone() -> None:
    world = World(replicas=2)
    first, second = world.homes(1, 2)
    world.network.members = None  # the switch copies nothing
    await world.client.put(ref(1), content(1), replicas=2)
    puts = world.sent(NODE, wire.OP_PUT)
    alone = [message for to, message in puts if to == second]
    assert len(alone) == FRAGMENTS
    assert all(message.flags & wire.FLAG_RETRY and message.homes == (0, 0, 0) for message in alone)
    assert len([to for to, _ in puts if to == first]) == FRAGMENTS


@in_virtual_time
async def test_nothing_more_is_sent_once_the_home_says_that_it_holds_the_block() -> None:
    lane = LaneOptions(initial_window=4, max_window=4)
    world = World(options=ClientOptions(lane))
    long = content(1, 100 * 512)
    await world.another_client("10.0.0.2").put(ref(1), long)
    await world.client.put(ref(1), long)
    assert len(world.sent(NODE, wire.OP_PUT)) == 4


@in_virtual_time
async def test_a_home_that_holds_the_block_already_is_sent_nothing_for_the_others() -> None:
    world = World(replicas=2)
    first, second = world.homes(1)
    block = sealed_block(SEAL, key(1), 5, content(1))
    world.stores[second].put(place(key(1)), block, durable=False)
    await world.client.put(ref(1), content(1), replicas=2)
    assert world.holders(1) == [first, second]
    assert {to for to, message in world.sent(NODE, wire.OP_PUT) if message.flags & wire.FLAG_RETRY} <= {first}


@in_virtual_time
async def test_what_the_first_home_holds_already_goes_to_the_others_alone() -> None:
    lane = LaneOptions(initial_window=4, max_window=4)
    world = World(replicas=2, options=ClientOptions(lane))
    first, second = world.members.homes(key(1))
    long = content(1, 100 * 512)
    world.stores[first.address].put(place(key(1)), sealed_block(SEAL, key(1), 5, long), durable=False)
    await world.client.put(ref(1), long, replicas=2)
    assert world.holders(1) == sorted((first.address, second.address))
    puts = world.sent(NODE, wire.OP_PUT)
    assert len([to for to, message in puts if to == first.address or first.number in message.homes]) == 4


@in_virtual_time
async def test_a_home_that_falls_silent_and_stays_in_the_list_ends_a_put_after_two_seconds() -> None:
    world = World(replicas=2)
    world.announce(UP, UP, UP)
    await asyncio.sleep(0.1)
    world.network.dead.add(world.homes(1)[1])
    started_s = asyncio.get_running_loop().time()
    with pytest.raises(TransferTimeoutError):
        await world.client.put(ref(1), content(1), replicas=2)
    assert 2.0 < asyncio.get_running_loop().time() - started_s < 3.0


@in_virtual_time
async def test_a_late_acknowledgement_of_a_put_that_asked_for_less_does_not_count() -> None:
    world = World(homes=1)
    (home,) = world.disks
    await world.client.put(ref(1), content(1))
    late = [data for origin, _, data in world.network.log if origin == home and data[1] == wire.OP_PUT_ACK]
    durable = asyncio.create_task(world.client.put(ref(1), content(1), durable=True))
    await asyncio.sleep(0.0005)
    for acknowledgement in late:
        world.network.deliver(home, NODE, acknowledgement)
    await durable
    assert world.disks[home].synced(place(ref(1).key).name()) is not None


@in_virtual_time
async def test_what_a_home_said_before_it_fell_does_not_count_when_it_is_back_with_an_empty_disk() -> None:
    world = World(replicas=2)
    world.announce(UP, UP, UP)
    slow, lost = world.homes(1)
    world.network.dead.add(slow)
    put = asyncio.create_task(world.client.put(ref(1), content(1), durable=True, replicas=2))
    await until(lambda: world.disks[lost].synced(place(key(1)).name()))
    await asyncio.sleep(0.01)
    said = [data for origin, _, data in world.network.log if origin == lost and data[1] == wire.OP_PUT_ACK]
    world.kill(lost)
    for state in (DOWN, JOINING):
        world.announce(*(state if one.address == lost else UP for one in world.members.nodes))
    world.disks[lost] = SimulatedDisk()
    world.restart(lost)
    for acknowledgement in said:
        world.network.deliver(lost, NODE, acknowledgement)
    world.network.dead.discard(slow)
    await put
    assert world.disks[lost].synced(place(key(1)).name()) is not None


@in_virtual_time
async def test_a_home_restarted_in_the_middle_of_a_put_gets_all_of_it_again() -> None:
    lane = LaneOptions(initial_window=4, max_window=4)
    world = World(options=ClientOptions(lane))
    (home,) = world.homes(1)
    put = asyncio.create_task(world.client.put(ref(1), content(1, 20 * 512), durable=True))
    await asyncio.sleep(0.005)
    assert not put.done()
    world.kill(home)
    world.restart(home)
    await put
    assert world.holders(1) == [home]
    world.kill(home)
    world.restart(home)
    assert (await world.client.get(ref(1))).content == content(1, 20 * 512)
    assert world.client.stats.put_again == 1


@in_virtual_time
async def test_a_home_that_never_holds_what_it_acknowledges_is_an_error_after_a_few_rounds() -> None:
    world = World(store_options=StoreOptions(max_partial=0))
    with pytest.raises(PutRefusedError, match="does not hold it"):
        await world.client.put(ref(1), content(1))
    assert len(world.sent(NODE, wire.OP_PUT)) == 4 * FRAGMENTS


@pytest.mark.parametrize("replicas", [1, 2])
@in_virtual_time
async def test_a_full_disk_is_said_so_at_once(replicas: int) -> None:
    world = World(replicas=2)
    world.disks[world.homes(1)[0]].full = True
    loop = asyncio.get_running_loop()
    with pytest.raises(PutRefusedError, match="no room on its disk") as refused:
        await world.client.put(ref(1), content(1), durable=True, replicas=replicas)
    assert refused.value.reason == wire.REFUSED_FULL
    assert loop.time() < 0.1


@in_virtual_time
async def test_a_home_whose_disk_is_behind_is_sent_less() -> None:
    world = World()
    for store in world.stores.values():
        store.commit_wait_s = lambda: 0.1  # type: ignore[method-assign]
    await world.client.put(ref(1), content(1, 400 * 512))
    lane = world.client._exchange.lane(world.homes(1)[0], wire.OP_PUT)
    assert lane.window == LaneOptions().min_window


@in_virtual_time
async def test_more_homes_than_there_are_is_refused() -> None:
    world = World(homes=1, replicas=2)
    with pytest.raises(PutRefusedError, match="homes asked for: 2, up: 1"):
        await world.client.put(ref(1), content(1), replicas=2)


@in_virtual_time
async def test_a_dead_home_without_a_controller_is_an_error_after_one_short_timeout() -> None:
    world = World(replicas=2)
    world.network.dead.add(world.homes(1)[0])
    with pytest.raises(TransferTimeoutError, match="does not answer"):
        await world.client.put(ref(1), content(1), replicas=2)
    assert asyncio.get_running_loop().time() <= 0.3


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("dead", [0, 1, 2])
@pytest.mark.parametrize("dies_after_s", [0.0, 0.0015])
@in_virtual_time
async def test_who_is_content_with_fewer_homes_is_not_kept_from_the_others_by_a_dead_one(
    dead: int, durable: bool, dies_after_s: float
) -> None:
    world = World(replicas=3)

    async def put(number: int) -> None:
        await world.client.put(ref(number), content(number), durable=durable, replicas=3, at_least=2)

    puts = [asyncio.create_task(put(number)) for number in range(10)]
    await asyncio.sleep(dies_after_s)
    silent = world.members.nodes[dead].address
    world.network.dead.add(silent)
    await asyncio.gather(*puts)
    for number in range(10):
        assert set(world.holders(number)) >= set(world.disks) - {silent}
    world.network.dead.add(world.members.nodes[(dead + 1) % 3].address)
    with pytest.raises(TransferTimeoutError, match="does not answer"):
        await put(11)


@pytest.mark.parametrize("place_of_the_dead", [0, 1])
def test_a_home_that_dies_in_mid_put_is_replaced_by_the_next_list(place_of_the_dead: int) -> None:
    async def main() -> None:
        world = World(replicas=2)
        world.announce(UP, UP, UP)
        lane_blocks = [asyncio.create_task(_put(world, number)) for number in range(30)]
        await asyncio.sleep(0.0015)
        dead = world.members.nodes[place_of_the_dead].address
        world.kill(dead)
        await asyncio.sleep(0.4)
        states = [UP, UP, UP]
        states[place_of_the_dead] = DOWN
        world.announce(*states)
        await asyncio.gather(*lane_blocks)
        for number in range(30):
            holders = set(world.holders(number)) - {dead}
            assert holders >= set(world.homes(number))
        assert not world.client._exchange.request_owners  # nobody waits for the dead one any more

    async def _put(world: World, number: int) -> None:
        await world.client.put(ref(number), content(number), durable=True, replicas=2)

    run_virtual(main())


@in_virtual_time
async def test_a_put_outlives_a_switch_that_is_restarted() -> None:
    world = World(homes=3, replicas=2)
    world.announce(State.UP, State.UP, State.UP)
    world.network.dead.update(world.disks)
    put = asyncio.create_task(world.client.put(ref(0), content(0), durable=True, replicas=2))
    await asyncio.sleep(3.5)
    assert not put.done()
    world.network.dead.clear()
    await put
    assert len(world.holders(0)) == 2


@pytest.mark.parametrize("down_s", [1.8, 3.0])
@in_virtual_time
async def test_a_put_outlives_a_restarted_switch_behind_which_homes_come_back_one_by_one(
    down_s: float,
) -> None:
    world = World(replicas=2, controller="10.255.255.254")
    world.announce(UP, UP, UP)
    await asyncio.sleep(0.1)
    first, second = world.homes(1, 2)
    world.network.dead.update(world.nodes)
    put = asyncio.create_task(world.client.put(ref(1), content(1), replicas=2))
    await asyncio.sleep(down_s)
    world.network.dead -= world.nodes.keys() - {second}
    await asyncio.sleep(1.0)
    assert not put.done()
    world.network.dead.clear()
    await put
    assert {first, second} <= set(world.holders(1))


@in_virtual_time
async def test_a_put_whose_homes_all_stay_silent_waits_as_long_as_a_read() -> None:
    world = World(replicas=2, controller="10.255.255.254")
    world.announce(UP, UP, UP)
    world.network.dead.update(world.nodes)
    with pytest.raises(TransferTimeoutError):
        await world.client.put(ref(1), content(1), replicas=2)
    assert 5.0 < asyncio.get_running_loop().time() < 5.6


@in_virtual_time
async def test_a_put_waits_for_enough_homes_to_be_up_again_but_not_for_long() -> None:
    world = World(homes=3, replicas=2)
    world.announce(State.DOWN, State.DOWN, State.UP)
    soon = asyncio.create_task(world.client.put(ref(0), content(0), replicas=2))
    await asyncio.sleep(0.5)
    assert not soon.done()
    world.announce(State.UP, State.DOWN, State.UP)
    await soon
    assert len(world.holders(0)) == 2
    started_s = asyncio.get_running_loop().time()
    held = asyncio.create_task(world.client.put(ref(1), content(1), replicas=2))
    world.announce(State.DOWN, State.DOWN, State.UP)  # while it is on its way
    with pytest.raises(PutRefusedError):
        await held
    assert 1.9 < asyncio.get_running_loop().time() - started_s < 2.1


@in_virtual_time
async def test_two_puts_of_one_block_by_one_node_share_the_work() -> None:
    world = World(replicas=2)
    await asyncio.gather(*(world.client.put(ref(1), content(1)) for _ in range(3)))
    assert len(world.sent(NODE, wire.OP_PUT)) == FRAGMENTS
    weak = asyncio.create_task(world.client.put(ref(2), content(2)))
    await asyncio.sleep(0)
    await world.client.put(ref(2), content(2), durable=True, replicas=2)
    await weak
    assert sum(bool(list(disk.scan())) for disk in world.disks.values()) == 2


@in_virtual_time
async def test_who_gives_up_leaves_the_work_to_whoever_else_wants_it() -> None:
    world = World()
    first = asyncio.create_task(world.client.put(ref(1), content(1)))
    second = asyncio.create_task(world.client.put(ref(1), content(1)))
    await asyncio.sleep(0)
    first.cancel()
    await second
    assert world.holders(1) == world.homes(1)


@pytest.mark.parametrize("length", [0, wire.MAX_BLOCK_BYTES + 1])
@in_virtual_time
async def test_content_of_an_impossible_length_is_an_error(length: int) -> None:
    with pytest.raises(ValueError, match="a block has 1 to"):
        await World().client.put(ref(1), bytes(length))


@given(
    seed=st.integers(0, 2**32),
    lost=st.floats(0, 0.25),
    duplicated=st.floats(0, 0.3),
    corrupted=st.floats(0, 0.02),
    max_delay_s=st.floats(0.001, 0.1),
    replicas=st.integers(1, 3),
    crash=st.booleans(),
)
@in_virtual_time
async def test_what_was_acknowledged_survives_power_cuts(
    seed: int,
    lost: float,
    duplicated: float,
    corrupted: float,
    max_delay_s: float,
    replicas: int,
    crash: bool,
) -> None:
    """Whatever the network does, and even if every home loses its power at the end."""
    faults = Faults(lost, duplicated, corrupted, 0.001, max_delay_s)
    options = ClientOptions(LaneOptions(deadline_s=60), health=PATIENT)
    world = World(faults=faults, seed=seed, options=options, replicas=replicas)
    puts = [
        asyncio.create_task(
            world.client.put(ref(n), content(n, 100 + 300 * n), durable=True, replicas=replicas)
        )
        for n in range(12)
    ]
    if crash:
        victim = world.members.nodes[seed % 3].address
        await asyncio.sleep(0.01)
        world.kill(victim)
        world.restart(victim)
    done = await asyncio.wait_for(asyncio.gather(*puts, return_exceptions=True), 300)
    assert [result for result in done if result is not None] == []
    for home in world.members.nodes:
        world.kill(home.address)
        world.restart(home.address)
    for n in range(12):
        assert sorted(world.holders(n)) == sorted(world.homes(n))
    world.network.faults = Faults()
    for n in range(12):
        assert (await world.client.get(ref(n))).content == content(n, 100 + 300 * n)
