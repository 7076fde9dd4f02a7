"""What compressing and blending are worth: cells, verdicts, and what the command leaves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from commands.intervals import mean_interval
from experiments.worth.__main__ import cells_of, main, parse
from experiments.worth.cells import Cell, Figures
from experiments.worth.page import FIGURES, cells_table
from experiments.worth.verdicts import blended, compressed
from tests.experiments.summaries import assert_described
from workload.generate import generate, to_line


def figures(ttft_ms: float, gpu_s: float = 1.0) -> Figures:
    return Figures(0.1, 0.2, 3.0, ttft_ms, ttft_ms, ttft_ms, gpu_s)


def test_a_coded_pool_beats_plain_ones_beyond_the_noise() -> None:
    cells = {
        Cell("chat", 300, "plain", "prefix"): [figures(100), figures(110), figures(105)],
        Cell("chat", 1000, "plain", "prefix"): [figures(90), figures(100), figures(95)],
        Cell("chat", 3000, "plain", "prefix"): [figures(70), figures(80), figures(75)],
        Cell("chat", 300, "CacheGen", "prefix"): [figures(80), figures(91), figures(84)],
        Cell("chat", 1000, "CacheGen", "prefix"): [figures(60), figures(150), figures(20)],
    }
    small, noisy = compressed(cells)
    assert small["beats_plain_blocks"] == 1000
    assert noisy["beats_plain_blocks"] == 0


def test_blending_is_compared_with_prefixes_of_the_same_pool() -> None:
    cells = {
        Cell("passages", 300, "plain", "prefix"): [figures(100, 10.0), figures(110, 20.0)],
        Cell("passages", 300, "plain", "blend"): [figures(60, 5.0), figures(70, 10.0)],
    }
    (one,) = blended(cells)
    assert one["than_prefix_ms"].mean == pytest.approx(-40)  # type: ignore[attr-defined]
    assert one["than_prefix_gpu"].mean == pytest.approx(-0.5)  # type: ignore[attr-defined]


def test_a_trace_with_the_name_of_a_shape_is_a_workload_of_its_own(tmp_path: Path) -> None:
    trace = tmp_path / "chat.jsonl"
    trace.write_text("".join(to_line(one) + "\n" for one in generate("chat", 3, 10).requests))
    options = parse(["--shapes", "chat", "--trace", str(trace), "--blocks", "100"])
    assert list(dict.fromkeys(cell.workload for cell in cells_of(options))) == ["chat", "chat.jsonl"]


def test_the_table_has_whole_names_in_80_columns() -> None:
    figure = mean_interval([1.0, 1.1])
    row = Cell("passages", 30_000, "CacheGen", "prefix")._asdict() | dict.fromkeys(FIGURES, figure)
    row["ttft_p99_ms"] = mean_interval([12_345.0, 12_346.0])
    with (console := Console(width=80)).capture() as shown:
        console.print(cells_table([row], 2))
    assert {"passages", "30,000", "CacheGen", "prefix", "12,346"} <= set(shown.get().split())


def test_the_command_leaves_figures_a_page_and_a_picture(tmp_path: Path) -> None:
    trace = tmp_path / "other.jsonl"
    trace.write_text("".join(to_line(one) + "\n" for one in generate("chat", 3, 30).requests))
    given = ["--shapes", "passages", "--trace", str(trace), "--blocks", "100", "--requests", "40"]
    assert main([*given, "--seeds", "2", "--results", str(tmp_path)]) == 0
    assert_described("worth", tmp_path / "summary.json")
    summary = json.loads((tmp_path / "summary.json").read_text())
    found = [(cell["workload"], cell["reuse"]) for cell in summary["cells"]]
    assert found == [("passages", "prefix")] * 3 + [("passages", "blend")] * 3 + [("other", "prefix")] * 3
    assert {cell["codec"] for cell in summary["cells"]} == {"plain", "8-bit", "CacheGen"}
    assert len(summary["blended"]) == 3
    assert all(one["than_prefix_ms"]["mean"] < 0 for one in summary["blended"])
    assert "report.html" in {path.name for path in tmp_path.iterdir()}
    assert (tmp_path / "worth.svg").stat().st_size > 10_000
