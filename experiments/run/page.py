"""results/run/report.html: what the switch did for whom in each mode, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.page import Page
from experiments.run import page_plots as plots
from experiments.run.modes import MODES

SLOWEST = 10

Runs = Mapping[str, Mapping[str, Any]]


def write_page(path: Path, details: Mapping[str, Any], title: str, conclusion: str) -> None:
    """From the content of details.json (experiments.run.details) and the sentence under the table."""
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
        f"{about['scale']:g}, policy {about['policy']}, a pool of {about['pool_blocks']:,} blocks, "
        f"{about['hosts']} inference nodes and {about['stores']} storage nodes ({about['topology']})."
    )
    _where_from(page, runs)
    _network(page, topology, runs)
    _over_time(page, topology, runs)
    _latencies(page, runs)
    _slowest(page, runs)
    _cost(page, runs)
    page.write(path)


def _where_from(page: Page, runs: Runs) -> None:
    page.heading("Where blocks came from")
    page.plot(plots.sources(runs), "Blocks by source, one bar for each mode")
    rows = [[source, *(run["result"]["blocks"][source] for run in runs.values())] for source in plots.SOURCES]
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
    page.plots(
        [
            (plots.store_egress(topology, runs), "What left the storage nodes, Mbit/s over time"),
            (plots.occupancy(runs), "Blocks in the pool over time"),
            (plots.served(runs), "Packets that the switch answered, and absorbed by merging, over time"),
            (plots.completed(runs), "Requests completed over time"),
        ]
    )


def _latencies(page: Page, runs: Runs) -> None:
    page.heading("How long it took")
    page.text("Share of blocks, and of requests, that took at most so long; circles mark p50 and p99.")
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


def _slowest(page: Page, runs: Runs) -> None:
    page.heading(f"The {SLOWEST} slowest requests")
    page.text(
        "From arrival to the last token. Fetching, waiting for the GPU and computing make the first token."
    )
    page.plots(
        [
            (
                plots.waterfall(_slow(run["requests"]), plots.title_of(name)),
                f"Where the time of the slowest requests went, {name}",
            )
            for name, run in runs.items()
        ]
    )
    titles = [
        "mode",
        "node",
        "arrived, s",
        "fetched, s",
        "waited, s",
        "computed, s",
        "first token, s",
        *plots.SOURCES,
    ]
    rows = [
        [
            plots.title_of(name), record["node"], *(round(record[field], 3) for field in _TIMES),
            *(record["sources"][source] for source in plots.SOURCES),
        ]
        for name, run in runs.items()
        for record in _slow(run["requests"])
    ]  # fmt: skip
    page.table("slowest", titles, rows)


_TIMES = ("arrival_s", "fetch_s", "queue_s", "prefill_s", "ttft_s")


def _slow(requests: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    served = [record for record in requests if record["ttft_s"] is not None]
    return sorted(served, key=lambda record: -float(record["ttft_s"]))[:SLOWEST]


_COSTS = (
    ("bytes that left the storage nodes", "storage_egress_bytes"),
    ("bytes served by the switch", "switch_served_bytes"),
    ("requests merged in the switch", "merged"),
    ("blocks admitted", "admitted"),
    ("blocks evicted", "evicted"),
    ("P4Runtime writes", "p4runtime_writes"),
    ("digests", "digests"),
    ("controller's CPU, s", "controller_cpu_s"),
    ("share of the machine's CPU, %", "cpu_share"),
)


def _cost(page: Page, runs: Runs) -> None:
    page.heading("What it brought, and what it cost")
    rows = [
        [label, *((100 if field == "cpu_share" else 1) * run["result"][field] for run in runs.values())]
        for label, field in _COSTS
    ]
    page.table("costs", ["", *(MODES[name].title if name in MODES else name for name in runs)], rows)
