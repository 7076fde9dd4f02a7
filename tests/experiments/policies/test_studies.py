import json
from dataclasses import replace
from pathlib import Path

import pytest

from commands.errors import OptionError
from controller.policies.reuse.reuse_parts import Tuning
from experiments.policies.cross import BASELINES, CANDIDATES, cross
from experiments.policies.cross_tables import write_cross
from experiments.policies.options import parse_options
from experiments.policies.pools import BELADY, make_pool
from experiments.policies.replay import replay
from experiments.policies.replay_cache import PARTS, Member, Replayed, generated, label, measure, recorded
from experiments.policies.studies import recorded_members
from workload.cost import CostModel
from workload.generate import generate
from workload.trace import Trace

COST = CostModel()


def test_results_of_leaving_out_say_what_was_not_as_usual(tmp_path: Path) -> None:
    write_cross(tmp_path / "cross.json", [], {"tokens of a block": 64})
    written = json.loads((tmp_path / "cross.json").read_text())
    assert (written["tokens of a block"], written["held_out"]) == (64, [])


def test_each_source_is_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("experiments.policies.cross.BASELINES", ("lru", "mq"))
    drawn = [generated(shape, seed, 40) for shape in ("rag", "loop") for seed in (5, 6)]
    members = [*drawn, recorded("taken", 1, generate("chat", 1, 80))]
    traces = []
    held_out = cross(members, (30,), COST, 1, lambda: traces.append(1), tmp_path)
    assert [(row.source, row.family) for row in held_out] == [
        ("generated", "rag"),
        ("generated", "loop"),
        ("taken", "taken"),
    ]
    assert len(traces) == len(members)
    assert BELADY not in BASELINES
    rag, loop, taken = held_out
    assert rag.candidate == loop.candidate
    kept = [measure(member, (30,), ("lru", "mq", *CANDIDATES), COST, tmp_path) for member in members]
    ours, lru, mq = (
        [one[30, name].total_s for one in kept[:2]]
        for name in (label(CANDIDATES[rag.candidate]), "lru", "mq")
    )
    best = max(lru, mq, key=sum)
    assert rag.against == ("lru" if best is lru else "mq")
    assert rag.saved == pytest.approx(sum(ours) / sum(best))
    # The two residuals of a ratio of two sums are each other's opposite.
    off = abs(ours[0] - rag.saved * best[0]) / (sum(best) / 2)
    assert rag.high - rag.saved == pytest.approx(12.706 * off, rel=1e-3)
    assert taken.low < taken.saved < taken.high  # of one trace, over its parts
    for row in held_out:
        assert row.belady >= 1.0 - 1e-9
        assert row.worst <= row.saved + 1e-9 or row.family != "taken"


def test_constants_are_chosen_on_the_other_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("experiments.policies.cross.BASELINES", ("lru",))
    outcomes = {  # what each of three constants saves of the baseline
        "one": (0.5, 1.0, 0.7),
        "two": (0.6, 0.5, 1.0),
        "three": (0.9, 0.8, 1.0),
    }

    def measured(member: Member, *_: object) -> dict[tuple[int, str], Replayed]:
        saved = dict(zip(CANDIDATES, outcomes[member.source], strict=True))
        names = {"lru": 1.0, BELADY: 1.0, **{label(one): share for one, share in saved.items()}}
        return {(30, name): Replayed((value / PARTS,) * PARTS, 0.5) for name, value in names.items()}

    monkeypatch.setattr("experiments.policies.cross.measure", measured)
    members = [Member(name, name, name, name, lambda: generate("rag", 1, 1)) for name in outcomes]
    held_out = cross(members, (30,), COST, 1, lambda: None, tmp_path)
    assert [(row.source, row.candidate) for row in held_out] == [("one", 2), ("two", 1), ("three", 2)]
    assert [row.saved for row in held_out] == pytest.approx([0.7, 0.5, 1.0])


def test_sources_are_a_trace_and_sessions_drawn_by_each_seed(tmp_path: Path) -> None:
    (tmp_path / "sessions").mkdir()
    call = {"t": 0.0, "type": "n", "model": "m", "in": 100, "out": 1, "hash_ids": [1, 2], "api_time": 1.0}
    session = {"block_size": 64, "tool_tokens": 0, "system_tokens": 0, "requests": [call]}
    (tmp_path / "sessions" / "a.json").write_text(json.dumps(session))
    line = {"timestamp": 0, "input_length": 600, "output_length": 1, "hash_ids": [1, 2]}
    (tmp_path / "mooncake.jsonl").write_text(json.dumps(line) + "\n")
    paths = f"{tmp_path / 'sessions'},{tmp_path / 'mooncake.jsonl'}"
    options = parse_options(["--cross=yes", f"--sources={paths}", "--seed=4", "--seeds=2"])
    members = [member for path in options.all_sources for member in recorded_members(path, options)]
    assert [(member.source, member.name) for member in members] == [
        ("sessions", "sessions-4"),
        ("sessions", "sessions-5"),
        ("mooncake", "mooncake-4"),
    ]


def test_sources_are_refused_where_they_mean_nothing(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "trace.jsonl").touch()
    first, second = (tmp_path / folder / "trace.jsonl" for folder in ("a", "b"))
    with pytest.raises(OptionError, match="CROSS=yes"):
        parse_options([f"--sources={first}"])
    with pytest.raises(OptionError, match="one name"):
        parse_options(["--cross=yes", f"--sources={first},{second}"])
    with pytest.raises(OptionError, match="there is no file"):
        parse_options(["--cross=yes", f"--sources={first},{tmp_path / 'none'}"])


def test_what_was_replayed_is_kept(tmp_path: Path) -> None:
    made = []

    def make() -> Trace:
        made.append(1)
        return generate("scan", 1, 200)

    member = Member("generated", "scan", "scan-1-200", "as it is", make)
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
        assert found.total_s == pytest.approx(result.saved_s)
        assert found.block_hit == result.block_hit
        assert len(found.saved_s) == PARTS
    changed = replace(member, identity="another")
    measure(changed, (60,), ("lru",), COST, tmp_path)
    assert len(made) == 2 + 2 * len(contenders) + 1
