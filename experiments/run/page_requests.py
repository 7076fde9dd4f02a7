"""The part of the page that shows where the time of single requests went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.page import Menu, Page
from experiments.run.page_plots import Runs, answerer
from experiments.run.words import title_of
from hostlib.model.waits import HOME, MERGED, POOL, PROBING, QUEUED

SLOWEST = 10
MOST_REQUESTS = 400
"""Number of requests of a mode that a reader can choose from: those with the longest time to first token."""
STAGES = (
    "queued in the node", "probing", "waiting for the pool", "waiting, merged", "waiting for a store",
    "decoding blocks", "loading chunks", "waiting for the GPU", "computing", "other tokens",
)  # fmt: skip
_ORDERS = (("first", "time to first token"), ("fetch", "fetch"), ("whole", "last token"))
_ENDS = (("whole", "last token"), ("first", "first token"), ("fetch", "end of the fetch"))
_WAITS = {QUEUED: 0, PROBING: 1, POOL: 2, MERGED: 3}
_HOME_STAGE = 4

_DRAW = """
const found = data.requests[chosen.mode].filter(r => chosen.node === "all" || r.node === chosen.node);
found.sort((a, b) => b[chosen.by] - a[chosen.by]);
const shown = found.slice(0, data.most);
// Up to the chosen end: of later stages nothing is drawn.
const parts = shown.map(r => {
  let left = r[chosen.until];
  return r.stages.map(part => {
    const drawn = Math.max(0, Math.min(part, left));
    left -= drawn;
    return drawn;
  });
});
const used = data.stages.map((_, i) => i).filter(i => parts.some(part => part[i] > 0));
weirDraw(plot, {
  kind: "bars", stacked: true, title: shown.length ? "seconds since arrival" : "no such requests",
  labels: shown.map((r, i) => (i + 1) + ". " + r.node + " at " + r.at.toFixed(1) + " s"),
  series: used.map(i => ({name: data.stages[i], values: parts.map(p => p[i]), style: i % 7})),
  tooltips: shown.map((r, n) => used.map(i => r.labels[i] + ": " + parts[n][i].toFixed(3) + " s")),
});
"""


def slowest_requests(page: Page, topology: Mapping[str, Any], runs: Runs) -> None:
    """Add the section: a waterfall of the requests that the reader chooses, and a table
    of the slowest ones."""
    homes = {address: name for name, address in topology.get("addresses", {}).items()}
    page.heading(f"Where the time of the {SLOWEST} slowest requests went")
    home = answerer(topology)
    page.text(
        "From a request's arrival to its last token. Up to the first token: what its fetch waited for, as "
        "the block that came last tells it (queued in the node's own windows; probing, whether and how long "
        "the block is; then for the rest of it: from the pool, merged into another node's request, or from a "
        f"{home}), then the GPU. The table below says which {home} it was; so does hovering."
    )
    requests = {name: _chosen(run["requests"], homes) for name, run in runs.items()}
    nodes = sorted({request["node"] for part in requests.values() for request in part}, key=_in_order)
    modes = [(name, title_of(name)) for name in list(runs)[::-1]]
    page.menus(
        "requests",
        (
            Menu("mode", "Run", modes),
            Menu("node", "Node", [("all", "all"), *((node, node) for node in nodes)]),
            Menu("by", "Slowest by", _ORDERS),
            Menu("until", "Drawn up to the", _ENDS),
        ),
        _DRAW,
        {
            "most": SLOWEST,
            "stages": STAGES,
            "requests": requests,
        },
    )
    titles = [
        "run", "node", "arrived, s", "first token, ms", *(f"{stage}, ms" for stage in STAGES[:-1]),
        "stores waited for", "tokens", "ms between tokens",
    ]  # fmt: skip
    rows = [
        [
            title_of(name), request["node"], round(request["at"], 1), _ms(request["first"]),
            *map(_ms, request["stages"][:-1]), request["homes"], request["tokens"],
            request["between_ms"],
        ]
        for name, part in requests.items()
        for request in part[:SLOWEST]
    ]  # fmt: skip
    page.table("slowest", titles, rows)


def _ms(seconds: float) -> int:
    return round(1000 * seconds)


def _in_order(name: str) -> tuple[int, str]:
    return len(name), name


def _chosen(requests: Sequence[Mapping[str, Any]], homes: Mapping[str, str]) -> list[dict[str, Any]]:
    served = [record for record in requests if record["ttft_s"] is not None]
    slow = sorted(served, key=lambda record: -float(record["ttft_s"]))[:MOST_REQUESTS]
    return [_shown_request(record, homes) for record in slow]


def load_s(record: Mapping[str, Any]) -> float:
    """Return the seconds for which a blended request's chunks were loaded; 0 if it was not blended."""
    blend = record.get("blend")
    return float(blend["load_s"]) if blend else 0.0


def _shown_request(record: Mapping[str, Any], homes: Mapping[str, str]) -> dict[str, Any]:
    """Return one request for the page: its seconds by stage, and a label of each stage."""
    stages = [0.0] * len(STAGES)
    labels = list(STAGES)
    waited = []
    for what, waited_s in record["waits_s"].items():
        kind, _, address = what.partition(" ")
        if kind == HOME:
            home = homes.get(address, address)
            labels[_HOME_STAGE] = f"waiting for {home}"
            waited.append(home)
        stages[_WAITS.get(kind, _HOME_STAGE)] += waited_s
    tokens_s = max(0.0, (record["end_s"] or 0.0) - record["arrival_s"] - record["ttft_s"])
    stages[5:] = [record["decode_s"], load_s(record), record["queue_s"], record["prefill_s"], tokens_s]
    tokens = record["tokens"]
    return {
        "node": record["node"],
        "at": record["arrival_s"],
        "first": record["ttft_s"],
        "fetch": record["fetch_s"],
        "whole": record["ttft_s"] + tokens_s,
        "stages": [round(seconds, 4) for seconds in stages],
        "labels": labels,
        "homes": ", ".join(waited),
        "tokens": tokens,
        "between_ms": round(1000 * tokens_s / tokens, 1) if tokens else 0.0,
    }
