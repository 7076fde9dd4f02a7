"""Results by content: found again, never computed twice, never half written."""

from pathlib import Path

import pytest

from experiments.study import results
from experiments.study.results import ResultStore, code_hash, point_name
from scenario import Scenario
from workload.compression import RECORD


def test_a_point_is_named_by_what_it_depends_on(tmp_path: Path) -> None:
    scenario = Scenario()
    assert point_name(scenario) == point_name(Scenario(name="another", source="remark"))
    assert point_name(scenario) != point_name(scenario.changed(nodes={"count": 9}))
    trace = tmp_path / "trace.jsonl"
    trace.write_text("one")
    traced = scenario.changed(workload={"trace": str(trace)})
    before = point_name(traced)
    trace.write_text("two")
    assert point_name(traced) != before


@pytest.mark.parametrize("changed", [RECORD, RECORD.with_name("cost.py")])
def test_points_are_computed_again_when_what_they_depend_on_changes(
    changed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sizes of coded blocks are data and no code, and results follow from them as well."""
    folder = tmp_path / changed.parent.relative_to(results.ROOT)
    monkeypatch.setattr(results, "ROOT", tmp_path)
    folder.mkdir(parents=True)
    (folder / changed.name).write_text("1")
    before = code_hash.__wrapped__()
    (folder / changed.name).write_text("2")
    assert code_hash.__wrapped__() != before


def test_results_are_kept_and_damaged_ones_are_computed_again(tmp_path: Path) -> None:
    store = ResultStore(tmp_path / "points")
    assert store.get("a") is None
    store.put("a", {"x": 1})
    assert ResultStore(tmp_path / "points").get("a") == {"x": 1}
    (tmp_path / "points" / "b.json").write_text('{"x":')
    assert store.get("b") is None
    assert len(store) == 2
