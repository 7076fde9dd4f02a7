"""The table at the end of a run, and the sentence that says what it shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rich.console import Console
from rich.table import Table

from experiments.run.machine import ADVICE
from experiments.run.result import Evictions, RunResult

_Row = tuple[str, Callable[[RunResult], str]]


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def _share(part: int, result: RunResult) -> str:
    total = result.blocks.total
    return f"{part:,} ({part / total:.1%})" if total else "0"


def _lost(evictions: Evictions) -> str:
    dropped = evictions.dropped + evictions.reclaims_failed
    return f"{evictions.stubs:,} / {evictions.not_whole:,} / {dropped:,}"


_SECTIONS: dict[str, tuple[_Row, ...]] = {
    "Requests": (
        ("completed / failed", lambda r: f"{r.completed:,} / {r.failed:,}"),
        ("blocks that came back wrong", lambda r: f"{r.corrupt:,}"),
    ),
    "Where blocks came from": (
        ("GPU memory", lambda r: _share(r.blocks.gpu, r)),
        ("local DRAM", lambda r: _share(r.blocks.dram, r)),
        ("pool in the switch", lambda r: _share(r.blocks.pool, r)),
        ("storage node", lambda r: _share(r.blocks.remote, r)),
        ("recomputed", lambda r: _share(r.blocks.recomputed, r)),
        (
            "waited for SSD; read ahead / of use",
            lambda r: f"{r.ssd_reads:,}; {r.read_ahead:,} / {r.read_ahead_hits:,}",
        ),
        ("refused by the gate, in requests", lambda r: f"{r.gate_refused:,} in {r.gate_limited:,}"),
    ),
    "Network": (
        ("bytes that left the storage nodes", lambda r: _bytes(r.storage_egress_bytes)),
        ("bytes served by the switch", lambda r: _bytes(r.switch_served_bytes)),
        ("requests merged in the switch", lambda r: f"{r.merged:,}"),
    ),
    "Time": (
        ("GET a block, p50 / p99", lambda r: f"{r.get_ms.p50:.1f} / {r.get_ms.p99:.1f} ms"),
        ("time to first token, p50 / p99", lambda r: f"{r.ttft_ms.p50:.0f} / {r.ttft_ms.p99:.0f} ms"),
    ),
    "What the pool cost": (
        ("blocks admitted / evicted", lambda r: f"{r.admitted:,} / {r.evicted:,}"),
        (
            "  their home held / was sent",
            lambda r: f"{r.evictions.held_elsewhere:,} / {r.evictions.reclaimed:,}",
        ),
        ("  not worth it / not whole / dropped", lambda r: _lost(r.evictions)),
        ("bytes for that", lambda r: _bytes(r.evictions.reclaim_bytes)),
        ("P4Runtime writes, digests", lambda r: f"{r.p4runtime_writes:,}, {r.digests:,}"),
        ("controller's CPU", lambda r: f"{r.controller_cpu_s:.1f} s"),
    ),
    "The machine": (
        ("CPU in use", lambda r: f"{r.cpu_share:.0%}"),
        ("kept up", lambda r: "NO" if r.overloaded else "yes"),
    ),
}

_TITLES = {"no_pool": "without pool", "pool": "with pool"}


def print_report(console: Console, title: str, runs: Mapping[str, RunResult]) -> None:
    """The table, then in words: what it shows, or why it does not count."""
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for name in runs:
        table.add_column(_TITLES.get(name, name), justify="right")
    for section, rows in _SECTIONS.items():
        table.add_row(f"[bold]{section}", *("" for _ in runs))
        for label, show in rows:
            table.add_row(f"  {label}", *(show(result) for result in runs.values()))
        table.add_section()
    console.print(table)
    console.print(_conclusion(runs))


def _conclusion(runs: Mapping[str, RunResult]) -> str:
    overloaded = {name: run for name, run in runs.items() if run.overloaded}
    if overloaded:
        reasons = [
            f"  {_TITLES.get(n, n)}: {text}" for n, run in overloaded.items() for text in run.complaints
        ]
        return "\n".join(
            ["[bold red]The machine did not keep up: these figures don't count.[/]", *reasons, ADVICE]
        )
    without, with_pool = runs["no_pool"], runs["pool"]
    saved = 1 - with_pool.storage_egress_bytes / max(1, without.storage_egress_bytes)
    fetched = with_pool.blocks.pool + with_pool.blocks.remote
    return (
        f"With the pool {_amount(saved)} bytes left the storage nodes: the switch served "
        f"{with_pool.blocks.pool / max(1, fetched):.0%} of the blocks that were fetched, and merged "
        f"{with_pool.merged:,} requests into others in flight. Time to first token p99: "
        f"{without.ttft_ms.p99:.0f} ms without, {with_pool.ttft_ms.p99:.0f} ms with."
    )


def _amount(saved: float) -> str:
    return f"[bold]{saved:.0%} fewer[/]" if saved >= 0 else f"[bold]{-saved:.0%} more[/]"
