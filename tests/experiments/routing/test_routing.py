"""Schedulers with and without a pool: every case is in table and file, and what a pool is for shows."""

import json
from pathlib import Path

import pytest

from experiments.routing.__main__ import main
from tests.experiments.summaries import assert_described


def test_a_pool_spares_prefill_whoever_routes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--shapes", "agents", "--loads", "1", "--requests", "150", "--seeds", "2", "--hosts", "4"]
    assert main([*few, "--schedulers", "round_robin,conductor", "--results", str(tmp_path)]) == 0
    said, page = capsys.readouterr().out, (tmp_path / "report.html").read_text()
    for part in ("agents, 1 times its rate", "blind with a pool over aware without"):
        assert part in said
        assert part in page
    assert_described("routing", tmp_path / "summary.json")
    summary = json.loads((tmp_path / "summary.json").read_text())
    (point,) = summary["point"]
    assert (point["with_pool"], point["without"]) == ("round_robin", "conductor")
    assert 0 < point["prefill_ratio"]["mean"] < 1.1
    cases = summary["cases"]
    found = {(case["scheduler"], case["shared"]): case for case in cases}
    assert set(found) == {(s, k) for s in ("round_robin", "conductor") for k in ("own", "stores", "pool")}
    prefill_s = {case: one["prefill_s"]["mean"] for case, one in found.items()}
    assert prefill_s["round_robin", "pool"] < prefill_s["round_robin", "own"]
    assert prefill_s["conductor", "own"] < prefill_s["round_robin", "own"]
    assert found["conductor", "own"]["storage_gbyte"]["mean"] == 0


def test_a_scheduler_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--schedulers", "magic"]) == 2
    assert (
        "choose one of random, round_robin, balanced, locality, sessions, pinned, spread, conductor"
        in capsys.readouterr().err
    )
