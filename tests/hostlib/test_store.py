from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

import pytest

from hostlib import wire
from hostlib.content import block_content
from hostlib.ssd import SsdTier
from hostlib.store import BlockStore

BLOCK_BYTES = 1024 + 10
FRAGMENTS = 3


def key(number: int) -> bytes:
    return blake2b(number.to_bytes(4, "big"), digest_size=16).digest()


def content(number: int) -> bytes:
    return block_content(key(number), BLOCK_BYTES)


def puts(number: int, data: bytes | None = None) -> list[wire.Message]:
    data = content(number) if data is None else data
    return [
        wire.Message(wire.OP_PUT, key(number), at, FRAGMENTS, value=data[512 * at : 512 * at + 512])
        for at in range(FRAGMENTS)
    ]


def put(store: BlockStore, number: int, data: bytes | None = None) -> list[bool]:
    """Put a whole block; for each fragment, whether the block was whole from then on."""
    messages = puts(number, data)
    assert all(map(store.accepts, messages))
    return [store.put_fragment(message) for message in messages]


def make_store(directory: Path | None = None, dram: int = 4, ssd: int = 4, partial: int = 4) -> BlockStore:
    tier = SsdTier(directory, ssd * BLOCK_BYTES, BLOCK_BYTES) if directory else None
    return BlockStore(BLOCK_BYTES, dram * BLOCK_BYTES, tier, partial)


def test_a_block_is_visible_when_its_last_fragment_is_there() -> None:
    store = make_store()
    for message in reversed(puts(1)):
        assert store.get(key(1)) is None
        store.put_fragment(message)
    assert store.get(key(1)) == content(1)


def test_blocks_are_immutable() -> None:
    store = make_store()
    assert put(store, 1) == [False, False, True]
    assert put(store, 1, bytes(BLOCK_BYTES)) == [True, True, True]
    assert store.get(key(1)) == content(1)
    assert store.sizes()["partial"] == 0


@pytest.mark.parametrize(
    "change",
    [{"fragments": FRAGMENTS + 1}, {"fragment": FRAGMENTS - 1}, {"value": b"short"}],
)
def test_fragments_of_another_shape_are_not_accepted(change: dict[str, object]) -> None:
    assert not make_store().accepts(puts(1)[0]._replace(**change))  # type: ignore[arg-type]


def test_incomplete_puts_are_bounded_and_the_oldest_goes() -> None:
    store = make_store(partial=2)
    for number in (1, 2, 3):
        store.put_fragment(puts(number)[0])
    assert store.sizes()["partial"] == 2
    assert store.stats.partial_dropped == 1
    for message in puts(2)[1:]:
        store.put_fragment(message)
    assert store.get(key(2)) == content(2)


def test_dram_is_bounded_and_without_ssd_the_least_recently_used_goes() -> None:
    store = make_store(dram=2)
    put(store, 1)
    put(store, 2)
    store.get(key(1))
    put(store, 3)
    assert [store.get(key(n)) is not None for n in (1, 2, 3)] == [True, False, True]


def test_a_put_of_a_block_that_is_here_is_a_use_of_it() -> None:
    store = make_store(dram=2)
    put(store, 1)
    put(store, 2)
    put(store, 1)
    put(store, 3)
    assert [store.get(key(n)) is not None for n in (1, 2, 3)] == [True, False, True]


def test_what_dram_has_no_room_for_moves_to_ssd_and_comes_back(tmp_path: Path) -> None:
    store = make_store(tmp_path, dram=2, ssd=10)
    odd = bytes(range(256)) * 4 + b"0123456789"
    put(store, 1, odd)
    for number in range(2, 6):
        put(store, number)
    assert store.sizes() == {"dram": 2, "ssd": 3, "partial": 0}
    assert store.get(key(1)) == odd  # as received, not as derived
    assert store.stats.ssd_hits == 1
    assert store.get(key(1)) == odd
    assert store.stats.dram_hits == 1


def test_preloaded_blocks_are_there_and_take_room(tmp_path: Path) -> None:
    store = make_store(tmp_path, dram=2, ssd=3)
    store.preload([key(n) for n in range(7)])
    assert store.sizes() == {"dram": 2, "ssd": 3, "partial": 0}
    assert [store.get(key(n)) == content(n) for n in range(7)] == [False, False, True, True, True, True, True]


def test_preloading_without_ssd_keeps_the_youngest() -> None:
    store = make_store(dram=2)
    store.preload([key(n) for n in range(5)])
    assert [n for n in range(5) if store.get(key(n)) is not None] == [3, 4]
