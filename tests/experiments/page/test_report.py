"""The page that every experiment leaves says what it was made with and whether it counts."""

from pathlib import Path

from experiments.page import Section, bars, line_chart, lines, write_report
from experiments.page.charts import MOST_POINTS

ABOUT = {"seed": 7, "revision": "abc<def", "engine": "embedded", "sizes": (1, 2), "scale": 5000.0}
SECTION = Section(
    "Delays", "delays", ["mode", "p99, ms"], [["none", 1234.5], ["both", 2.25]],
    [lines("p99", "nodes", {"none": [(1, 2.0), (2, 3.0)]}), bars("p99", ["a"], {"none": [1.0]})],
    "Of two modes.",
)  # fmt: skip


def text_of(path: Path) -> str:
    return path.read_text().split("</script></head>")[1]


def test_it_says_with_what_it_was_made(tmp_path: Path) -> None:
    page = write_report(tmp_path, "make x", ABOUT, [SECTION], [])
    assert page == tmp_path / "report.html"
    text = text_of(page)
    assert "seed 7, revision abc&lt;def, engine embedded, sizes 1 2, scale 5000." in text
    assert "The machine kept up in all that is shown here." in text
    for shown in (">Delays</h2>", "Of two modes.", "1,234.5", 'download="delays.csv"', 'id="plot2"'):
        assert shown in text
    assert "http" not in text.replace("http://www.w3.org", "")


def test_figures_that_do_not_count_are_said_so_once_each(tmp_path: Path) -> None:
    text = text_of(write_report(tmp_path, "make x", ABOUT, [SECTION], ["CPU: busy", "CPU: busy", "late"]))
    assert "The machine did not keep up: CPU: busy; late." in text


def test_where_no_machine_has_to_keep_up_nothing_is_said(tmp_path: Path) -> None:
    assert "keep up" not in text_of(write_report(tmp_path, "make x", ABOUT, [SECTION]))


def test_points_that_do_not_count_are_hollow() -> None:
    points = {"none": [(1.0, 1.0), (2.0, 1.0)], "both": [(1.0, 2.0)]}
    chart, said = lines(
        "p99, ms", "nodes", points, log_x=True, hollow={"none": [True, False], "both": [False]}
    )
    assert said == "p99, ms over nodes"
    none, both = chart.data["series"]
    assert none["hollow"] == [True, False]
    assert "hollow" not in both
    assert (none["x"], none["y"], chart.data["ticks"]) == ([1.0, 2.0], [1.0, 1.0], [1.0, 2.0])


def test_bars_stand_in_the_order_of_their_labels() -> None:
    chart, said = bars("x", ["a", "b"], {name: [1.0, 2.0] for name in "pqr"}, stacked=True)
    assert (chart.kind, chart.data["labels"], chart.data["stacked"]) == ("bars", ["a", "b"], True)
    assert [one["name"] for one in chart.data["series"]] == ["p", "q", "r"]
    assert said == "x: bars for a, b"


def test_a_long_line_is_thinned_to_what_a_screen_shows() -> None:
    (one,) = line_chart("x", "s", {"a": [(at, 2.0 * at) for at in range(5000)]}).data["series"]
    assert len(one["x"]) == MOST_POINTS
    assert (one["x"][0], one["x"][-1], one["y"][-1]) == (0, 4999, 9998)


def test_a_page_of_charts_is_small(tmp_path: Path) -> None:
    page = write_report(tmp_path, "make x", ABOUT, [SECTION] * 20, [])
    assert page.stat().st_size < 100_000
