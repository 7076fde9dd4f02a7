from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.protocol import wire
from hostlib.protocol.block import Place
from hostlib.protocol.catalog import EXAMINED_A_PAGE, FIRST, LAST, PAGE_ENTRIES, make_page, read_page
from hostlib.protocol.errors import MalformedError

places = st.builds(Place, st.integers(0, 3), st.binary(min_size=16, max_size=16))


@given(st.lists(places, unique=True, max_size=700), st.integers(1, 5))
def test_all_pages_together_name_every_wanted_block_once(held: list[Place], every: int) -> None:
    held.sort()
    wanted = [place for place in held if place.key[0] % every == 0]
    start, found = FIRST, []
    for _ in range(len(held) // min(PAGE_ENTRIES, EXAMINED_A_PAGE) + 2):
        page = make_page(held, start, lambda place: (place.key[1] + 1, 4) if place in set(wanted) else None)
        assert len(page) <= wire.VALUE_BYTES
        following, entries = read_page(page)
        found += [entry.place for entry in entries]
        assert all((entry.write, entry.fragments) == (entry.place.key[1] + 1, 4) for entry in entries)
        if following == LAST:
            break
        assert following > start
        start = following
    assert found == wanted


@given(st.binary(max_size=wire.VALUE_BYTES))
def test_hostile_pages_are_malformed_or_short(value: bytes) -> None:
    try:
        _, entries = read_page(value)
    except MalformedError:
        return
    assert len(entries) <= PAGE_ENTRIES


@pytest.mark.parametrize(("write", "fragments"), [(0, 4), (5, 0)])
def test_a_page_that_lists_what_is_no_block_is_malformed(write: int, fragments: int) -> None:
    page = make_page([Place(1, bytes(16))], FIRST, lambda place: (write, fragments))
    with pytest.raises(MalformedError):
        read_page(page)


def test_an_empty_value_is_no_page() -> None:
    with pytest.raises(MalformedError):
        read_page(b"")
