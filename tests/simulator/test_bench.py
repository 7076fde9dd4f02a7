"""The cost of simulating grows no faster than requests times nodes."""

from pathlib import Path

import pytest

from experiments.simulate import bench
from experiments.simulate.bench import costs


def test_cost_is_at_most_linear_in_requests_and_nodes() -> None:
    found = {
        (cost.scenario.nodes.count, cost.result.requests): cost.result.cpu_s
        for cost in costs((150, 600), (4, 256))
    }
    # Twice of linear: CPU time on a busy machine is not exact; quadratic cost would be 16 and 4,096 times.
    assert found[4, 600] < 2 * 4 * found[4, 150] + 1.0
    assert found[256, 150] < 2 * 64 * found[4, 150] + 1.0


@pytest.mark.parametrize(("nodes", "hops"), [(4, 2), (256, 3.75)])
def test_hops_are_links_between_nodes_and_storage_nodes(nodes: int, hops: float) -> None:
    (found,) = costs((2,), (nodes,))
    assert found.hops == pytest.approx(hops)


def test_a_trace_that_is_none_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "costs", lambda: ())
    assert bench.main(["--trace", str(tmp_path / "none.jsonl")]) == 2
    assert capsys.readouterr().err.startswith("error: ")
    monkeypatch.delenv("TRACE", raising=False)
    assert bench.main([]) == 0
    assert "revision " in capsys.readouterr().out
