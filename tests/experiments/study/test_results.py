"""Results by content: found again, never computed twice, never half written."""

from pathlib import Path

from experiments.simulator.scenario import Scenario
from experiments.study.results import ResultStore, point_name


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


def test_results_are_kept_and_damaged_ones_are_computed_again(tmp_path: Path) -> None:
    store = ResultStore(tmp_path / "points")
    assert store.get("a") is None
    store.put("a", {"x": 1})
    assert ResultStore(tmp_path / "points").get("a") == {"x": 1}
    (tmp_path / "points" / "b.json").write_text('{"x":')
    assert store.get("b") is None
    assert len(store) == 2
