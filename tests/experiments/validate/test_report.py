"""summary.json has the rows of both comparisons in the form that others read."""

import json
from pathlib import Path

from experiments.validate.report import Section, write
from experiments.validate.rows import Row


def test_rows_are_written_with_their_source(tmp_path: Path) -> None:
    published = Row("vLLM alone", "TTFT", 2.0, 1.0, 0.25, fitted=True)
    emulated = Row("star", "blocks: pool", 10, 12, 0.1)
    write(
        tmp_path,
        [Section("a", "a paper", (published,), "table a"), Section("b", None, (emulated,), "table b")],
    )
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
    ]  # fmt: skip
    assert "table b" in (tmp_path / "validation.md").read_text()
