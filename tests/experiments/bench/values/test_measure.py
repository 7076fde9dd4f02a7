"""What a byte costs: figures of a size add up to all parts, and ratios compare within a round."""

from __future__ import annotations

import pytest

from experiments.bench.switch.errors import BenchError
from experiments.bench.values.__main__ import ratios
from experiments.bench.values.measure import _bare_udp, _ns_a_byte, parts


def test_ratios_are_of_the_same_round() -> None:
    equal = dict.fromkeys(parts(), 1.0)
    rounds = [equal | {"switch, hits": cost, "bare echo, hits": cost / 2} for cost in (2, 8, 4)]
    assert ratios(rounds)["switch / bare echo, hits"] == 2
    assert ratios(rounds)["switch / bare echo, puts"] == 1


def test_a_core_s_time_is_shared_among_the_bytes_that_came_through() -> None:
    assert _ns_a_byte("1000 8192000\n", 8192) == 1
    with pytest.raises(BenchError, match="no datagram with 8192 bytes"):
        _ns_a_byte("0 5\n", 8192)


def test_bare_udp_moves_datagrams_of_a_size() -> None:
    costs = _bare_udp(1408, 0.05)
    assert set(costs) == set(parts()[:2])
    assert all(cost > 0 for cost in costs.values())
