"""Blocks with a lifetime: gone after it everywhere, for good, whoever was away or restarted meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from hostlib.protocol import wire
from hostlib.protocol.hints import MAX_LIFETIME_S, Hint, Outcome
from hostlib.protocol.seal import Seal
from hostlib.storage import lifetimes
from hostlib.storage.expiry import LOOK_S
from tests.hostlib.deletions import DOWN, UP, come_back, is_found, run, until
from tests.hostlib.network import Faults
from tests.hostlib.sealed import TENANT
from tests.hostlib.world import World, content, key, ref

pytestmark = pytest.mark.usefixtures("either_core")

LIFETIME_S = 100


async def pass_s(world: World, seconds: float) -> None:
    """Let time pass on all clocks."""
    world.clock_s += seconds
    await asyncio.sleep(max(seconds, LOOK_S) + 1)


async def store(world: World, number: int, replicas: int = 1) -> None:
    await world.client.put(ref(number), content(number), durable=True, replicas=replicas)


async def let_expire(world: World, number: int, seconds: int = LIFETIME_S) -> Outcome:
    return await world.client.hint(ref(number), Hint.EXPIRE, seconds)


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_block_is_there_until_its_time_is_over_and_nowhere_after_it(replicas: int) -> None:
    async def main() -> None:
        world = World(replicas=replicas)
        for number in (1, 2):
            await store(world, number, replicas)
        assert await let_expire(world, 1) is Outcome.DONE
        await pass_s(world, LIFETIME_S - 1)
        assert await is_found(world.client, 1)
        await pass_s(world, 2)
        assert not world.holders(1)
        assert not await is_found(world.client, 1)
        assert await is_found(world.client, 2)

    run(main)


def test_what_is_stored_anew_after_it_has_no_lifetime() -> None:
    async def main() -> None:
        world = World()
        await store(world, 1)
        assert await let_expire(world, 1) is Outcome.DONE
        assert await world.client.delete(ref(1))
        await store(world, 1)
        await pass_s(world, LIFETIME_S + 1)
        assert await is_found(world.client, 1)

    run(main)


def test_of_two_lifetimes_the_earlier_end_counts() -> None:
    async def main() -> None:
        world = World()
        await store(world, 1)
        for seconds in (LIFETIME_S, 10 * LIFETIME_S, LIFETIME_S // 2):
            assert await let_expire(world, 1, seconds) is Outcome.DONE
        await pass_s(world, LIFETIME_S // 2 + 1)
        assert not await is_found(world.client, 1)

    run(main)


@pytest.mark.parametrize("off_s", [LIFETIME_S / 2, 2 * LIFETIME_S])
def test_a_storage_node_that_lost_its_power_knows_the_lifetimes(off_s: float) -> None:
    async def main() -> None:
        world = World(homes=1)
        (home,) = world.nodes
        await store(world, 1)
        assert await let_expire(world, 1) is Outcome.DONE
        world.kill(home)
        world.clock_s += off_s
        node = world.restart(home)
        node.start()
        await asyncio.sleep(1)
        assert await is_found(world.client, 1) is (off_s < LIFETIME_S)
        await pass_s(world, LIFETIME_S)
        assert not world.holders(1)
        assert not len(world.stores[home].lifetimes)

    run(main)


def test_who_copied_a_block_meanwhile_forgets_it_too() -> None:
    """It was away when the lifetime was said, and took the block from another home."""

    async def main() -> None:
        world = World(replicas=2)
        away = world.members.nodes[0].address
        number = next(number for number in range(99) if away in world.homes(number))
        world.kill(away)
        world.announce(DOWN, UP, UP)
        await store(world, number, 2)
        assert await let_expire(world, number) is Outcome.DONE
        await come_back(world, away)
        world.announce(UP, UP, UP)
        await until(lambda: away in world.holders(number))
        assert not len(world.stores[away].lifetimes)
        await pass_s(world, LIFETIME_S + 1)
        assert not world.holders(number)

    run(main)


def test_the_end_of_a_lifetime_reaches_everybody_through_a_network_that_loses_packets() -> None:
    async def main() -> None:
        world = World(replicas=2, faults=Faults(lost=0.1), seed=5)
        for number in range(8):
            await store(world, number, 2)
            assert await let_expire(world, number) is Outcome.DONE
        await pass_s(world, LIFETIME_S + 1)
        assert not any(world.holders(number) for number in range(8))

    run(main)


def test_the_controller_hears_of_the_end_so_that_pools_forget_the_block() -> None:
    async def main() -> None:
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

    run(main)


def test_nobody_without_the_tenants_secret_gives_a_block_a_lifetime() -> None:
    async def main() -> None:
        world = World(homes=1)
        (home,) = world.nodes
        await store(world, 1)
        stranger = world.another_client("10.0.0.9")
        stranger._deletions._seal = Seal(TENANT, b"guessed" * 4)
        assert await stranger.hint(ref(1), Hint.EXPIRE, 1) is Outcome.NOT_FOUND
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

    run(main)


def test_lifetimes_are_bounded_and_impossible_ones_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifetimes, "MAX_OF_TENANT", 2)

    async def main() -> None:
        world = World(homes=1)
        for number in range(3):
            await store(world, number)
        assert await let_expire(world, 9) is Outcome.NOT_FOUND
        outcomes = [await let_expire(world, number) for number in range(3)]
        assert outcomes == [Outcome.DONE, Outcome.DONE, Outcome.REFUSED]
        for seconds in (0, MAX_LIFETIME_S + 1):
            with pytest.raises(ValueError, match="a block lives for 1 to"):
                await let_expire(world, 2, seconds)
        world.kill(next(iter(world.nodes)))
        assert await let_expire(world, 2) is Outcome.NO_ANSWER

    run(main)
