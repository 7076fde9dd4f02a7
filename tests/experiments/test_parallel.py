"""Jobs over several processes."""

import pytest

from experiments.parallel import run_all


def test_results_are_in_the_order_of_the_jobs_and_each_is_counted() -> None:
    added, finished = 10, []
    assert run_all(lambda job: job + added, [3, 1, 2], 2, lambda: finished.append(1)) == [13, 11, 12]
    assert len(finished) == 3


def test_a_failure_is_the_callers() -> None:
    with pytest.raises(ZeroDivisionError):
        run_all(lambda job: 1 // job, [1, 0], 2, lambda: None)
