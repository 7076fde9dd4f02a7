"""Pages: what they hold is escaped, complete, and drawn by a real browser."""

import base64
import json
import re
import shutil
import subprocess
from pathlib import Path

import plotly.graph_objects as go
import pytest

from experiments.page import SERIES, Page, bar_chart, base_layout, line_chart, series_style

CHROMIUM = shutil.which("chromium")


def page_with_a_plot() -> Page:
    page = Page("A <title>")
    page.heading("One & two")
    figure = go.Figure(layout=base_layout(title_text="plot"))
    figure.add_scatter(x=[1, 2], y=[3, 4], name="series", **series_style(0))
    page.plot(figure, 'what "it" shows')
    page.plot(line_chart("line", "s", {"a<b": [(1.0, 2.0), (2.0, 4.0)], "c": [(1.0, 1.0)]}), "a line")
    page.plot(bar_chart("bars", ["one", "two"], {"a": [1.0, 0.0], "b": [2.0, 3.0]}, stacked=True), "bars")
    page.table("figures", ["name", "value"], [["<b>", 1234], ["a,b", 2.5]])
    return page


def test_text_from_outside_is_escaped(tmp_path: Path) -> None:
    page_with_a_plot().write(tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text()
    assert "A &lt;title&gt;" in html
    assert "<td>&lt;b&gt;</td><td>1,234</td>" in html
    assert 'aria-label="what &quot;it&quot; shows"' in html


def test_a_table_can_be_saved_as_csv(tmp_path: Path) -> None:
    page_with_a_plot().write(tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text()
    found = re.search(r'download="figures.csv" href="data:text/csv;base64,([^"]+)"', html)
    assert found
    assert base64.b64decode(found[1]).decode() == 'name,value\r\n<b>,1234\r\n"a,b",2.5\r\n'


def test_contents_link_to_all_sections_those_that_come_later_too(tmp_path: Path) -> None:
    page = Page("A page")
    page.contents()
    page.heading("First")
    page.heading("Then <one> more")
    page.write(tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text()
    links = re.findall(r'<a href="#(part\d)">([^<]*)</a>', html)
    assert links == [("part1", "First"), ("part2", "Then &lt;one&gt; more")]
    assert all(f'<h2 id="{target}">{text}</h2>' in html for target, text in links)
    assert html.index("<nav") < html.index("<h2")


def test_series_differ_without_colour() -> None:
    assert len({(one.dash, one.marker) for one in SERIES}) == len(SERIES)
    assert len({one.pattern for one in SERIES}) == len(SERIES)


def test_a_layout_can_be_given_to_the_script_of_a_page() -> None:
    layout = base_layout(title_text="plot")
    assert json.loads(json.dumps(layout)) == layout


def test_lines_across_a_plot_are_seen() -> None:
    figure = go.Figure(layout=base_layout())
    figure.add_hline(y=1, line_dash="dot")
    (line,) = figure.layout.shapes
    drawn = figure.layout.template.layout.shapedefaults
    assert (line.line.width, drawn.line.width, drawn.opacity) == (None, 1, 1)


def test_the_page_needs_no_network(tmp_path: Path) -> None:
    page_with_a_plot().write(tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text()
    assert not re.search(r'<(script|link|img)[^>]+(src|href)="http', html)


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH")
@pytest.mark.parametrize("width", [400, pytest.param(1400, marks=pytest.mark.slow)])
def test_a_browser_draws_it_without_errors(tmp_path: Path, width: int) -> None:
    page_with_a_plot().write(tmp_path / "page.html")
    done = subprocess.run(
        [
            str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0",
            f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},1000",
            "--virtual-time-budget=5000", "--dump-dom", (tmp_path / "page.html").as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert 'class="main-svg"' in done.stdout
    body = done.stdout.partition("<body>")[2]
    assert body.count('class="line s0"') == 2  # in the chart and in its legend
    assert body.count('class="bar"') == 4
    assert "a&lt;b" in done.stdout
    assert "Uncaught" not in done.stderr


def test_plotly_comes_with_its_figures_alone(tmp_path: Path) -> None:
    page_with_a_plot().write(tmp_path / "with.html")
    page = Page("Charts")
    page.plot(line_chart("line", "s", {"a": [(1.0, 2.0)]}), "a line")
    page.write(tmp_path / "without.html")
    assert (tmp_path / "with.html").stat().st_size > 1_500_000 > 100_000
    assert (tmp_path / "without.html").stat().st_size < 40_000


def test_small_values_are_not_shown_as_nothing(tmp_path: Path) -> None:
    page = Page("Values")
    page.table("values", ["name", "value"], [["a", 0.04], ["b", 0.0], ["c", 0.5], ["d", 12.34]])
    page.write(tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text()
    assert re.findall(r"<td>[a-d]</td><td>(.*?)</td>", html) == ["0.04", "0.0", "0.5", "12.3"]


def test_a_page_has_colours_for_the_dark(tmp_path: Path) -> None:
    page_with_a_plot().write(tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text()
    light, dark = html.partition("@media (prefers-color-scheme: dark)")[::2]
    assert "--s0:#0072b2" in light
    assert "--s0:#58b0f0" in dark
