"""Hints to the homes of a block: what they do, and what the client is told of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from hostlib.client.client_options import ClientOptions
from hostlib.protocol import wire
from hostlib.protocol.block import Place
from hostlib.protocol.hints import Hint, HintOutcome
from hostlib.protocol.members import State
from hostlib.storage.store_options import StoreOptions
from tests.asynchronous import in_virtual_time
from tests.hostlib.network import Faults
from tests.hostlib.sealed import TENANT
from tests.hostlib.world import BLOCK_BYTES, NODE, World, content, key, ref

pytestmark = pytest.mark.usefixtures("either_core")

DRAM_BLOCKS = 4


def world(homes: int = 1, replicas: int = 1, **more: object) -> World:
    return World(homes=homes, replicas=replicas, dram_bytes=DRAM_BLOCKS * BLOCK_BYTES, **more)  # type: ignore[arg-type]


def in_dram(world: World, number: int) -> list[bool]:
    """At each home whether the block is in its DRAM."""
    place = Place(TENANT, key(number))
    return [place in store and not store.on_ssd_only(place) for store in world.stores.values()]


async def put(world: World, *numbers: int, replicas: int = 1) -> None:
    for number in numbers:
        await world.client.put(ref(number), content(number), replicas=replicas)


@in_virtual_time
async def test_a_retained_block_stays_while_others_leave_until_its_time_is_over() -> None:
    one = world()
    await put(one, 0, 1)
    assert await one.client.hint(ref(0), Hint.RETAIN, 100) is HintOutcome.DONE
    await put(one, *range(2, 12))
    assert in_dram(one, 0) == [True]
    assert in_dram(one, 1) == [False]
    await asyncio.sleep(101)
    await put(one, *range(12, 20))
    assert in_dram(one, 0) == [False]


@in_virtual_time
async def test_a_hint_reaches_every_home_of_a_block() -> None:
    one = world(homes=2, replicas=2)
    await put(one, 0, replicas=2)
    assert await one.client.hint(ref(0), Hint.RETAIN, 1000) is HintOutcome.DONE
    await put(one, *range(1, 12), replicas=2)
    assert in_dram(one, 0) == [True, True]
    assert await one.client.hint(ref(0), Hint.RETAIN, 0) is HintOutcome.DONE
    await put(one, *range(12, 24), replicas=2)
    assert in_dram(one, 0) == [False, False]


@in_virtual_time
async def test_what_is_demoted_leaves_first_and_what_is_prefetched_is_there_before_it_is_asked_for() -> None:
    one = world()
    await put(one, 0, 1, 2)
    assert await one.client.hint(ref(2), Hint.DEMOTE) is HintOutcome.DONE
    assert in_dram(one, 2) == [False]
    assert in_dram(one, 0) == [True]
    assert (await one.client.get(ref(2))).content == content(2)
    assert await one.client.hint(ref(2), Hint.DEMOTE) is HintOutcome.DONE
    assert await one.client.hint(ref(2), Hint.PREFETCH) is HintOutcome.DONE
    await asyncio.sleep(1)
    assert in_dram(one, 2) == [True]


@in_virtual_time
async def test_what_may_be_retained_is_bounded_and_the_rest_refused() -> None:
    one = world(store_options=StoreOptions(retained_share=1.0))  # half of it for one tenant: two blocks
    await put(one, 0, 1, 2)
    outcomes = [await one.client.hint(ref(number), Hint.RETAIN, 1000) for number in range(3)]
    assert outcomes == [HintOutcome.DONE, HintOutcome.DONE, HintOutcome.REFUSED]
    assert await one.client.hint(ref(0), Hint.RETAIN, 0) is HintOutcome.DONE
    assert await one.client.hint(ref(2), Hint.RETAIN, 1000) is HintOutcome.DONE
    await one.client.delete(ref(2))  # what is gone takes no room
    await put(one, 3)
    assert await one.client.hint(ref(3), Hint.RETAIN, 1000) is HintOutcome.DONE


@in_virtual_time
async def test_a_block_that_is_not_there_an_unknown_hint_and_an_impossible_time() -> None:
    one = world()
    await put(one, 0)
    assert await one.client.hint(ref(9), Hint.RETAIN, 10) is HintOutcome.NOT_FOUND
    assert await one.client.hint(ref(0), 77) is HintOutcome.REFUSED  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="0 to 65535 seconds"):
        await one.client.hint(ref(0), Hint.RETAIN, 1 << 16)


@in_virtual_time
async def test_homes_that_know_no_hints_and_silent_ones_give_no_answer() -> None:
    one = world()
    await put(one, 0)
    (home,) = one.nodes
    (node,) = one.nodes.values()
    plain = node._on_stat
    node._on_stat = lambda message, backlog_ms: plain(message._replace(flags=0), backlog_ms)  # type: ignore[method-assign]
    assert await one.client.hint(ref(0), Hint.RETAIN, 10) is HintOutcome.NO_ANSWER
    one.kill(home)
    assert await one.client.hint(ref(0), Hint.RETAIN, 10) is HintOutcome.NO_ANSWER


@in_virtual_time
async def test_hints_get_through_a_network_that_loses_packets() -> None:
    one = World(homes=1, faults=Faults(lost=0.1), seed=3)
    await put(one, *range(10))
    hints = (one.client.hint(ref(number), Hint.RETAIN, 50) for number in range(10))
    assert set(await asyncio.gather(*hints)) == {HintOutcome.DONE}
    sent = [message for _, message in one.sent(NODE, wire.OP_STAT) if message.flags & wire.FLAG_HINT]
    assert len(sent) > 10


@in_virtual_time
async def test_nothing_is_left_of_a_retained_block_that_is_gone() -> None:
    """Else whoever puts, retains and deletes blocks of its own has a home remember ever more of them."""
    one = world()
    (node,) = one.nodes.values()
    for number in range(20):
        await put(one, number)
        assert await one.client.hint(ref(number), Hint.RETAIN, 65_535) is HintOutcome.DONE
        assert await one.client.delete(ref(number))
    assert not node._hinted._ends


@pytest.mark.parametrize(("answer", "hinted"), [(None, 0), (False, 0), (True, 1)])
@in_virtual_time
async def test_the_controller_hears_of_hints_that_pools_take_and_says_what_became_of_them(
    answer: bool | None, hinted: int
) -> None:
    controller = "10.255.255.254"
    heard: list[wire.Message] = []
    one = world(options=ClientOptions(controller=controller))
    one.announce(State.UP)
    port = one.network.port(controller)

    def take(source: str, datagrams: Sequence[wire.Buffer]) -> None:
        hints = [said for said in map(wire.decode, map(bytes, datagrams)) if said.op == wire.OP_STAT]
        heard.extend(hints)
        for said in hints if answer is not None else ():
            found = said._replace(op=wire.OP_FOUND, fragments=1, recompute_ms=int(bool(answer)))
            port.send(source, [wire.encode(found)])

    port.set_receiver(take)
    await put(one, 0)
    assert await one.client.hint(ref(0), Hint.RETAIN, 100) is HintOutcome.DONE  # the home does it
    assert await one.client.hint(ref(0), Hint.PREFETCH) is HintOutcome.DONE
    missing = HintOutcome.DONE if answer else HintOutcome.NOT_FOUND
    assert await one.client.hint(ref(7), Hint.DEMOTE) is missing
    assert one.client.stats.pools_hinted == 2 * hinted
    assert {said.backlog_ms for said in heard} == {Hint.RETAIN, Hint.DEMOTE}
    assert {said.flags for said in heard} == {wire.FLAG_BYPASS | wire.FLAG_HINT}
