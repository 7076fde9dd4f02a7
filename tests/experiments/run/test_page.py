"""The page of a run, drawn from what a run leaves."""

import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from emulator.details import Details
from emulator.result import BlockSources, Percentiles, RunResult
from emulator.timeline import Sample
from experiments.run.page import write_page
from experiments.run.page_picture import pictures
from tests.experiments.browser import look, needs_chromium

RESULT = RunResult(
    requests=2, completed=2, failed=0, corrupt=0, blocks=BlockSources(1, 2, 3, 4, 5),
    storage_egress_bytes=2000, switch_served_bytes=602, get_ms=Percentiles(1.0, 2.0),
    ttft_ms=Percentiles(100.0, 200.0), merged=7, admitted=1, evicted=0, p4runtime_writes=5, digests=3,
    wall_s=1.5, overloaded=False,
)  # fmt: skip
TOPOLOGY: dict[str, Any] = {
    "nodes": ["node1"],
    "addresses": {"node1": "10.0.0.1", "store1": "10.0.0.9"},
    "stores": ["store1"],
    "switches": ["s1"],
    "links": [
        {"link": "s1-node1", "ends": ["s1", "node1"], "rate_bit_s": 1e6},
        {"link": "s1-store1", "ends": ["s1", "store1"], "rate_bit_s": 1e6},
    ],
}
ABOUT = {
    "seed": 1, "revision": "abc", "engine": "embedded", "scale": 5000.0, "policy": "reuse",
    "pool_blocks": 8, "hosts": 1, "stores": 1, "topology": "star",
}  # fmt: skip


HOTTEST = [
    {
        "switch": "s1", "block": "0000a1b2c3d4" + "00" * 12, "depth": 3, "reported": 4, "hits": 50,
        "in_pool": True, "turns": [(1.5, "admitted"), (2.0, "evicted"), (2.5, "admitted")],
        "why": ["0000a1b2c3d4" + "00" * 12 + " is in the pool, because lru, which leads, holds it.",
                "A hit saves 3.0 ms: fetching it from home 167772169 takes 5.0 ms."],
    },
]  # fmt: skip


def sample(t_s: float, sent: int) -> Sample:
    return Sample(t_s, {"s1-node1": (10, sent), "s1-store1": (sent, 10)}, {}, 1, 0, 0, 0, 0, 0, {})


def request(ttft_s: float | None, node: str = "node1") -> dict[str, Any]:
    sources = {"gpu": 1, "dram": 0, "pool": 0, "remote": 0, "recomputed": 2}
    times: dict[str, Any]
    times = {"arrival_s": 0.5, "fetch_s": 0.1, "decode_s": 0.0, "queue_s": 0.0, "prefill_s": 0.2}
    times["waits_s"] = {"queued": 0.01, "probing": 0.02, "home 10.0.0.9": 0.07}
    end_s = None if ttft_s is None else 0.5 + ttft_s + 0.9
    blend = {"load_s": 0.03}
    served = {"ttft_s": ttft_s, "end_s": end_s, "tokens": 9, "sources": sources, "blend": blend}
    return {"node": node, **times, **served}


def details(result: RunResult) -> dict[str, Any]:
    timeline = [asdict(sample(0.5, 1000)), asdict(sample(1.0, 3000))]
    requests = [request(0.3), request(None)]
    fragments = {"node1": {"pool": 60, "home": 40, "merged": 10, "asked again": 2}}
    return {"result": asdict(result), **asdict(Details(timeline, requests, [1.0, 2.0], fragments, HOTTEST))}


def html_of(tmp_path: Path, **runs: dict[str, Any]) -> str:
    content = {"about": ABOUT, "topology": TOPOLOGY, "runs": runs}
    write_page(tmp_path / "report.html", content)
    return (tmp_path / "report.html").read_text()


def test_the_page_says_what_was_compared_what_came_out_and_whether_to_believe_it(tmp_path: Path) -> None:
    pooled = details(replace(RESULT, storage_egress_bytes=500, get_ms=Percentiles(0.5, 2.0)))
    html = html_of(tmp_path, no_pool=details(RESULT), merging=details(RESULT), pool=pooled)
    first = re.sub(r"<[^>]+>", " ", html[html.index("<h1>") : html.index("<h2")])
    for said in (
        "The same 2 requests were run 3 times", "1 inference nodes and 1 storage nodes",
        "no pool: it only forwards",
        "merging: it also merges", "pool: it also keeps a pool", "75% fewer bytes: 500 B instead of 2 kB",
        "within 0.5 ms instead of 1 ms", "The machine kept up in all runs", "single run each",
    ):  # fmt: skip
        assert said in first, said
    assert "sigma" not in first
    assert "Seed 1, revision abc, engine embedded, scale (sigma) 5000" in html


