from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hostlib.client.node_window import NodeWindow, NodeWindowOptions

OPTIONS = NodeWindowOptions(initial=32, least=8, most=64, calm_s=0.2)


def test_it_grows_by_about_one_a_round_trip_only_while_it_is_what_limits() -> None:
    window = NodeWindow(OPTIONS)
    assert window.room(0) == 32
    for _ in range(100):
        window.answered()
    assert window.size == 32
    window.limits(True)
    for _ in range(33):
        window.answered()
    assert window.size == 33


def test_a_burst_of_losses_halves_it_once() -> None:
    window = NodeWindow(OPTIONS)
    for at_s in (1.0, 1.05, 1.1):
        window.lost(at_s)
    assert window.size == 16
    window.lost(1.25)
    assert window.size == 8


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 100)), max_size=500))
def test_it_stays_within_its_bounds(events: list[tuple[bool, int]]) -> None:
    window = NodeWindow(OPTIONS)
    for now, (lost, in_flight) in enumerate(events):
        assert 0 <= window.room(in_flight) <= OPTIONS.most
        window.limits(in_flight >= window.size)
        if lost:
            window.lost(float(now))
        else:
            window.answered()
        assert OPTIONS.least <= window.size <= OPTIONS.most
