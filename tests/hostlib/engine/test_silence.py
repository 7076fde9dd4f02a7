"""What is said of storage nodes that do not answer, once for each change."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, cast

import pytest

from hostlib.engine.silence import Silence

if TYPE_CHECKING:
    from hostlib.engine.shared_client import BlockClient


class Knows:
    """What a client knows of two storage nodes."""

    def __init__(self) -> None:
        self.suspects: list[str] = []

    @property
    def is_answering(self) -> bool:
        return len(self.suspects) < 2


STEPS = [
    ([], []),
    (["b"], ["Storage node b does not answer: what only it holds is computed until it does."]),
    (["b"], []),
    (["a", "b"], ["The pool does not answer (none of a, b): prompts are computed until it does."]),
    (["a", "b"], []),
    (
        ["a"],
        [
            "The pool answers again.",
            "Storage node a does not answer: what only it holds is computed until it does.",
        ],
    ),
    ([], ["Storage node a answers again."]),
    (["a", "b"], ["The pool does not answer (none of a, b): prompts are computed until it does."]),
    ([], ["The pool answers again."]),
    ([], []),
]


def test_each_change_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    client = Knows()
    silence = Silence(cast("BlockClient", client))
    silence.level = logging.DEBUG
    with caplog.at_level(logging.DEBUG, "weir"):
        for suspects, expected in STEPS:
            client.suspects = suspects
            silence.look()
            assert [record.message for record in caplog.records] == expected
            assert all(record.levelno == logging.DEBUG for record in caplog.records)
            caplog.clear()