def test_a_run_that_did_not_keep_up_shows_its_figures_first(tmp_path: Path) -> None:
    runs = {"no_pool": details(RESULT), "pool": details(replace(RESULT, overloaded=True))}
    content = {"about": ABOUT, "topology": TOPOLOGY, "runs": runs}
    write_page(tmp_path / "report.html", content, ["pool: CPU: over <90%> busy"], "What helps: less.")
    html = (tmp_path / "report.html").read_text()
    in_order = ("bytes: 2 kB", "did not keep up (pool)", "<svg view", "over &lt;90%&gt;")
    places = [html.index(text) for text in in_order]
    assert places == sorted(places)
    assert "What helps: less." in html


def test_it_opens_with_the_network_without_and_with_the_pool(tmp_path: Path) -> None:
    """Links are as thick as the bytes that they carried, in one scale; the switch says what it did."""
    less = details(replace(RESULT, merged=1234))
    less["timeline"][-1]["link_bytes"] = {"s1-node1": (10, 1000), "s1-store1": (1000, 10)}
    html = html_of(tmp_path, no_pool=details(replace(RESULT, merged=0, switch_served_bytes=0,
                                                     blocks=BlockSources())), pool=less)  # fmt: skip
    before, after = html[html.index("<h1>") : html.index("<h2")].split("<svg viewBox")[1:]
    assert ("only forwards" in before, "only forwards" in after) == (True, False)
    for said in ("3 blocks from its pool", "602 B", "1,234 requests merged", "sent 1 kB"):
        assert said in after
    thick = [[float(px) for px in re.findall(r"stroke-width:([\d.]+)", part)] for part in (before, after)]
    assert max(thick[0]) == 19.0
    assert max(thick[1]) == pytest.approx(1 + 18 * 1010 / 3010, abs=0.1)


def test_the_picture_of_a_large_network_stays_on_a_screen(tmp_path: Path) -> None:
    nodes = [f"node{number}" for number in range(200)]
    topology = TOPOLOGY | {
        "nodes": nodes, "links": [{"link": f"s1-{n}", "ends": ["s1", n], "rate_bit_s": 1e6} for n in nodes],
    }  # fmt: skip
    drawn = pictures(topology, {"pool": details(RESULT)})
    height = re.search(r'viewBox="0 0 \d+ (\d+)"', drawn)
    assert height
    assert int(height[1]) < 600


def test_a_page_is_small(tmp_path: Path) -> None:
    many = details(RESULT)
    many["timeline"] = [asdict(sample(0.5 * at, 1000 * at)) for at in range(400)]
    many["requests"] = [request(0.3)] * 400
    html_of(tmp_path, no_pool=many, merging=many, pool=many)
    assert (tmp_path / "report.html").stat().st_size < 1_500_000


def test_a_play_in_which_nothing_was_fetched_has_a_page_too(tmp_path: Path) -> None:
    empty = details(RESULT) | {"timeline": [], "requests": [], "get_ms": []}
    assert "<table" in html_of(tmp_path, no_pool=empty)


def test_it_says_what_the_switch_did_for_whom_and_what_it_cost(tmp_path: Path) -> None:
    html = html_of(tmp_path, no_pool=details(RESULT), pool=details(RESULT))
    assert row(html, "bytes that left store1") == ["3 kB", "3 kB"]
    assert row(html, "node1") == ["300 / 300", "300 / 300", "60", "10", "30", "2", "2"]
    assert row(html, "blocks admitted to the pool") == ["1", "1"]


def test_where_nodes_lend_it_shows_what_left_them(tmp_path: Path) -> None:
    lending = {**TOPOLOGY, "stores": [], "links": TOPOLOGY["links"][:1]}
    run = details(RESULT)
    for at, sent in enumerate((1e6, 2e6)):
        run["timeline"][at]["link_bytes"] = {"s1-node1": (sent, 10)}
    content = {"about": ABOUT | {"stores": 0}, "topology": lending, "runs": {"no_pool": run, "pool": run}}
    write_page(tmp_path / "report.html", content)
    html = (tmp_path / "report.html").read_text()
    assert row(html, "bytes that left node1") == ["2 MB", "2 MB"]
    assert row(html, "lending node") == ["4", "4"]
    assert "left the lending nodes, Mbit/s" in html
    assert "% from a storage node alone" not in html


def row(html: str, label: str) -> list[str]:
    found = re.search(rf"<tr><td>{label}</td>(.*?)</tr>", html)
    assert found, label
    return re.findall(r"<td>(.*?)</td>", found[1])


