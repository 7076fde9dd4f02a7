"""Messages that wait for the controller: bounded by kind, answers first."""

from __future__ import annotations

import threading
import time

import pytest

from controller import inbox as module
from controller.inbox import Inbox, Kind


def inbox(most: int = 3) -> Inbox:
    return Inbox(most, lambda message: Kind[message.split()[0].upper()])


def test_a_flood_of_reports_pushes_out_no_answer() -> None:
    box = inbox()
    assert [box.put(f"report {number}") for number in range(100)].count(True) == 3
    assert box.put("answer")
    assert box.take(0, 10) == ["answer", "report 0", "report 1", "report 2"]


def test_nor_does_a_flood_of_what_nodes_compute() -> None:
    box = inbox()
    assert [box.put(f"expectation {number}") for number in range(100)].count(True) == 3
    assert box.put("report")
    assert box.put("answer")
    assert box.take(0, 3) == ["answer", "report", "expectation 0"]
    assert box.take(0, 9) == ["expectation 1", "expectation 2"]


def put_soon(box: Inbox, *messages: str) -> None:
    """Put these one after the other, while somebody waits."""

    def put() -> None:
        for message in messages:
            time.sleep(0.01)
            box.put(message)

    threading.Thread(target=put).start()


def test_what_nodes_compute_waits_for_more_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GATHER_S", 60)
    box = inbox()
    put_soon(box, "expectation 1", "expectation 2", "report")
    assert box.take(60, 9) == ["report", "expectation 1", "expectation 2"]


def test_answers_are_bounded_too() -> None:
    box = inbox()
    assert [box.put(f"answer {number}") for number in range(5)] == [True] * 3 + [False] * 2


def test_what_is_not_taken_at_once_stays() -> None:
    box = inbox()
    for message in ("report", "answer 1", "answer 2"):
        box.put(message)
    assert box.take(0, 1) == ["answer 1"]
    assert box.take(0, 9) == ["answer 2", "report"]
    assert box.take(0, 9) == []


def test_who_waits_is_woken_by_a_message_and_without_one() -> None:
    box = inbox()
    put_soon(box, "answer")
    assert box.take(60, 9) == ["answer"]
    threading.Timer(0.01, box.wake).start()
    assert box.take(60, 9) == []


def test_answers_wait_for_one_another_but_no_report_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GATHER_S", 60)
    box = inbox()
    put_soon(box, "answer 1", "answer 2", "report")
    assert box.take(60, 9) == ["answer 1", "answer 2", "report"]
    box.put("answer 3")
    threading.Timer(0.01, box.wake).start()
    assert box.take(60, 9) == ["answer 3"]
    box.put("answer 4")
    assert box.take(0, 9) == ["answer 4"]


def test_all_that_comes_while_somebody_takes_is_taken() -> None:
    """A message that came between a look and a wait must end the wait."""
    box = inbox(most=10_000)
    senders = [
        threading.Thread(target=lambda: [box.put(f"answer {number}") for number in range(500)])
        for _ in range(3)
    ]
    for sender in senders:
        sender.start()
    taken: list[str] = []
    while len(taken) < 1500:
        some = box.take(60, 7)
        assert some
        taken += some
    for sender in senders:
        sender.join()
    assert box.take(0, 7) == []
