"""The queue of events: order, processes, turns."""

from random import Random

import pytest

from simulator.events import Loop, Steps, Turns


def test_what_is_due_at_once_happens_in_the_order_asked_for() -> None:
    loop, done = Loop(), list[str]()
    loop.after(1.0, done.append, "first")
    loop.at(1.0, done.append, "second")
    loop.after(0.5, done.append, "sooner")
    loop.run()
    assert done == ["sooner", "first", "second"]
    assert loop.now == 1.0


def test_what_is_due_sooner_happens_sooner_however_far_apart_it_is() -> None:
    loop, draw = Loop(), Random(2)
    asked: list[tuple[float, int]] = []
    done: list[tuple[float, int]] = []

    def happen(number: int) -> None:
        done.append((loop.now, number))
        for _ in range(draw.choice((0, 1, 2)) if len(asked) < 20_000 else 0):
            ask()

    def ask() -> None:
        delay_s = draw.choice((0.0, 1e-6, 1e-3, 1.0, 1e6)) * draw.random()
        asked.append((loop.now + delay_s, len(asked)))
        loop.after(delay_s, happen, len(asked) - 1)

    for _ in range(100):
        ask()
    loop.run()
    assert len(done) > 5000
    assert done == sorted(asked)


def test_a_process_begins_before_what_is_due_and_waits_for_time_and_events() -> None:
    loop, done = Loop(), list[tuple[str, float]]()
    gate = loop.event()

    def steps() -> Steps:
        done.append(("begun", loop.now))
        yield 2.0
        done.append(("waited", loop.now))
        yield gate
        yield gate  # it has happened: no further wait
        done.append(("through", loop.now))

    def begin() -> None:
        loop.process(steps())

    loop.after(1.0, begin)
    loop.after(1.0, lambda: done.append(("asked before", loop.now)))
    loop.after(5.0, gate.succeed)
    loop.run()
    assert done == [("begun", 1.0), ("asked before", 1.0), ("waited", 3.0), ("through", 5.0)]


def test_a_process_can_wait_for_the_end_of_another() -> None:
    loop = Loop()

    def inner() -> Steps:
        yield 3.0

    def outer() -> Steps:
        yield loop.process(inner())
        assert loop.now == 3.0
        yield 1.0

    loop.run(until=loop.process(outer()))
    assert loop.now == 4.0


def test_a_run_stops_at_its_end_and_says_when_that_cannot_come() -> None:
    loop = Loop()
    end = loop.event()
    loop.after(1.0, end.succeed)
    loop.after(2.0, pytest.fail, "after the end")
    loop.run(until=end)
    assert loop.now == 1.0
    with pytest.raises(RuntimeError, match="nothing is left"):
        Loop().run(until=Loop().event())


def test_turns_come_in_the_order_of_asking_and_end_when_a_process_fails() -> None:
    loop = Loop()
    turns, done = Turns(loop), list[tuple[str, float]]()

    def worker(name: str) -> Steps:
        with turns.request() as turn:
            yield turn
            yield 1.0
            done.append((name, loop.now))

    def failing() -> Steps:
        with turns.request() as turn:
            yield turn
            raise ValueError("broken")

    for name in ("a", "b"):
        loop.process(worker(name))
    loop.process(failing())
    loop.process(worker("c"))
    with pytest.raises(ValueError, match="broken"):
        loop.run()
    loop.run()
    assert done == [("a", 1.0), ("b", 2.0), ("c", 3.0)]