def test_it_says_what_the_policy_did_with_the_hottest_blocks_and_why(tmp_path: Path) -> None:
    html = html_of(tmp_path, no_pool=details(RESULT), pool=details(RESULT))
    assert ">admitted 1.5, evicted 2.0, admitted 2.5</td>" in html
    assert ">in the pool, because lru, which leads, holds it</td>" in html
    assert "fetching it from store1 takes 5.0 ms" in html


def test_a_request_s_time_is_split_by_what_it_waited_for(tmp_path: Path) -> None:
    html = html_of(tmp_path, pool=details(RESULT))
    found = re.search(r'id="requests-data">(.*?)</script>', html)
    assert found
    data = json.loads(found[1])
    (told,) = data["requests"]["pool"]
    assert dict(zip(data["stages"], told["stages"], strict=True)) == {
        "queued in the node": 0.01, "probing": 0.02, "waiting for the pool": 0.0, "waiting, merged": 0.0,
        "waiting for a store": 0.07, "decoding blocks": 0.0, "loading chunks": 0.03,
        "waiting for the GPU": 0.0, "computing": 0.2,
        "other tokens": 0.9,
    }  # fmt: skip
    assert (told["homes"], told["between_ms"]) == ("store1", 100.0)


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("width_px", [1400, 400])
def test_a_browser_draws_all_plots_and_its_filters_work(tmp_path: Path, width_px: int) -> None:
    many = details(RESULT)
    many["requests"] = [request(0.3, "node1"), request(0.2, "node2"), request(0.1, "node2")] * 7
    html_of(tmp_path, no_pool=many, pool=many)
    found = look(tmp_path / "report.html", width_px, LOOK, tmp_path)
    assert found["places"] == found["drawn"]
    assert found["widest"] <= width_px
    assert found["page"] <= width_px
    assert found["bars"] == {"all": 10, "one": 7}
    assert found["first"] != found["first of node1"]
    assert (found["rows"], found["rows with node1"]) == (20, 14)
    assert found["csv"].startswith(",no pool,")


@pytest.mark.slow
@needs_chromium
def test_a_browser_opens_the_view_that_a_link_asks_for(tmp_path: Path) -> None:
    many = details(RESULT)
    many["requests"] = [request(0.3, "node1"), request(0.2, "node2"), request(0.1, "node2")] * 7
    html_of(tmp_path, no_pool=many, pool=many)
    asked = "?requests-node=node2&requests-by=fetch&requests-mode=none+such"
    chosen = 'return ["mode", "node", "by"].map(name => document.getElementById("requests-" + name).value);'
    assert look(tmp_path / "report.html", 1400, chosen, tmp_path, asked) == ["pool", "node2", "fetch"]
    shown = """
      const one = document.getElementById("requests-plot").weirChart;
      return one.series.reduce((all, part) => all + part.values[0], 0);"""
    ends = {
        end: look(tmp_path / "report.html", 1400, shown, tmp_path, f"?requests-until={end}")
        for end in ("whole", "first", "fetch")
    }
    assert ends == pytest.approx({"whole": 1.2, "first": 0.3, "fetch": 0.1}, abs=0.001)


def test_without_javascript_the_page_says_what_is_missing_and_has_its_tables(tmp_path: Path) -> None:
    html = html_of(tmp_path, no_pool=details(RESULT), pool=details(RESULT))
    said = re.search(r"<noscript>(.*?)</noscript>", html)
    assert said
    assert "plots, menus and filters are missing" in said[1]
    assert html.index("<noscript>") < html.index("<h1>")


LOOK = """
const all = s => [...document.querySelectorAll(s)];
const bars = () => document.getElementById("requests-plot").weirChart.labels;
const choose = (id, value) => {
  const menu = document.getElementById(id);
  menu.value = value;
  menu.dispatchEvent(new Event("change", {bubbles: true}));
};
const rows = () => all("#slowest tbody tr").filter(row => row.offsetParent !== null).length;
const found = {
  places: all(".plot").length,
  drawn: all(".plot").filter(plot => plot.querySelector("svg.drawn .line, svg.drawn .bar")).length,
  widest: Math.max(...all(".plot svg").map(plot => plot.getBoundingClientRect().right)),
  page: document.documentElement.scrollWidth,
  first: bars()[0], rows: rows(), bars: {all: bars().length},
};
choose("requests-node", "node1");
found.bars.one = bars().length;
found["first of node1"] = bars()[0];
choose("requests-node", "node2");
found["first of node1"] += bars()[0];
const filter = document.querySelector("input[data-table=slowest]");
filter.value = "node1";
filter.dispatchEvent(new Event("input"));
found["rows with node1"] = rows();
found.csv = atob(document.querySelector("a[download='stores.csv']").href.split(",")[1]);
return found;
"""
