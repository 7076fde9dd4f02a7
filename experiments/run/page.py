"""results/run/report.html: what the switch did for whom in each mode, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.page import Page
from experiments.run import page_plots as plots
from experiments.run.page_answer import answer
from experiments.run.page_links import links_over_time
from experiments.run.page_policy import hottest_blocks
from experiments.run.page_requests import slowest_requests

Runs = Mapping[str, Mapping[str, Any]]


def write_page(path: Path, details: Mapping[str, Any], title: str, conclusion: str) -> None:
    """From the content of details.json (emulator.details) and the sentence under the table."""
    about, topology, runs = details["about"], details["topology"], details["runs"]
    page = Page(title)
    page.text(conclusion, "lead")
    overloaded = [plots.title_of(name) for name, run in runs.items() if run["result"]["overloaded"]]
    if overloaded:
        page.text(f"The machine did not keep up: {', '.join(overloaded)}.", "warning")
    else:
        page.text("The machine kept up in all plays shown here.")
    page.text(
        f"Seed {about['seed']}, revision {about['revision']}, engine {about['engine']}, sigma "
        f"{about['scale']:g} (bytes and link rates here are the real ones divided by it; times are not), "
        f"policy {about['policy']}, a pool of {about['pool_blocks']:,} blocks, "
        f"{about['hosts']} inference nodes and {about['stores']} storage nodes ({about['topology']})."
    )
    answer(page, topology, runs)
    _where_from(page, topology, runs)
    _network(page, topology, runs)
    _over_time(page, topology, runs)
    _latencies(page, runs)
    slowest_requests(page, topology, runs)
    hottest_blocks(page, topology, str(about["policy"]), runs)
    page.write(path)


def _where_from(page: Page, topology: Mapping[str, Any], runs: Runs) -> None:
    page.heading("Where blocks came from")
    page.plot(plots.by_source(topology, runs), "Blocks by source, one bar for each mode")
    rows = [
        [title, *(run["result"]["blocks"][source] for run in runs.values())]
        for source, title in plots.sources_of(topology).items()
    ]
    page.table("blocks", ["source", *map(plots.title_of, runs)], rows)


def _network(page: Page, topology: Mapping[str, Any], runs: Runs) -> None:
    page.heading("What the links carried")
    page.text(
        "Lines are links, as wide as what they carried in both directions; hover for bytes each way. "
        "The same scale in all pictures."
    )
    most = max((sum(both) for run in runs.values() for both in _carried(run).values()), default=1)
    page.plots(
        [
            (
                plots.topology(topology, _carried(run), plots.title_of(name), most),
                f"Topology with bytes a link, {name}",
            )
            for name, run in runs.items()
        ]
    )
    rows = [
        [
            link["link"],
            *(plots.megabytes(sum(_carried(run).get(link["link"], (0, 0)))) for run in runs.values()),
        ]
        for link in topology["links"]
    ]
    page.table("links", ["link, MB both ways", *map(plots.title_of, runs)], rows)


def _carried(run: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """By link, bytes to the switch and from it, of the whole play."""
    samples = run["timeline"]
    return {link: (to, of) for link, (to, of) in samples[-1]["link_bytes"].items()} if samples else {}


def _over_time(page: Page, topology: Mapping[str, Any], runs: Runs) -> None:
    page.heading("Over time")
    last = list(runs)[-1]
    page.plots(
        [
            (
                plots.store_egress(topology, runs),
                f"What left the {plots.answerer(topology)}s, Mbit/s over time",
            ),
            (plots.occupancy(runs), "Blocks in the pool over time"),
            (plots.served(runs), "Fragments that the switch served, over time"),
            (plots.merged(runs), "Fragments asked for that the switch merged, over time"),
            (plots.tiers(topology, runs[last], last), f"Blocks by source over time, {last}"),
            (plots.completed(runs), "Requests completed over time"),
        ]
    )
    links_over_time(page, topology, runs)


def _latencies(page: Page, runs: Runs) -> None:
    page.heading("How long it took")
    page.text("Share of blocks, and of requests, that took at most so long; the marks are p50 and p99.")
    ttft = {name: _ttft_ms(run["requests"]) for name, run in runs.items()}
    page.plots(
        [
            (
                plots.distribution({n: run["get_ms"] for n, run in runs.items()}, "GET a block, ms"),
                "Distribution of GET times",
            ),
            (plots.distribution(ttft, "time to first token, ms"), "Distribution of times to first token"),
        ]
    )
    rows = [
        [label, *(run["result"][field][share] for run in runs.values())]
        for label, field, share in (
            ("GET a block, p50, ms", "get_ms", "p50"),
            ("GET a block, p99, ms", "get_ms", "p99"),
            ("time to first token, p50, ms", "ttft_ms", "p50"),
            ("time to first token, p99, ms", "ttft_ms", "p99"),
        )
    ]
    page.table("latencies", ["", *map(plots.title_of, runs)], rows)


def _ttft_ms(requests: Sequence[Mapping[str, Any]]) -> list[float]:
    return sorted(1000 * record["ttft_s"] for record in requests if record["ttft_s"] is not None)
