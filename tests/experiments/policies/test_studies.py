import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from controller.policies.reuse.reuse import Reuse
from controller.policies.reuse.reuse_parts import Tuning
from controller.policies.reuse.reuse_prior import read_counts, shipped
from experiments.policies.beforehand import known_of_others, marks
from experiments.policies.cross import BASELINES, CANDIDATES, cross, quarters, quarters_of
from experiments.policies.cross_tables import write_cross
from experiments.policies.kept import Member, generated, label, measure
from experiments.policies.known import counts_of
from experiments.policies.known import main as write_known
from experiments.policies.pools import BELADY, PolicyPool, make_pool
from experiments.policies.replay import replay
from workload.cost import CostModel
from workload.generate import generate, name_of, to_line
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
        assert row.belady >= max(1.0, row.in_hindsight) - 1e-9
    whole = {
        name: sum(one[30, name].saved_s[-1] for one in kept)
        for name in ("lru", "mq", label(CANDIDATES[rag.candidate]))
    }
    assert rag.against == max(("lru", "mq"), key=lambda name: whole[name])
    assert rag.in_sum == pytest.approx(whole[label(CANDIDATES[rag.candidate])] / whole[rag.against])


def test_all_that_comes_again_is_counted() -> None:
    trace = generate("rag", 1, 60)
    blocks = [block for request in trace.requests for block in request.blocks]
    counts = counts_of(trace)
    assert counts.reuses.sum() == len(blocks) - len(set(blocks)) > 0
    assert counts.exposure.sum() > 0


def test_of_each_quarter_what_the_others_tell_is_known(tmp_path: Path) -> None:
    trace = generate("chat", 1, 80)
    reuses = [counts_of(part).reuses for part in quarters(trace)]
    members = quarters_of(trace, others=True)
    for number, member in enumerate(members):
        assert member.known is not None
        *drawn, others = member.known
        assert drawn == known_of_others()
        assert np.array_equal(others.reuses, sum(reuses) - reuses[number])
    assert [member.identity for member in quarters_of(trace)] == [m.identity for m in members]
    plain = quarters_of(trace, others=False)
    assert all(member.known == known_of_others() for member in plain)
    assert {member.identity for member in plain}.isdisjoint(member.identity for member in members)
    kept = measure(members[0], (30,), (Tuning(),), COST, tmp_path)
    pool = PolicyPool(Reuse(30, COST, known=members[0].known))
    hit = replay(members[0].make(), "reuse", 30, pool, COST).block_hit
    assert kept[30, label(Tuning())].block_hit == hit


def test_counts_of_a_trace_are_written(tmp_path: Path) -> None:
    trace = generate("chat", 1, 60)
    path = tmp_path / "chats.jsonl"
    path.write_text("".join(to_line(request) + "\n" for request in trace.requests))
    options = ["--shapes=rag", "--seed=1", "--seeds=2", "--requests=60", f"--trace={path}"]
    assert write_known([*options, f"--results={tmp_path}"]) == 0
    read = read_counts(tmp_path / "known.npz")
    generated = {name_of("rag", seed): generate("rag", seed, 60) for seed in (1, 2)}
    expected = {**generated, "chats": trace}
    assert list(read) == list(expected)
    for name, counted in expected.items():
        assert read[name].reuses.sum() == counts_of(counted).reuses.sum()
    requests = tmp_path / "chats_requests.txt"
    assert set(requests.read_text().split()) == set(marks(trace.requests))


def test_of_a_trace_in_which_nothing_comes_again_no_counts_are_written(tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_text("".join(to_line(request) + "\n" for request in generate("chat", 1, 60).requests))
    options = ["--shapes=rag", "--seed=1", "--seeds=1", "--requests=1", f"--trace={path}"]
    assert write_known([*options, f"--results={tmp_path}"]) == 0
    assert list(read_counts(tmp_path / "known.npz")) == ["chats"]


@pytest.mark.parametrize("seed", [1101, 1150])
def test_counts_that_reuse_comes_with_are_those_of_drawn_mixes(seed: int) -> None:
    """A part of a mix has fewer reuses than all of it, and none at ages that all of it never reaches."""
    whole = shipped()[name_of("services", seed)]
    part = counts_of(generate("services", seed, 1000))
    assert 0 < part.reuses.sum() < whole.reuses.sum()
    assert not part.reuses[whole.exposure + whole.reuses == 0].any()


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
