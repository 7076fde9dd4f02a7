"""Who is served next when several wait."""

from __future__ import annotations

import threading
import time

from v1model.p4runtime.turns import Turns


class Queue:
    """Threads that wait for a turn, one begun after the other, while somebody holds it."""

    def __init__(self) -> None:
        self.turns, self.served = Turns(), list[str]()
        self._threads: list[threading.Thread] = []

    def wait(self, peer: str, *, is_primary: bool = False) -> None:
        waiting = len(self.turns._waiting)
        thread = threading.Thread(target=self._serve, args=(peer, is_primary))
        thread.start()
        self._threads.append(thread)
        while len(self.turns._waiting) == waiting:
            time.sleep(0.001)

    def _serve(self, peer: str, is_primary: bool) -> None:
        with self.turns.turn(peer, is_primary=is_primary):
            self.served.append(peer)

    def join(self) -> list[str]:
        for thread in self._threads:
            thread.join(60)
        return self.served


def test_primaries_come_first() -> None:
    queue = Queue()
    with queue.turns.turn("x", is_primary=False):
        queue.wait("a")
        queue.wait("b")
        queue.wait("primary", is_primary=True)
    assert queue.join() == ["primary", "a", "b"]


def test_connections_take_turns_however_much_they_ask_for() -> None:
    queue = Queue()
    with queue.turns.turn("many", is_primary=False):
        for _ in range(3):
            queue.wait("many")
        queue.wait("one")
        queue.wait("two")
    assert queue.join() == ["one", "two", "many", "many", "many"]


def test_a_turn_that_fails_is_handed_over() -> None:
    turns = Turns()
    for _ in range(2):
        try:
            with turns.turn("x", is_primary=False):
                raise KeyError
        except KeyError:
            pass
    with turns.turn("x", is_primary=True):
        pass
