"""What counts as growth."""

from __future__ import annotations

import pytest

from experiments.faults.leaks import Sample, growth, more_files


def samples(**memory: list[int]) -> list[dict[str, Sample]]:
    """By name, what each of some processes holds over time; a negative number is of another process."""
    count = max(map(len, memory.values()))
    return [
        {name: Sample(1 + (own[at] < 0), abs(own[at]), 5) for name, own in memory.items() if at < len(own)}
        for at in range(count)
    ]


def test_growth_is_from_the_first_third_to_the_last() -> None:
    assert growth(samples(a=[100, 100, 500, 500, 110, 130])) == {"a": pytest.approx(0.2)}
    assert growth(samples(a=[100] * 9)) == {"a": 0.0}


def test_files_that_are_open_for_a_while_are_no_leak() -> None:
    def opened(*files: int) -> list[dict[str, Sample]]:
        return [{"a": Sample(1, 100, count)} for count in files]

    assert more_files(opened(5, 6, 5, 5, 6, 9)) == {"a": 0}
    assert more_files(opened(5, 6, 7, 8, 9, 10)) == {"a": 3}


def test_only_who_lived_through_it_counts() -> None:
    assert growth(samples(a=[100, 100, 100], killed=[100, -900, -900], ended=[100, 100])) == {"a": 0.0}
