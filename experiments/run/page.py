"""results/run/report.html: what the switch did in each mode, for whom, and at what cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.page import Page
from experiments.run import page_plots as plots
from experiments.run.page_answer import switch_results
from experiments.run.page_links import links_over_time
from experiments.run.page_picture import carried, pictures
from experiments.run.page_policy import hottest_blocks
from experiments.run.page_requests import slowest_requests
from experiments.run.words import answer, in_bytes, question, reliability, title_of

Runs = Mapping[str, Mapping[str, Any]]


def write_page(
    path: Path,
    details: Mapping[str, Any],
    complaints: Sequence[str] = (),
    advice: str = "",
    plays: int = 1,
) -> None:
    """Write the page of a run, from the content of details.json (emulator.details).

    `complaints` say why the figures don't count and `advice` what helps; `plays` is how often
    each mode was run.
    """
    about, topology, runs = details["about"], details["topology"], details["runs"]
    page = Page("Does a switch that keeps KV blocks help?")
    page.text(question(about, runs), "lead")
    page.text(answer(runs, lends=not topology["stores"]), "lead")
    page.text(reliability(runs, plays, complaints), "warning" if complaints else "")
    page.svg(pictures(topology, runs))
    if complaints:
        page.details("Why the figures don't count, and what helps", [*complaints, advice])
    switch_results(page, topology, runs)
    _where_from(page, topology, runs)
    _network(page, topology, runs)
    _over_time(page, topology, runs)
    _latencies(page, runs)
    slowest_requests(page, topology, runs)
    hottest_blocks(page, topology, str(about["policy"]), runs)
    page.heading("How it was made")
    page.text(
        f"Seed {about['seed']}, revision {about['revision']}, engine {about['engine']}, scale (sigma) "
        f"{about['scale']:g}: bytes and link rates are the real ones divided by it, and times are not. "
        f"Policy {about['policy']}, a pool of {about['pool_blocks']:,} blocks, {about['hosts']} inference "
        "nodes "
        f"and {about['stores']} storage nodes ({about['topology']})."
    )
    page.write(path)


def _where_from(page: Page, topology: Mapping[str, Any], runs: Runs) -> None:
    page.heading("Where blocks came from")
    page.plot(plots.by_source(topology, runs), "Blocks by source, one bar for each mode")
    rows = [
        [title, *(run["result"]["blocks"][source] for run in runs.values())]
        for source, title in plots.sources_of(topology).items()
    ]
    page.table("blocks", ["source", *map(title_of, runs)], rows)


def _network(page: Page, topology: Mapping[str, Any], runs: Runs) -> None:
    page.heading("What the links carried")
    rows = [
        [link["link"], *(in_bytes(sum(carried(run).get(link["link"], (0, 0)))) for run in runs.values())]
        for link in topology["links"]
    ]
    page.table("links", ["link, both ways", *map(title_of, runs)], rows)
    links_over_time(page, topology, runs)


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
    page.table("latencies", ["", *map(title_of, runs)], rows)


def _ttft_ms(requests: Sequence[Mapping[str, Any]]) -> list[float]:
    return sorted(1000 * record["ttft_s"] for record in requests if record["ttft_s"] is not None)
