"""Figures of a run from its requests' records: levels of streams, and who met the time to the first token."""

from __future__ import annotations

from typing import Any

from emulator.evaluate import levels_of, target_of
from emulator.result import TargetResult


def record(arrival_s: float, ttft_s: float | None, **levels: int) -> dict[str, Any]:
    return {"arrival_s": arrival_s, "ttft_s": ttft_s, "levels": {name[1:]: n for name, n in levels.items()}}


def test_levels_of_all_requests_are_added_up() -> None:
    records = [record(0, 1, _5=2, _1=3), record(1, 1, _text=4, _1=1), record(2, 1)]
    levels = levels_of(records)
    assert levels == {"1": 4, "5": 2, "text": 4}
    assert list(levels) == ["1", "5", "text"]
    assert levels_of(records[2:]) == {}


def test_a_request_without_a_first_token_did_not_meet_its_time() -> None:
    records = [record(2, 0.5), record(0, 1.5), record(1, None), record(3, 1.0)]
    assert target_of(records, 1.0) == TargetResult(1000.0, 2, (1500.0, 500.0, 1000.0))
