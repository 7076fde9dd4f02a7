"""The bounded memory of reported blocks."""

from __future__ import annotations

from controller.block_id import block_id, key_of
from controller.pool.known_blocks import KnownBlocks
from hostlib.protocol.wire import fingerprint
from tests.controller.pool_world import TENANT, hot_miss, key


def parent_of(known: KnownBlocks, number: int, **fields: int) -> bytes | None:
    """Who is found for a child of a block."""
    return known.parent_of(hot_miss(9, parent=fingerprint(key_of(key(number))), **fields))


def test_a_report_counts_what_came_since_the_one_before() -> None:
    known = KnownBlocks(10)
    assert [known.report(hot_miss(1, count)) for count in (2, 4, 16)] == [2, 2, 12]


def test_after_the_sketch_halved_its_counts_a_report_stands_for_one() -> None:
    known = KnownBlocks(10)
    known.report(hot_miss(1, 16))
    assert known.report(hot_miss(1, 8)) == 1


def test_a_parent_is_found_by_its_fingerprint() -> None:
    known = KnownBlocks(10)
    known.report(hot_miss(1))
    assert parent_of(known, 1) == key(1)
    assert parent_of(known, 2) is None
    assert known.parent_of(hot_miss(9, parent=0)) is None


def test_nobody_is_the_parent_of_another_tenant_s_block() -> None:
    known = KnownBlocks(10)
    known.report(hot_miss(1))
    assert parent_of(known, 1, tenant=TENANT + 1) is None


def test_of_two_blocks_with_one_fingerprint_the_last_is_meant_and_outlives_the_other() -> None:
    known = KnownBlocks(2)
    twin = key_of(key(1))[:4] + bytes(12)
    known.report(hot_miss(1))
    known.report(hot_miss(2, key=twin))
    known.report(hot_miss(3))  # the first is forgotten
    assert known.get(key(1)) is None
    assert known.parent_of(hot_miss(9, parent=fingerprint(twin))) == block_id(TENANT, twin)


def test_it_holds_no_more_than_its_limit_and_forgets_the_oldest_report() -> None:
    known = KnownBlocks(3)
    for number in (1, 2, 3, 1, 4):
        known.report(hot_miss(number))
    assert len(known) == 3
    assert known.get(key(2)) is None
    assert known.get(key(1)) is not None
    assert parent_of(known, 2) is None
