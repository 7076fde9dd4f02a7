"""Replays with hints, on sessions whose result can be told beforehand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from experiments.policies.hints import NOTHING, STRATEGIES, NodeHints, replay_hints, report, saved_s
from experiments.policies.stores import DEFAULT_LINKS
from tests.workload.test_session_service import serve
from tests.workload.test_sessions import call, session, sub_agent
from workload.cost import CostModel
from workload.session_hints import SessionHint, session_hints
from workload.trace import Request, Trace

COST = CostModel()


def long_lived() -> Trace:
    """Sessions whose chains are replaced once, so half of what they asked for is dead."""
    first, second = list(range(40)), [*range(2), *range(100, 138)]
    calls = [call(10.0 * at, first if at < 4 else second) for at in range(8)]
    record = session(*calls, tool_tokens=64, system_tokens=64)
    return serve(record, record, record, sessions_per_hour=3000.0, hours=0.02)


def test_blocks_are_dead_when_a_chain_or_a_session_ends_but_not_those_that_others_need() -> None:
    record = session(
        call(0, [1, 2, 3, 4]),
        sub_agent(3, call(0, [1, 2, 7]), call(1, [1, 2, 7, 8])),
        call(20, [1, 2, 3, 5]),
        tool_tokens=64,
    )
    trace = serve(record, sessions_per_hour=1.0, hours=3.0)
    hints = list(session_hints(trace))[:4]
    chains = [request.blocks for request in trace.requests[:4]]
    assert [hint.shared for hint in hints] == [(chains[0][0],), (), (), (chains[3][0],)]
    assert hints[0].dead == hints[1].dead == ()
    assert hints[2].dead == chains[2][:1:-1]  # of the sub-agent alone; its parent still has the first two
    assert set(hints[3].dead) == {*chains[0][1:], chains[3][3]}


def test_hints_change_what_is_saved_and_are_compared_with_none(tmp_path: Path) -> None:
    trace = long_lived()
    results = replay_hints([trace, trace], (60,), COST, 1, lambda: None, DEFAULT_LINKS)
    assert [one.hints for one in results] == [name for name in STRATEGIES if name != NOTHING]
    by_name = {one.hints: one for one in results}
    assert by_name["demote what is dead"].ratio >= 1.0
    assert by_name["demote what is dead"].low == pytest.approx(by_name["demote what is dead"].ratio)
    report(Console(quiet=True), results, tmp_path / "hints.json", {"seed": 1})
    written = json.loads((tmp_path / "hints.json").read_text())
    assert (written["seed"], len(written["hints"])) == (1, len(STRATEGIES) - 1)


def test_who_demotes_all_that_is_asked_for_saves_nothing() -> None:
    def everything(request: Request, hint: SessionHint, next_s: float | None) -> NodeHints:
        return NodeHints(request.blocks[::-1])

    trace = long_lived()
    assert saved_s(trace, 60, everything, COST, DEFAULT_LINKS) == 0.0
    assert saved_s(trace, 60, STRATEGIES[NOTHING], COST, DEFAULT_LINKS) > 0.0
