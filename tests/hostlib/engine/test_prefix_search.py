"""A search finds what asking about every block would find, with few questions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from hostlib.engine.prefix_search import FIRST_WAVE, WAVE, ObjectPlace, PrefixSearch


def search(
    blocks: int, shards: int, is_there: Callable[[ObjectPlace], bool]
) -> tuple[int, list[list[ObjectPlace]]]:
    """The number found, and the questions of each wave."""
    waves: list[list[ObjectPlace]] = []

    async def ask(places: Sequence[ObjectPlace]) -> list[bool]:
        waves.append(list(places))
        return [is_there(place) for place in places]

    return asyncio.run(PrefixSearch(blocks, shards).run(ask)), waves


@given(st.integers(1, 9000), st.lists(st.integers(0, 10_000), min_size=1, max_size=9))
def test_the_shard_that_has_fewest_blocks_decides(blocks: int, held: list[int]) -> None:
    found, waves = search(blocks, len(held), lambda place: place[0] < held[place[1]])
    assert found == min(blocks, *held)
    assert len(waves) <= 6
    assert max(map(len, waves)) <= WAVE


def test_a_prompt_of_131072_tokens_over_eight_ranks_takes_few_questions() -> None:
    blocks, ranks = 131_072 // 16, 8
    for held in (0, 1, 100, 4097, blocks - 1, blocks):
        found, waves = search(blocks, ranks, lambda place, held=held: place[0] < held)  # type: ignore[misc]
        assert found == held
        assert sum(map(len, waves)) <= 3 * WAVE + FIRST_WAVE  # asking about all takes 65,536


@given(st.integers(1, WAVE), st.sets(st.integers(0, WAVE)))
def test_every_hole_in_a_prompt_that_fits_one_wave_is_noticed(blocks: int, holes: set[int]) -> None:
    found, waves = search(blocks, 1, lambda place: place[0] not in holes)
    assert found == min([*holes, blocks])
    assert len(waves) <= 2


@given(st.integers(WAVE + 1, 9000), st.data())
def test_with_holes_in_a_long_prompt_the_answer_ends_at_one_or_where_nothing_more_is(
    blocks: int, data: st.DataObject
) -> None:
    holes = data.draw(st.sets(st.integers(0, blocks - 1), min_size=1, max_size=20))
    found, _ = search(blocks, 1, lambda place: place[0] not in holes)
    assert found in holes or found == blocks


def test_a_first_block_that_is_gone_is_always_noticed() -> None:
    """Least recently used leaves first: of a prompt, its beginning."""
    assert search(9000, 1, lambda place: place[0] > 0)[0] == 0


def test_a_long_prompt_of_which_nothing_is_there_takes_few_questions() -> None:
    assert sum(map(len, search(9000, 8, lambda place: False)[1])) == FIRST_WAVE


def test_what_is_known_is_kept_when_a_look_up_is_interrupted() -> None:
    searching = PrefixSearch(9000, 1)
    asked = 0

    async def ask(places: Sequence[ObjectPlace]) -> list[bool]:
        nonlocal asked
        asked += 1
        if asked == 3:
            raise TimeoutError
        return [block < 5000 for block, _ in places]

    async def run() -> None:
        try:
            await searching.run(ask)
        except TimeoutError:
            return
        raise AssertionError("it was not interrupted")

    asyncio.run(run())
    assert 5000 - 9000 // WAVE - 1 <= searching.found <= 5000
