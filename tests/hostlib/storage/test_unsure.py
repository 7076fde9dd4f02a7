"""Blocks that may have been deleted: kept if another home holds them or none is up, else given up."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from hostlib.protocol.block import Block, Place
from hostlib.storage.store import BlockStore
from hostlib.storage.unsure import AT_ONCE, SILENCE_S, UnsureBlocks
from tests.asynchronous import in_virtual_time
from tests.hostlib.sealed import place
from tests.hostlib.world import key

BLOCK = Block(5, b"content", bytes(16))
ANSWER_S = 0.01


class Homes:
    """In place of a node's peers: what each says that it holds, by address; None: nothing is said."""

    def __init__(self, **says: int | None) -> None:
        self.says = says
        self.asked = 0
        self.at_once = 0
        """Blocks that were asked for at the same time."""
        self._asking = 0

    async def write_at(self, peer: str, place: Place) -> int | None:
        self.asked += 1
        self._asking += 1
        self.at_once = max(self.at_once, self._asking)
        await asyncio.sleep(ANSWER_S)
        self._asking -= 1
        return self.says.get(peer)


def unsure_of(homes: Homes, count: int = 1) -> tuple[UnsureBlocks, BlockStore]:
    """A node that is unsure of blocks, all of them BLOCK."""
    store = BlockStore(1 << 20, None, lambda place, length: BLOCK)
    unsure = UnsureBlocks(store, cast("Any", homes), lambda place: list(homes.says))
    for number in range(count):
        store.put(place(key(number)), BLOCK, durable=False)
    unsure.add(place(key(number)) for number in range(count))
    return unsure, store


@pytest.mark.parametrize(
    ("says", "kept"),
    [
        ({}, True),
        ({"one": 5}, True),
        ({"one": 0}, False),
        ({"one": 6}, False),
        ({"one": 0, "other": 5}, True),
        ({"one": None, "other": 5}, True),
        ({"one": 0, "other": 0}, False),
        ({"one": None}, False),
    ],
)
@in_virtual_time
async def test_it_is_kept_if_a_home_holds_that_write_or_none_is_up(
    says: dict[str, int | None], kept: bool
) -> None:
    unsure, store = unsure_of(Homes(**says))
    began_s = asyncio.get_running_loop().time()
    assert place(key(0)) in unsure
    assert await unsure.ask() == (not kept)
    assert (place(key(0)) in store) == kept
    assert not len(unsure)
    took_s = asyncio.get_running_loop().time() - began_s
    assert (took_s > SILENCE_S) == (says == {"one": None})


@in_virtual_time
async def test_a_home_that_says_nothing_is_asked_again_until_it_falls_from_the_list() -> None:
    homes = Homes(one=None, other=0)
    unsure, store = unsure_of(homes)
    asking = asyncio.create_task(unsure.ask())
    await asyncio.sleep(2 * SILENCE_S)  # the other one goes on to answer
    assert not asking.done()
    assert homes.asked < 10 * SILENCE_S
    homes.says = {}
    assert await asking == 0
    assert place(key(0)) in store


@in_virtual_time
async def test_a_block_that_is_made_meanwhile_is_another_one() -> None:
    unsure, store = unsure_of(Homes(one=0))
    asking = asyncio.create_task(unsure.ask())
    await asyncio.sleep(ANSWER_S / 2)
    unsure.discard(place(key(0)))
    assert await asking == 0
    assert place(key(0)) in store


@in_virtual_time
async def test_what_left_meanwhile_is_not_given_up() -> None:
    unsure, store = unsure_of(Homes(one=0))
    store.drop(place(key(0)))
    assert await unsure.ask() == 0


@in_virtual_time
async def test_many_are_asked_for_some_at_once() -> None:
    homes = Homes(one=5)
    unsure, _ = unsure_of(homes, count=3 * AT_ONCE)
    assert await unsure.ask() == 0
    assert homes.asked == 3 * AT_ONCE
    assert homes.at_once == AT_ONCE
