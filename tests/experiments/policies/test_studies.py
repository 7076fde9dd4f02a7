import json
from dataclasses import replace
from pathlib import Path

import pytest

from controller.policies.reuse.reuse_parts import Tuning
from experiments.policies.cross import BASELINES, CANDIDATES, cross, quarters, quarters_of
from experiments.policies.cross_tables import write_cross
from experiments.policies.pools import BELADY, make_pool
from experiments.policies.replay import replay
from experiments.policies.replay_cache import Member, generated, label, measure
from workload.cost import CostModel
from workload.generate import generate
from workload.trace import Trace

COST = CostModel()


def test_quarters_are_all_of_a_trace() -> None:
    trace = generate("chat", 1, 200)
    parts = quarters(trace)
    assert len(parts) == 4
    assert sum(len(part.requests) for part in parts) == 200
    assert all(part.requests[0].arrival_s >= 0 and part.duration_s <= trace.duration_s / 4 for part in parts)


def test_results_of_leaving_out_say_what_was_not_as_usual(tmp_path: Path) -> None:
    write_cross(tmp_path / "cross.json", [], {"tokens of a block": 64})
    written = json.loads((tmp_path / "cross.json").read_text())
    assert (written["tokens of a block"], written["held_out"]) == (64, [])


def test_each_family_is_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("experiments.policies.cross.BASELINES", ("lru", "mq"))
    drawn = [generated(shape, seed, 40) for shape in ("rag", "loop") for seed in (5, 6)]
    members = [*drawn, *quarters_of(generate("chat", 1, 80))]
    traces = []
    held = cross(members, (30,), COST, 1, lambda: traces.append(1), tmp_path)
    assert [(row.family, row.blocks) for row in held] == [("rag", 30), ("loop", 30), ("trace", 30)]
    assert all(0 <= row.candidate < len(CANDIDATES) and row.worst <= row.saved for row in held)
    assert len(traces) == len(members) == 2 + 2 + 4
    assert BELADY not in BASELINES
    rag = held[0]
    kept = [measure(member, (30,), ("lru", "mq", *CANDIDATES), COST, tmp_path) for member in members[:2]]
    ours, lru, mq = (
        [one[30, name].saved_s[0] for one in kept] for name in (label(CANDIDATES[0]), "lru", "mq")
    )
    best = max(lru, mq, key=sum)
    assert rag.early[0] == pytest.approx(sum(ours) / sum(best))
    # The two residuals of a ratio of two sums are each other's opposite.
    off = abs(ours[0] - rag.early[0] * best[0]) / (sum(best) / 2)
    assert rag.early_interval[0] == pytest.approx(12.706 * off, rel=1e-3)
    for row in held:
        assert row.belady >= 1.0 - 1e-9
    whole = {
        name: sum(one[30, name].saved_s[-1] for one in kept)
        for name in ("lru", "mq", label(CANDIDATES[rag.candidate]))
    }
    assert rag.against == max(("lru", "mq"), key=lambda name: whole[name])
    assert rag.in_sum == pytest.approx(whole[label(CANDIDATES[rag.candidate])] / whole[rag.against])


def test_what_was_replayed_is_kept(tmp_path: Path) -> None:
    made = []

    def make() -> Trace:
        made.append(1)
        return generate("scan", 1, 200)

    member = Member("scan", "scan-1-200", "as it is", make)
    first = measure(member, (60,), ("lru", "mq"), COST, tmp_path)
    path = tmp_path / "scan-1-200.jsonl"
    path.write_text(path.read_text()[:-10])  # interrupted while the last line was being written
    contenders = ("lru", "mq", Tuning())
    second = measure(member, (60,), contenders, COST, tmp_path)
    assert measure(member, (60,), contenders, COST, tmp_path) == second
    assert len(made) == 2
    assert first.items() <= second.items()
    for contender in contenders:
        name = contender if isinstance(contender, str) else "reuse"
        result = replay(make(), name, 60, make_pool(name, 60, make(), COST), COST)
        found = second[60, label(contender)]
        assert found.saved_s[-1] == pytest.approx(result.saved_s)
        assert found.block_hit == result.block_hit
        assert 0 < found.saved_s[0] < found.saved_s[1] <= found.saved_s[-1]
    changed = replace(member, identity="another")
    measure(changed, (60,), ("lru",), COST, tmp_path)
    assert len(made) == 2 + 2 * len(contenders) + 1
