"""No replay goes by counts of its own trace, or prices blocks of another size than the trace's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from controller.policies.reuse.reuse import Reuse
from controller.policies.reuse.reuse_parts import Parts, Tuning
from controller.policies.reuse.reuse_prior import CONVERSATION, Counts, shipped
from experiments.policies import beforehand, pools
from experiments.policies.__main__ import main
from experiments.policies.beforehand import (
    counted_on,
    in_words,
    is_counted,
    known_for,
    known_of_others,
    marks,
)
from experiments.policies.cross import quarters_of
from experiments.policies.explain import explain_trace
from experiments.policies.kept import measure
from experiments.policies.known import of_others
from experiments.policies.pools import make_pool, make_reuse
from workload.cost import DEFAULT_LINK_BIT_S, CostModel
from workload.generate import generate, name_of, to_line
from workload.shapes import ALL_SHAPES
from workload.trace import Trace

COST = CostModel()


Made = tuple[CostModel, Sequence[Counts]]


@pytest.fixture
def trace() -> Trace:
    return generate("rag", 1, 40)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Made]:
    """Cost model of every `reuse` that a replay makes, and what it knows beforehand."""
    made: list[Made] = []

    class Recorded(Reuse):
        def __init__(self, blocks: int, cost: CostModel, *rest: Any) -> None:
            made.append((cost, rest[-1]))
            super().__init__(blocks, cost, *rest)

    monkeypatch.setattr(pools, "Reuse", Recorded)
    return made


def take_for_counted(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on the counts that `reuse` comes with are those of this trace."""
    known = frozenset(marks(trace.requests))
    assert known
    monkeypatch.setattr(beforehand, "counted_on", lambda: known)


def replay_all_ways(trace: Trace, folder: Path) -> None:
    make_pool("reuse", 30, trace, COST)
    make_pool("reuse", 30, trace, COST, Parts(worth=False))
    (member, *_) = quarters_of(trace, others=False)
    measure(replace(member, make=lambda: trace), (30,), (Tuning(),), COST, folder)
    explain_trace(Console(quiet=True), trace, "0", 30, COST)


def test_a_replay_of_the_trace_that_was_counted_goes_without_its_counts(
    trace: Trace,
    made: list[Made],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    counts = shipped()[CONVERSATION]
    assert counts in known_for(trace)
    take_for_counted(trace, monkeypatch)
    replay_all_ways(trace, tmp_path)
    assert len(made) == 4
    assert all(len(known) == len(shipped()) - 1 and counts not in known for _, known in made)


def test_a_piece_of_what_was_counted_is_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = generate("rag", 1, 1200)
    take_for_counted(whole, monkeypatch)
    requests = whole.requests
    later = tuple(replace(request, arrival_s=2 * request.arrival_s) for request in requests[700:])
    renumbered = tuple(replace(r, blocks=tuple(n + 10**6 for n in r.blocks)) for r in requests[300:600])
    for piece in (requests, requests[500:700], requests[::3], later, renumbered):
        assert known_for(replace(whole, requests=piece)) == known_of_others()
    others = generate("rag", 2, 1200).requests
    assert not is_counted(replace(whole, requests=others))
    assert not is_counted(replace(whole, requests=requests[:300] + others))


@pytest.mark.parametrize("shorter", ["", ", from 8 blocks on"])
def test_a_mix_that_was_counted_goes_without_its_counts(made: list[Made], shorter: str) -> None:
    counted, unknown = (generate("services", seed, 20) for seed in (1101, 101))
    for mix in (counted, unknown):
        make_pool("reuse", 30, replace(mix, name=mix.name + shorter), COST)
    (_, of_others), (_, of_all) = made
    own = shipped()[name_of("services", 1101)]
    assert own not in of_others
    assert len(of_others) == len(shipped()) - 1
    assert own in of_all
    assert len(of_all) == len(shipped())
    assert "95 mixes" in in_words(counted)
    assert "96 mixes" in in_words(unknown)


def test_generated_traces_are_no_pieces_of_the_conversation_trace() -> None:
    assert len(counted_on()) > 500
    assert not any(is_counted(generate(shape, 1, 500)) for shape in ALL_SHAPES)


def test_others_of_which_nothing_comes_again_tell_nothing(trace: Trace) -> None:
    once = replace(trace, requests=trace.requests[:1])
    (first,), second = of_others([once, trace])
    assert np.isfinite(first.scaled(1.0).reuses).all()
    assert second == []
    assert of_others([trace]) == [[]]


def test_every_replay_prices_blocks_of_the_traces_size(
    trace: Trace, made: list[Made], tmp_path: Path
) -> None:
    small = replace(trace, schema=replace(trace.schema, block_tokens=16))
    replay_all_ways(small, tmp_path)
    assert {cost.block_tokens for cost, _ in made} == {16}
    own = replace(COST, block_tokens=16)
    account = make_reuse(30, small, COST).explain(0)
    assert account.fetch_s == pytest.approx(own.fetch_s(own.block_bytes, DEFAULT_LINK_BIT_S))


def test_the_run_says_what_is_known_beforehand(
    trace: Trace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "some.jsonl"
    path.write_text("".join(to_line(request) + "\n" for request in trace.requests))
    small = ("--trace", str(path), "--blocks", "30", "--jobs", "1", "--results", str(tmp_path))
    usual = (*small, "--policies", "reuse,lru", "--ablation", "no")
    monkeypatch.setenv("COLUMNS", "300")
    assert main(usual) == 0
    assert "mixes of drawn services and on the conversation trace" in capsys.readouterr().out
    take_for_counted(trace, monkeypatch)
    assert main(usual) == 0
    assert "counts of the conversation trace are left out" in capsys.readouterr().out
    assert "left out" in in_words(trace)
    monkeypatch.setattr("experiments.policies.cross.BASELINES", ("lru",))
    for others, said in (("yes", "what the other quarters tell"), ("no", "mixes of drawn services")):
        assert main(("--cross", "yes", "--others", others, "--seeds", "1", "--shapes", "rag",
                     "--requests", "40", *small)) == 0  # fmt: skip
        assert f"reuse knows beforehand: {said}" in capsys.readouterr().out
