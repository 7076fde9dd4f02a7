"""The report: made from a small study, then opened in a real browser."""

import csv
import json
import re
from pathlib import Path

import pytest
from plotly.offline import get_plotlyjs

from experiments.study.__main__ import main
from experiments.study.summary import SUMMARY_TIMES
from tests.experiments.browser import look, needs_chromium
from tests.experiments.summaries import assert_described

SMALL = ("--quick", "1", "--requests", "20", "--workers", "1")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of one axis, with all kinds of purchases."""
    folder = tmp_path_factory.mktemp("study")
    assert main([*SMALL, "--sweeps", "link_gbit_s", "--results", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def all_results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of all sweeps."""
    folder = tmp_path_factory.mktemp("study")
    assert main([*SMALL, "--results", str(folder)]) == 0
    return folder


@pytest.mark.timeout(300)
def test_the_page_refers_to_nothing_outside_of_it(results: Path) -> None:
    text = (results / "report.html").read_text()
    text = text.replace(get_plotlyjs(), "")
    assert "<script src" not in text
    assert not re.findall(r'(?:src|href)="(?!#|data:)[^"]*"', text)


@pytest.mark.timeout(300)
def test_tables_are_files_too(results: Path) -> None:
    with (results / "points.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["system"] for row in rows} >= {"recompute", "distributed", "cxl", "stores", "switch"}
    assert all(float(row["ttft_mean_s"]) > 0 for row in rows)


@pytest.mark.timeout(300)
def test_the_summary_has_each_point_with_its_interval_and_its_cost(results: Path) -> None:
    assert_described("study", results / "summary.json")
    found = json.loads((results / "summary.json").read_text())
    with (results / "points.csv").open() as file:
        assert len(found["points"]) == len(list(csv.DictReader(file)))
    for point in found["points"]:
        assert point["seeds"] == [1, 2]
        assert point["low"] <= point["mean"] <= point["high"]
        assert point["p99"] >= point["mean"]
        for time in (point, *(point[name] for name in SUMMARY_TIMES)):
            assert time["low"] <= time["mean"] <= time["high"]
            assert time["p99_low"] <= time["p99"] <= time["p99_high"]
        assert point["cost_per_hour"] >= 0
    costs = {point["cost_per_hour"] for point in found["points"] if point["system"] == "recompute"}
    assert costs == {0}


@pytest.mark.parametrize("sweeps", ["rivals,nothing", "all", ",rivals"])
def test_a_sweep_that_is_not_there_is_a_clear_error(
    sweeps: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([f"--sweeps={sweeps}", "--results", str(tmp_path / "none")]) == 2
    assert "SWEEPS: there is no" in capsys.readouterr().err


@pytest.mark.timeout(300)
@needs_chromium
def test_the_page_in_a_browser(results: Path, tmp_path: Path) -> None:
    looks_whole(results, 2, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(300)
@needs_chromium
def test_the_page_of_all_sweeps(all_results: Path, tmp_path: Path) -> None:
    assert (all_results / "map.csv").read_text().startswith("nodes,model,traffic")
    assert (all_results / "ledger.csv").read_text().startswith("nodes,seeds,requests,requests_low")
    looks_whole(all_results, 20, tmp_path)


def looks_whole(results: Path, sections: int, tmp_path: Path) -> None:
    """The page loads without a complaint; each section has plots that are drawn, and a table."""
    found = look(results / "report.html", 1280, SECTIONS, tmp_path)
    assert len(found) >= sections
    *panels, everything = found
    assert everything["title"] == "All simulations"
    for section in panels:
        assert section["plots"] >= 1, section
        assert section["drawn"] == section["plots"], section
        assert section["rows"] >= 1, section


SECTIONS = """
const sections = [];
for (const part of document.body.querySelectorAll("h2, table, .js-plotly-plot")) {
  if (part.tagName === "H2") sections.push({title: part.textContent, plots: 0, drawn: 0, rows: 0});
  else if (sections.length) {
    const section = sections[sections.length - 1];
    if (part.tagName === "TABLE") section.rows += part.tBodies[0].rows.length;
    else {
      section.plots += 1;
      const svg = part.querySelector("svg"), box = svg && svg.getBoundingClientRect();
      const shapes = svg ? svg.querySelectorAll("path").length : 0;
      section.drawn += Boolean(box && box.width > 200 && box.height > 60 && shapes > 5);
    }
  }
}
return sections;
"""


def test_a_budget_that_ends_leaves_a_report_that_says_so(tmp_path: Path) -> None:
    assert main([*SMALL, "--minutes", "0.02", "--results", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "summary.json").read_text())
    assert found["coarse"]
    assert len(found["points"]) < 150
    assert (
        "Means left wider than wanted (±1 %, in the map ±0.5 %), or out"
        in (tmp_path / "report.html").read_text()
    )
