"""Links: first come first served, cut through, slow feeders."""

from hypothesis import given
from hypothesis import strategies as st

from simulator.link import Link


def test_a_message_cuts_through() -> None:
    link = Link("a->b", 100.0, 0.5)
    assert link.send(10.0, 200.0, 10.0) == (10.0 + 0.1 + 0.5, 10.0 + 2.0 + 0.5)


def test_messages_queue_and_the_wait_is_seen() -> None:
    link = Link("a->b", 100.0, 0.0)
    link.send(0.0, 300.0, 10.0)
    assert link.wait_s(1.0) == 2.0
    assert link.send(1.0, 100.0, 10.0)[1] == 4.0
    assert link.longest_wait_s == 2.0


def test_what_arrives_slowly_leaves_slowly_without_blocking_others() -> None:
    link = Link("a->b", 100.0, 0.0)
    assert link.send(0.0, 100.0, 10.0, tail_s=9.0)[1] == 9.0
    assert link.send(1.0, 100.0, 10.0)[1] == 2.0


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(1, 1000)), min_size=1, max_size=30))
def test_a_link_never_sends_faster_than_its_rate(messages: list[tuple[float, float]]) -> None:
    link, now_s, ends = Link("a->b", 50.0, 0.0), 0.0, []
    for gap_s, size_bytes in messages:
        now_s += gap_s
        ends.append(link.send(now_s, size_bytes, 1.0)[1])
    assert ends == sorted(ends)
    assert link.sent_bytes <= 50.0 * ends[-1] * (1 + 1e-9)
