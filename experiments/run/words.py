"""Sentences that say what a run compared and found, for readers who know nothing of Weir."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.sources import answering
from scenario.modes import MODES
from topologies.fabric import Fabric

_WHAT = {
    "no_pool": "only forwards",
    "merging": "also merges: a request for a block that is on its way already waits for that one reply",
    "pool": "also keeps a pool of blocks, from which it answers itself",
    "phantom": "manages a pool in which no request finds anything, which shows what managing it costs",
}


def title_of(mode: str) -> str:
    """Return the name of a mode for people."""
    return MODES[mode].title if mode in MODES else mode


def in_bytes(count: float) -> str:
    """Return a number of bytes with three digits and its unit."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 99.95 else f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def sketch(fabric: Fabric) -> str:
    """Return the network as a line of text: nodes, switches, storage nodes."""
    sides = [_names(names) for names in (fabric.nodes, fabric.switches, fabric.stores) if names]
    return f"  {' ══════ '.join(sides)}\n"


def _names(names: Sequence[str]) -> str:
    if len(names) <= 3:
        return ", ".join(names)
    return f"{names[0]}, {names[1]} … {names[-1]}"


def question(about: Mapping[str, Any], runs: Mapping[str, Any]) -> str:
    """Return what was compared, in words."""
    requests = max((run["result"]["requests"] for run in runs.values()), default=0)
    stores = (
        f" and {about['stores']} storage nodes"
        if about["stores"]
        else ", which lend one another their memory,"
    )
    trace = str(about.get("trace", "")).rpartition("/")[2]
    named = f" of the trace {trace}" if trace else ""
    each = "; ".join(f"{title_of(name)}: it {_WHAT.get(name, name)}" for name in runs)
    times = "once" if len(runs) == 1 else f"{len(runs)} times"
    return (
        f"The same {requests:,} requests{named} were run {times} on an emulated network of {about['hosts']} "
        f"inference nodes{stores} with a switch between them. What the switch does:\n{each}."
    )


def answer(runs: Mapping[str, Any], lends: bool) -> str:
    """Return what the pool changed, in words: bytes sent, and median times of fetches and first tokens."""
    if not {"no_pool", "pool"} <= runs.keys():
        return "There is nothing to compare without a run that has no pool and one that has."
    without, pooled = runs["no_pool"]["result"], runs["pool"]["result"]
    sent, now_sent = without["storage_egress_bytes"], pooled["storage_egress_bytes"]
    fewer = 1 - now_sent / max(1, sent)
    amount = f"{fewer:.0%} fewer" if fewer >= 0 else f"{-fewer:.0%} more"
    return (
        f"With the pool, {answering(lends)}s sent {amount} bytes: {in_bytes(now_sent)} instead of "
        f"{in_bytes(sent)}. "
        f"{_times('Half of the fetched blocks arrived within', without['get_ms'], pooled['get_ms'])} "
        f"{_times('Half of the first tokens came within', without['ttft_ms'], pooled['ttft_ms'])}"
    )


def _times(what: str, without: Mapping[str, float], pooled: Mapping[str, float]) -> str:
    return f"{what} {_ms(pooled['p50'])} instead of {_ms(without['p50'])}."


def _ms(value: float) -> str:
    return f"{value:.3g} ms" if value < 1000 else f"{value / 1000:.3g} s"


def reliability(runs: Mapping[str, Any], plays: int, complaints: Sequence[str]) -> str:
    """Return whether the figures count, in one or two sentences."""
    if complaints:
        titles = (MODES[name].title if name in MODES else name for name in runs)
        late = [
            title for title, run in zip(titles, runs.values(), strict=True) if run["result"]["overloaded"]
        ]
        return (
            "Don't quote these figures: the machine did not keep up "
            f"({', '.join(late) or 'in other plays'}). An "
            "emulation runs in real time, and what a busy machine delays looks like a slow network."
        )
    once = " They are of a single run each; RUNS=5 adds intervals." if plays == 1 else ""
    return f"The machine kept up in all runs, so that the figures can be compared.{once}"
