"""The page of a run, drawn from what a run leaves."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from experiments.run.details import Details
from experiments.run.page import write_page
from experiments.run.result import BlockSources, Percentiles, RunResult
from experiments.run.timeline import Sample, _interfaces

RESULT = RunResult(
    requests=2, completed=2, failed=0, corrupt=0, blocks=BlockSources(1, 2, 3, 4, 5),
    storage_egress_bytes=2000, switch_served_bytes=602, get_ms=Percentiles(1.0, 2.0),
    ttft_ms=Percentiles(100.0, 200.0), merged=7, admitted=1, evicted=0, p4runtime_writes=5, digests=3,
    wall_s=1.5, overloaded=False,
)  # fmt: skip
TOPOLOGY = {
    "nodes": ["node1"],
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


def sample(t_s: float, sent: int) -> Sample:
    return Sample(t_s, {"s1-node1": (10, sent), "s1-store1": (sent, 10)}, {}, 1, 0, 0, 0, 0, 0, [0] * 24)


def request(ttft_s: float | None) -> dict[str, Any]:
    sources = {"gpu": 1, "dram": 0, "pool": 0, "remote": 0, "recomputed": 2}
    times = {"arrival_s": 0.5, "fetch_s": 0.1, "queue_s": 0.0, "prefill_s": 0.2}
    return {"node": "node1", **times, "ttft_s": ttft_s, "end_s": 2.0 if ttft_s else None, "sources": sources}


def details(result: RunResult) -> dict[str, Any]:
    timeline = [asdict(sample(0.5, 1000)), asdict(sample(1.0, 3000))]
    requests = [request(0.3), request(None)]
    return {"result": asdict(result), **asdict(Details(timeline, requests, [1.0, 2.0]))}


def html_of(tmp_path: Path, **runs: dict[str, Any]) -> str:
    content = {"about": ABOUT, "topology": TOPOLOGY, "runs": runs}
    write_page(tmp_path / "report.html", content, "title", "what it shows")
    return (tmp_path / "report.html").read_text()


def test_the_page_says_what_was_played_and_whether_it_counts(tmp_path: Path) -> None:
    html = html_of(tmp_path, no_pool=details(RESULT), pool=details(RESULT))
    assert "Seed 1, revision abc, engine embedded, sigma 5000" in html
    assert "what it shows" in html
    assert "The machine kept up in all plays" in html
    overloaded = details(replace(RESULT, overloaded=True))
    assert "did not keep up: merges and pools" in html_of(tmp_path, no_pool=details(RESULT), pool=overloaded)


def test_a_play_in_which_nothing_was_fetched_has_a_page_too(tmp_path: Path) -> None:
    empty = details(RESULT) | {"timeline": [], "requests": [], "get_ms": []}
    assert "<table" in html_of(tmp_path, no_pool=empty)


def test_interfaces_are_read_as_the_kernel_writes_them() -> None:
    text = (
        "Inter-|   Receive                                                |  Transmit\n"
        " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop\n"
        "    lo:       0       0    0    0    0     0          0         0        0       0    0    0\n"
        "s1-eth1: 1234567  100    0    0    0     0          0         0   765432      90    0    0\n"
    )
    assert _interfaces(text) == [("lo", (0, 0)), ("s1-eth1", (1234567, 765432))]
