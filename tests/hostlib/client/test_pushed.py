"""Pushed blocks: taken if wanted, whole and right; everything else is dropped and counted."""

from __future__ import annotations

from hashlib import blake2b

import pytest

from hostlib.client.pushed import PushedBlocks, PushedOptions
from hostlib.model.tiers import LocalTiers
from hostlib.protocol import wire
from hostlib.protocol.content import block_content
from hostlib.protocol.seal import Seal
from hostlib.protocol.transfer import BlockRef
from tests.hostlib.sealed import SEAL
from tests.hostlib.sealed import fragments as sealed_fragments
from workload.keys import NO_PARENT

BLOCK_BYTES = 512 + 100
OPTIONS = PushedOptions(max_partial=2, max_interests=4, subscribe_again_s=20)


def key(name: str) -> bytes:
    return blake2b(name.encode(), digest_size=16).digest()


def parent_of(name: str) -> int:
    return int.from_bytes(key(name)[:4], "big")


def fragments(name: str, parent: int = 0, seal: Seal = SEAL) -> list[wire.Message]:
    content = block_content(key(name), BLOCK_BYTES)
    return sealed_fragments(
        wire.OP_VALUE, key(name), content, flags=wire.FLAG_PUSHED, parent=parent, seal=seal
    )


@pytest.fixture
def tiers() -> LocalTiers[bytes]:
    return LocalTiers(0, 8)


@pytest.fixture
def pushed(tiers: LocalTiers[bytes]) -> PushedBlocks:
    return PushedBlocks(SEAL, tiers.__contains__, tiers.place, OPTIONS)


def offer(pushed: PushedBlocks, messages: list[wire.Message]) -> None:
    for message in messages:
        pushed.offer(message)


def test_a_block_asked_for_before_is_taken(pushed: PushedBlocks, tiers: LocalTiers[bytes]) -> None:
    pushed.asks(BlockRef(key("a")), 0.0)
    offer(pushed, fragments("a")[:1])
    assert key("a") not in tiers
    offer(pushed, fragments("a"))  # the first again, and the second
    assert key("a") in tiers
    assert tiers.use(key("a")) == "dram"
    assert pushed.stats.taken == 1


def test_so_is_what_follows_it_in_its_chain(pushed: PushedBlocks, tiers: LocalTiers[bytes]) -> None:
    pushed.asks(BlockRef(key("a")), 0.0)
    offer(pushed, fragments("b", parent_of("a")))
    offer(pushed, fragments("c", parent_of("b")))
    assert key("c") in tiers


def test_what_nobody_wants_is_not_taken(pushed: PushedBlocks, tiers: LocalTiers[bytes]) -> None:
    pushed.asks(BlockRef(key("a")), 0.0)
    offer(pushed, fragments("x", parent_of("y")))
    assert pushed.stats.unwanted == 2
    tiers.place(key("a"))
    offer(pushed, fragments("a"))  # it is here already
    assert pushed.stats.unwanted == 4


def test_what_another_secret_sealed_is_dropped(pushed: PushedBlocks, tiers: LocalTiers[bytes]) -> None:
    pushed.asks(BlockRef(key("a")), 0.0)
    offer(pushed, fragments("a", seal=Seal(SEAL.tenant, b"another secret!!")))
    assert key("a") not in tiers
    assert pushed.stats.corrupt == 2


def test_a_fragment_of_another_shape_is_not_taken(pushed: PushedBlocks) -> None:
    pushed.asks(BlockRef(key("a")), 0.0)
    first = fragments("a")[0]
    pushed.offer(first._replace(value=b"short"))
    assert pushed.stats.unwanted == 1
    pushed.offer(first._replace(fragments=3))
    assert pushed.stats.corrupt == 1


def test_incomplete_blocks_are_bounded(pushed: PushedBlocks) -> None:
    for name in ("a", "b", "c"):
        pushed.asks(BlockRef(key(name)), 0.0)
        offer(pushed, fragments(name)[:1])
    assert pushed.stats.dropped == 1


def test_only_the_first_block_of_a_prefix_subscribes_and_not_too_often(pushed: PushedBlocks) -> None:
    first, second = BlockRef(key("a")), BlockRef(key("b"), 1, 2, parent_of("a"))
    assert pushed.asks(first, 0.0)
    assert not pushed.asks(second, 0.0)
    assert not pushed.asks(first, 19.9)
    assert pushed.asks(first, 20.0)
    pushed.subscribing = False
    assert not pushed.asks(first, 100.0)


def test_without_dram_nothing_is_kept() -> None:
    tiers = LocalTiers[bytes](4, 0)
    tiers.place(key("a"))
    assert key("a") not in tiers


def test_who_joins_wants_all_prefixes_from_their_beginning_on(
    pushed: PushedBlocks, tiers: LocalTiers[bytes]
) -> None:
    offer(pushed, fragments("a"))
    assert key("a") not in tiers
    assert pushed.asks(BlockRef(NO_PARENT), 0.0)
    offer(pushed, fragments("a"))
    offer(pushed, fragments("b", parent_of("a")))
    offer(pushed, fragments("x", parent_of("y")))
    assert {key("a"), key("b")} <= tiers.keys()
    assert key("x") not in tiers
    assert pushed.asks(BlockRef(key("c")), 1.0)  # it subscribes to prefixes as any other
