"""Stories of blocks: counted, in order, bounded."""

from controller.pool.stories import MOST_BLOCKS, MOST_TURNS, Stories


def block(number: int) -> bytes:
    return number.to_bytes(18, "big")


def test_the_hottest_are_those_wanted_most_in_the_pool_or_not() -> None:
    stories = Stories()
    stories.reported(block(1), depth=4, times=3)
    stories.hit(block(2), 5)
    stories.reported(block(3), depth=0, times=2)
    stories.hit(block(3), 4)
    assert [(key, story.wanted) for key, story in stories.hottest(2)] == [(block(3), 6), (block(2), 5)]
    assert dict(stories.hottest(3))[block(1)].depth == 4


def test_the_last_turns_are_kept() -> None:
    stories = Stories()
    for number in range(MOST_TURNS + 1):
        stories.turned(block(1), float(number), "admitted")
    ((_, story),) = stories.hottest(1)
    assert (len(story.turns), story.turns[0], story.turns[-1][0]) == (
        MOST_TURNS,
        (1.0, "admitted"),
        MOST_TURNS,
    )


def test_there_are_never_more_than_so_many_and_the_hot_ones_stay() -> None:
    stories = Stories()
    stories.hit(block(0), 100)
    for number in range(1, 2 * MOST_BLOCKS):
        stories.reported(block(number), 0, 1)
    assert len(stories.hottest(3 * MOST_BLOCKS)) <= MOST_BLOCKS
    assert stories.hottest(1)[0][0] == block(0)
