"""The report: made from a small study, then opened in a real browser."""

import asyncio
import csv
import json
import re
from pathlib import Path

import pytest

from experiments.study.__main__ import main
from tests.experiments.study.browser import CHROMIUM, browser_page

WAIT_S = 60.0
pytestmark = pytest.mark.xdist_group("study report")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    assert main(["--quick", "1", "--requests", "40", "--workers", "1", "--results", str(folder)]) == 0
    return folder


@pytest.mark.timeout(300)
def test_the_page_refers_to_nothing_outside_of_it(results: Path) -> None:
    text = (results / "report.html").read_text()
    assert "<script src" not in text
    assert not re.findall(r'(?:src|href)="(?!#|data:)[^"]*"', text)
    identities = re.findall(r'\bid="([^"]+)"', text)
    assert len(identities) == len(set(identities))


@pytest.mark.timeout(300)
def test_tables_are_files_too(results: Path) -> None:
    with (results / "points.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["system"] for row in rows} >= {"recompute", "distributed", "cxl", "stores", "switch", "sram"}
    assert all(float(row["ttft_mean_s"]) > 0 for row in rows)
    assert (results / "break_even.csv").read_text().startswith("nodes,reuse,against")


@pytest.mark.timeout(300)
def test_the_summary_has_each_point_with_its_interval_and_its_cost(results: Path) -> None:
    found = json.loads((results / "summary.json").read_text())
    with (results / "points.csv").open() as file:
        assert len(found["points"]) == len(list(csv.DictReader(file)))
    for point in found["points"]:
        assert point["seeds"] == [1, 2]
        assert point["low"] <= point["mean"] <= point["high"]
        assert point["p99"] >= point["mean"]
        assert point["steady"]["low"] <= point["steady"]["mean"] <= point["steady"]["high"]
        assert point["cost_per_hour"] >= 0
    costs = {point["cost_per_hour"] for point in found["points"] if point["system"] == "recompute"}
    assert costs == {0}


@pytest.mark.parametrize("sweeps", ["rivals,nothing", "all", ",rivals"])
def test_a_sweep_that_is_not_there_is_a_clear_error(
    sweeps: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([f"--sweeps={sweeps}", "--results", str(tmp_path / "none")]) == 2
    assert "there is no sweep" in capsys.readouterr().err


@pytest.mark.timeout(300)
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (apt-get install chromium)")
def test_the_page_in_a_browser(results: Path, tmp_path: Path) -> None:
    """Loads without a complaint, draws its plots, gives its tables to download."""
    asyncio.run(_look_at(results / "report.html", tmp_path))


async def _look_at(report: Path, downloads: Path) -> None:
    async with browser_page() as page:
        await page.open(report.as_uri())
        sections = await page.run("document.querySelectorAll('section').length")
        assert sections >= 8
        drawn = await page.run(
            "[...document.querySelectorAll('section svg')].filter(svg => {"
            "const box = svg.getBoundingClientRect();"
            "return box.width > 200 && box.height > 60 && svg.querySelectorAll('path').length > 5}).length"
        )
        assert drawn == sections
        sentences = await page.run(
            "[...document.querySelectorAll('figcaption')].map(caption => caption.innerText)"
        )
        assert len(sentences) == sections
        assert all(len(sentence) > 40 and sentence.endswith(".") for sentence in sentences)
        await page.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(downloads))
        await page.run("document.querySelector('a.download').click()")
        file = downloads / "points.csv"
        async with asyncio.timeout(WAIT_S):
            while not (file.exists() and file.stat().st_size):
                await asyncio.sleep(0.05)
        assert file.read_text() == (report.parent / "points.csv").read_text()
        assert page.trouble == []
