"""summary.json has the rows of both comparisons in the form that others read."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.validate.calibrate import TYPICAL_READING
from experiments.validate.emulator import Comparison
from experiments.validate.measured import Measured
from experiments.validate.report import Section, drawn_table, emulated_section, write
from experiments.validate.rows import Row
from scenario import Scenario
from simulator.result import SimResult
from simulator.simulation import simulate
from tests.experiments.summaries import assert_described


def test_rows_are_written_with_their_source(tmp_path: Path) -> None:
    published = Row("vLLM alone", "TTFT", 2.0, 1.0, 0.25, fitted=True)
    emulated = Row("star", "blocks: pool", 10, 12, 0.1)
    write(
        tmp_path,
        [
            Section("a", "a paper", (published,), "table a"),
            Section("b", None, (emulated,), "table b"),
            Section("c", None, (replace(emulated, what="busy"),), "table c", ("busy: no CPU was left",)),
        ],
    )
    assert_described("validate", tmp_path / "summary.json")
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["literature"] == [
        {
            "source": "a paper", "row": "vLLM alone", "figure": "TTFT", "published": 2.0, "simulated": 1.0,
            "deviation": -0.5, "fitted": True,
        }
    ]  # fmt: skip
    assert summary["emulator"] == [
        {
            "scenario": "star", "figure": "blocks: pool", "emulator": 10, "simulator": 12, "deviation": 0.2,
            "tolerance": 0.1, "agrees": False,
        }
        | {"scenario": name}
        for name in ("star", "busy")
    ]  # fmt: skip
    assert summary["overloaded"] == ["busy"]
    assert "table b" in (tmp_path / "validation.md").read_text()


def test_what_was_not_compared_now_is_kept_with_its_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`make validate PART=literature` leaves the plays on the emulator where they are."""
    published = Section("a", "a paper", (Row("vLLM alone", "TTFT", 2.0, 1.0, 0.25),), "")
    busy = Section("b", None, (Row("star", "blocks: pool", 10, 12, 0.1),), "", ("busy: no CPU was left",))

    def written(revision: str, *sections: Section) -> Any:
        monkeypatch.setattr("experiments.validate.report.revision", lambda: revision)
        write(tmp_path, sections)
        return json.loads((tmp_path / "summary.json").read_text())

    first = written("old", busy)
    assert first["revisions"] == {"literature": "old", "emulator": "old"}
    both = written("new", published)
    assert both["revisions"] == {"literature": "new", "emulator": "old"}
    assert (both["emulator"], both["overloaded"]) == (first["emulator"], ["star"])
    last = written("newer", replace(busy, complaints=()))
    assert last["revisions"] == {"literature": "new", "emulator": "newer"}
    assert (last["literature"], last["overloaded"]) == (both["literature"], [])
    (tmp_path / "summary.json").write_text("{")
    assert written("newest", published)["emulator"] == []


def as_simulated(result: SimResult) -> Measured:
    counts = result.admitted, result.digests
    return Measured(1.0, result.blocks, result.ttft_s, result.get_s, *counts, 0, 0, (), "a revision")


def test_of_drawn_scenarios_those_agree_in_which_everything_does() -> None:
    result = simulate(Scenario().changed(workload={"requests": 40}))
    same = as_simulated(result)
    slow = replace(same, get_s=replace(same.get_s, p99=2 * same.get_s.p99))
    late = replace(same, complaints=("a timer was late",))
    plays = {"one": (same, same), "two": (same, slow), "three": (late, same)}
    table = drawn_table(
        [Comparison(name, pool, told[pool], result) for name, told in plays.items() for pool in (False, True)]
    )
    assert "| GET p50, s | 2 of 2 | 2 of 2 |" in table
    assert "| GET p99, s | 2 of 2 | 1 of 2 |" in table
    assert "| all of them | 2 of 2 | 1 of 2 |" in table
    assert "All figures agree in 1 of 2 scenarios" in table
    assert "in 1 more the machine did not keep up" in table
    assert "| one | - |" in table
    assert "| two | GET p99, s with -50%" in table
    assert "not measured: the usual costs" in table


def test_a_machine_that_was_another_one_afterwards_is_said_to_have_drifted() -> None:
    result = simulate(Scenario().changed(workload={"requests": 40}))
    later = replace(TYPICAL_READING, entries_s=3 * TYPICAL_READING.entries_s)
    plays = [
        Comparison("one", pool, replace(as_simulated(result), readings=(TYPICAL_READING, after)), result)
        for pool, after in ((False, TYPICAL_READING), (True, later))
    ]
    table = drawn_table(plays)
    assert "| 1.00, 1.00 times as long | 0.33 + 0.00, 0.33 + 0.00 | 3.6, 3.6 | the same |" in table
    assert "| 3.6, 8.6 | **drifted by +138%** |" in table
    assert ["drifted" in emulated_section(play).text for play in plays] == [False, True]
