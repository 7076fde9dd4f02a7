"""Turns on the cores of an emulating machine."""

import math
from itertools import pairwise

import pytest

from simulator.emulated.cpu import Cold, Cpu, Process, Timers
from simulator.events import Loop


def test_without_a_cpu_everything_happens_at_once() -> None:
    done: list[str] = []
    Process(None).do(5.0, done.append, "a")
    assert done == ["a"]


def test_processes_wait_for_a_core() -> None:
    loop = Loop()
    cpu = Cpu(loop, cores=2, slowdown=0.0, seed=1)
    done: list[tuple[str, float]] = []
    for name in "abc":
        Process(cpu, wake_s=0.5).do(1.0, lambda name=name: done.append((name, loop.now)))
    loop.run()
    assert done == [("a", 1.5), ("b", 1.5), ("c", 3.0)]


def test_a_process_wakes_once_for_all_that_came_meanwhile() -> None:
    loop = Loop()
    process = Process(Cpu(loop, cores=1, slowdown=0.0, seed=1), wake_s=1.0)
    done: list[tuple[int, float]] = []
    for number in range(3):
        process.do(0.5, lambda number=number: done.append((number, loop.now)))
    loop.run()
    # The first is taken alone, the two that came while it ran together.
    assert done == [(0, 1.5), (1, 3.5), (2, 3.5)]


def test_a_process_that_is_busy_does_not_take_a_second_core() -> None:
    loop = Loop()
    process = Process(Cpu(loop, cores=2, slowdown=0.0, seed=1))
    done: list[float] = []
    process.do(1.0, lambda: process.do(1.0, lambda: done.append(loop.now)))
    process.do(1.0, lambda: done.append(loop.now))
    loop.run()
    assert done == [3.0, 3.0]


def test_work_takes_longer_by_chance_and_never_less() -> None:
    loop = Loop()
    process = Process(Cpu(loop, cores=1, slowdown=0.5, seed=1))
    ends: list[float] = []

    def again() -> None:
        ends.append(loop.now)
        if len(ends) < 400:
            process.do(1.0, again)

    process.do(1.0, again)
    loop.run()
    spans = [end - begin for begin, end in pairwise(ends)]
    assert min(spans) >= 1.0
    assert 1.4 < sum(spans) / len(spans) < 1.6


def test_the_first_wake_ups_after_a_rest_take_longer_by_how_long_it_was() -> None:
    loop = Loop()
    process = Process(Cpu(loop, cores=1, slowdown=0.0, seed=1), 0.1, Cold((2.0, 1.0), rest_s=10.0))
    took_s: list[float] = []

    def ask(began_s: float) -> None:
        process.do(0.0, lambda: took_s.append(loop.now - began_s))

    loop.after(20.0, ask, 20.0)
    loop.after(22.5, ask, 22.5)
    loop.after(24.0, ask, 24.0)
    loop.after(25.0, ask, 25.0)
    loop.run()
    rested = 1 - math.exp(-2)
    assert took_s[:2] == pytest.approx([0.1 + 2 * rested, 0.1 + rested])
    # Warm again but for the short rests since, the second of which is the longer one.
    shares = [(took - 0.1) / 2.0 for took in took_s[2:]]
    assert all(0 < share < 0.1 for share in shares)


def test_a_longer_rest_before_all_was_touched_again_begins_anew() -> None:
    loop = Loop()
    process = Process(Cpu(loop, cores=1, slowdown=0.0, seed=1), 0.0, Cold((2.0, 1.0), rest_s=10.0))
    ends: list[float] = []
    for at_s in (1.0, 1000.0):
        loop.after(at_s, process.do, 0.0, lambda: ends.append(loop.now))
    loop.run()
    assert ends[1] == pytest.approx(1002.0)


def test_timers_go_off_late_by_less_than_a_tick_and_in_order_and_waits_are_whole_ticks() -> None:
    timers = Timers(0.001, "1 0")
    due_s = (1.0, 1.0, 1.0, 1.0002, 5.0)
    begun_s = [now_s + timers.late_s(now_s) for now_s in due_s]
    assert begun_s == sorted(begun_s)
    assert all(0 <= at_s - now_s < 0.001 for at_s, now_s in zip(begun_s, due_s, strict=True))
    assert 0.0032 + timers.beyond_s(0.0032) == 0.004
    assert timers.beyond_s(0.25) < 1e-12
