"""The benchmark of large tables, in small."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.bench.tables import __main__ as bench
from experiments.bench.tables.cases import Case
from experiments.bench.tables.entries import exact, router
from experiments.bench.tables.share import Loaded
from tests.experiments.summaries import assert_described


@pytest.mark.parametrize(
    "case",
    [
        Case("exact", "", lambda seed: exact(50, 64, seed), {"EXACT": 1}),
        Case("router", "", lambda seed: router(50, 40, 64, seed)),
    ],
    ids=["exact", "router"],
)
def test_every_packet_is_forwarded_and_timed(case: Case) -> None:
    content = case.make(7)
    assert content == case.make(7)
    with Loaded(case, content) as loaded:
        assert loaded.packet_ns() > 0
        assert loaded.inserts_per_s > 0


def test_the_summary_has_all_cases(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    small = (
        Case("exact", "one exact match", lambda seed: exact(20, 16, seed), {"EXACT": 1}),
        Case("router", "a router", lambda seed: router(20, 10, 16, seed), reference="exact"),
    )
    monkeypatch.setattr(bench, "CASES", small)
    assert bench.main(["--ports", "no", "--rounds", "2", "--results", str(tmp_path)]) == 0
    assert_described("bench tables", tmp_path / "summary.json")
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert set(summary["packet_ns"]) == {"exact", "router"}
    assert all(len(values) == 2 for values in summary["packet_ns"].values())
