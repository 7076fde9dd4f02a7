"""The first part of the page: what the switch did, for whom, and what it cost, in three tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from emulator.result import percentiles
from experiments.page import Page
from experiments.run.page_plots import Run, Runs, answerer, answerers
from experiments.run.words import in_bytes, title_of

_COSTS = (
    ("blocks admitted to the pool", "admitted", 1),
    ("blocks evicted from it", "evicted", 1),
    ("P4Runtime writes", "p4runtime_writes", 1),
    ("reports of the switch (digests)", "digests", 1),
    ("controller's CPU, s", "controller_cpu_s", 1),
    ("this machine's CPU in use, %", "cpu_share", 100),
)
_EVICTION_COSTS = (
    ("MB to save evicted blocks in storage nodes", "reclaim_bytes", 1e-6),
    ("evicted blocks that are nowhere now", "dropped", 1),
)


def switch_results(page: Page, topology: Mapping[str, Any], runs: Runs) -> None:
    """Add the section, from the results of each mode; the first mode is the baseline."""
    page.heading("What the switch did, for whom, and what it cost")
    _for_stores(page, topology, runs)
    _for_nodes(page, topology, runs)
    _cost(page, runs)


def _titles(runs: Runs) -> list[str]:
    return [title_of(name) for name in runs]


def _for_stores(page: Page, topology: Mapping[str, Any], runs: Runs) -> None:
    page.text(
        f"For the {answerer(topology)}s: what it answered itself, or merged into a request in flight, they "
        "did not have to send."
    )
    rows: list[list[object]] = [
        [f"bytes that left {store}", *(in_bytes(_sent(run, topology, store)) for run in runs.values())]
        for store in answerers(topology)
    ]
    rows.append(
        [
            "bytes that the switch served",
            *(in_bytes(run["result"]["switch_served_bytes"]) for run in runs.values()),
        ]
    )
    rows.append(["fragments asked for that it merged", *(run["result"]["merged"] for run in runs.values())])
    page.table("stores", ["", *_titles(runs)], rows)


def _sent(run: Run, topology: Mapping[str, Any], store: str) -> float:
    samples = run["timeline"]
    if not samples:
        return 0.0
    links = [link["link"] for link in topology["links"] if link["ends"][1] == store]
    return float(sum(samples[-1]["link_bytes"].get(link, (0, 0))[0] for link in links))


def _for_nodes(page: Page, topology: Mapping[str, Any], runs: Runs) -> None:
    names = list(runs)
    base, last = names[0], names[-1]
    page.text(
        f"For the inference nodes: the time to first token of each (p50 and p99), and where it got its "
        f"fragments in the run {title_of(last)}."
    )
    titles = [
        "node", *(f"p50 / p99, ms: {title_of(name)}" for name in dict.fromkeys((base, last))),
        "% from the pool", "% merged", f"% from a {answerer(topology)} alone", "asked again", "requests",
    ]  # fmt: skip
    nodes = sorted({record["node"] for record in runs[last]["requests"]}, key=lambda name: (len(name), name))
    rows = [
        [
            node,
            *(_first_token(runs[name]["requests"], node) for name in dict.fromkeys((base, last))),
            *_origins(runs[last]["fragments"].get(node, {})),
            sum(record["node"] == node for record in runs[last]["requests"]),
        ]
        for node in nodes
    ]
    page.table("nodes", titles, rows)


def _origins(fragments: Mapping[str, int]) -> list[object]:
    pool, home, merged = (fragments.get(name, 0) for name in ("pool", "home", "merged"))
    whole = max(1, pool + home)
    shares = (pool, min(merged, home), home - min(merged, home))
    return [*(f"{100 * part / whole:.0f}" for part in shares), fragments.get("asked again", 0)]


def _first_token(requests: Sequence[Mapping[str, Any]], node: str) -> str:
    mine = [1000 * r["ttft_s"] for r in requests if r["node"] == node and r["ttft_s"] is not None]
    both = percentiles(mine)
    return f"{both.p50:,.0f} / {both.p99:,.0f}"


def _cost(page: Page, runs: Runs) -> None:
    page.text("What it cost: the controller's work, and what happens to blocks that leave the pool.")
    results = [run["result"] for run in runs.values()]
    rows = [[label, *(factor * result[field] for result in results)] for label, field, factor in _COSTS]
    rows += [
        [label, *(factor * result["evictions"][field] for result in results)]
        for label, field, factor in _EVICTION_COSTS
    ]
    page.table("costs", ["", *_titles(runs)], rows)
