"""What homes said waits there goes by as time does."""

import pytest

from hostlib.client.backlogs import Backlogs


def test_a_report_ages_as_the_queue_it_spoke_of_drains() -> None:
    backlogs = Backlogs()
    assert backlogs.wait_s("a", 5.0) == 0
    backlogs.report("a", 2.0, 10.0)
    assert backlogs.wait_s("a", 10.0) == pytest.approx(2.0)
    assert backlogs.wait_s("a", 11.5) == pytest.approx(0.5)
    assert backlogs.wait_s("a", 100.0) == 0
    backlogs.report("a", 0.1, 10.5)
    assert backlogs.wait_s("a", 10.5) == pytest.approx(0.1)
