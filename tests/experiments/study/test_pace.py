"""The rate of a sweep and the time that it will take."""

import pytest

from experiments.study.pace import Pace


def test_points_that_were_known_say_nothing_of_the_rate() -> None:
    pace = Pace()
    assert pace.text(90, 100, 90, now_s=1000.0) == ""
    assert pace.text(92, 100, 90, now_s=1004.0) == "0.5 points/s, 0:00:16 left"
    assert pace.text(100, 100, 90, now_s=1020.0) == "0.5 points/s, 0:00:00 left"


def test_another_sweep_begins_anew() -> None:
    pace = Pace()
    pace.text(0, 10, 0, now_s=0.0)
    assert pace.text(5, 10, 0, now_s=1.0).startswith("5 points/s")
    assert pace.text(0, 2000, 0, now_s=50.0) == ""
    assert pace.text(100, 2000, 0, now_s=150.0) == "1 points/s, 0:31:40 left"


@pytest.mark.parametrize("now_s", [0.0, -1.0])
def test_no_time_is_no_rate(now_s: float) -> None:
    pace = Pace()
    pace.text(0, 10, 0, now_s=0.0)
    assert pace.text(1, 10, 0, now_s=now_s) == ""
