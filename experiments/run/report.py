"""The table at the end of a run, and the sentence that says what it shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rich.console import Console
from rich.table import Table

from emulator import disturbance
from emulator.repeats import FIGURES, Repeats
from emulator.result import Evictions, RunResult
from experiments.sources import answering
from scenario.modes import MODES

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


def _levels(result: RunResult) -> str:
    """Return the shares of streamed blocks by level, and of text."""
    total = max(1, sum(result.levels.values()))
    return ", ".join(f"{level} {count / total:.0%}" for level, count in result.levels.items()) or "none"


def _within_slo(result: RunResult) -> str:
    if result.target is None:
        return ""
    return f"{result.target.met:,} ({result.target.met / max(1, result.requests):.0%})"


def _blended(result: RunResult, figures: str) -> str:
    return "0" if result.blended is None else figures.format(result.blended)


def _indexed(result: RunResult) -> str:
    return "" if result.index is None else f"{result.index.asked:,} / {result.index.located:,}"


_SECTIONS: dict[str, tuple[_Row, ...]] = {
    "Requests": (
        ("completed / failed", lambda r: f"{r.completed:,} / {r.failed:,}"),
        ("refused by the conductor", lambda r: f"{r.rejected:,}"),
        ("compared with model's KV", lambda r: f"{r.compared:,}"),
        ("blocks that came wrong", lambda r: f"{r.corrupt:,}"),
    ),
    "Where blocks came from": (
        ("GPU memory", lambda r: _share(r.blocks.gpu, r)),
        ("local DRAM", lambda r: _share(r.blocks.dram, r)),
        ("pool in the switch", lambda r: _share(r.blocks.pool, r)),
        ("storage node", lambda r: _share(r.blocks.remote, r)),
        ("recomputed", lambda r: _share(r.blocks.recomputed, r)),
        ("chunks blended; by itself", lambda r: _blended(r, "{0.chunks:,}; {0.alone:,}")),
        ("their tokens recomputed", lambda r: _blended(r, "{0.tokens:,}")),
        ("operations saved by that", lambda r: _blended(r, "{0.ops_saved:.1%}")),
        (
            "SSD waits; read ahead/used",
            lambda r: f"{r.ssd_reads:,}; {r.read_ahead:,} / {r.read_ahead_hits:,}",
        ),
        ("gate refused, in requests", lambda r: f"{r.gate_refused:,} in {r.gate_limited:,}"),
        ("streamed at level", _levels),
        ("mean level", lambda r: "" if r.mean_level is None else f"{r.mean_level:.2f}"),
    ),
    "Network": (
        ("bytes from storage nodes", lambda r: _bytes(r.storage_egress_bytes)),
        ("bytes served by the switch", lambda r: _bytes(r.switch_served_bytes)),
        ("requests merged in it", lambda r: f"{r.merged:,}"),
        ("index: blocks asked/found", _indexed),
    ),
    "Time": (
        ("GET a block, p50/p99, ms", lambda r: f"{r.get_ms.p50:.1f} / {r.get_ms.p99:.1f}"),
        ("decode, p50/p99, ms", lambda r: f"{r.decode_ms.p50:.1f} / {r.decode_ms.p99:.1f}"),
        ("first token, p50/p99, ms", lambda r: f"{r.ttft_ms.p50:.0f} / {r.ttft_ms.p99:.0f}"),
        ("within TTFT_SLO", _within_slo),
    ),
    "What the pool cost": (
        ("blocks admitted / evicted", lambda r: f"{r.admitted:,} / {r.evicted:,}"),
        ("blocks in it at the end", lambda r: f"{r.pool_held:,}"),
        (
            "  held at / sent to home",
            lambda r: f"{r.evictions.held_elsewhere:,} / {r.evictions.reclaimed:,}",
        ),
        ("  worthless/part/dropped", lambda r: _lost(r.evictions)),
        ("bytes for that", lambda r: _bytes(r.evictions.reclaim_bytes)),
        ("P4Runtime writes, digests", lambda r: f"{r.p4runtime_writes:,}, {r.digests:,}"),
        ("controller's CPU", lambda r: f"{r.controller_cpu_s:.1f} s"),
    ),
    "The machine": (
        ("CPU; latest timers, p99", lambda r: f"{r.cpu_share:.0%}; {r.timer_late_p99_ms:.1f} ms"),
        ("switch without a pause", lambda r: f"{r.switch_saturated:.1%}"),
        ("kept up", lambda r: "NO" if r.overloaded else "yes"),
    ),
}


_WHERE: dict[str, Callable[[RunResult], int]] = {
    "refused by the conductor": lambda r: r.rejected,
    "chunks blended; by itself": lambda r: r.blended is not None,
    "their tokens recomputed": lambda r: r.blended is not None,
    "operations saved by that": lambda r: r.blended is not None,
    "compared with model's KV": lambda r: r.compared,
    "SSD waits; read ahead/used": lambda r: r.ssd_reads + r.read_ahead,
    "gate refused, in requests": lambda r: r.gate_limited,
    "  held at / sent to home": lambda r: r.evicted,
    "  worthless/part/dropped": lambda r: r.evicted,
    "decode, p50/p99, ms": lambda r: r.decoded,
    "bytes for that": lambda r: r.evicted,
    "streamed at level": lambda r: sum(r.levels.values()),
    "mean level": lambda r: sum(r.levels.values()),
    "within TTFT_SLO": lambda r: r.target is not None,
    "index: blocks asked/found": lambda r: r.index is not None,
}
"""Functions that count for a row; if it counts none in any of the plays, the row is left out."""


def print_report(console: Console, title: str, repeats: Repeats, advice: str) -> None:
    """Print the table, what it shows in words, and whether it counts; `advice` says what helps if not."""
    runs = repeats.typical()
    of = "" if repeats.count == 1 else f"; of {repeats.count} plays the one with the median GET"
    table = Table(title=title + of, title_justify="left")
    table.add_column("")
    shown = {section: _shown(rows, runs) for section, rows in _SECTIONS.items()}
    for number, name in enumerate(runs):
        # Titles may take two lines, so that three modes fit a terminal of 80 columns without broken rows.
        figures = [cells[number] for rows in shown.values() for _, cells in rows]
        width = max(map(len, [*figures, *_title(name).split()]))
        table.add_column(_title(name), justify="right", max_width=width)
    for section, rows in shown.items():
        table.add_row(f"[bold]{section}", *("" for _ in runs))
        for label, cells in rows:
            table.add_row(f"  {_named(label, runs)}", *cells)
        table.add_section()
    console.print(table)
    if repeats.count > 1:
        console.print(_interval_table(repeats))
    for name, difference in disturbance.differences(repeats.runs).items():
        console.print(disturbance.in_words(name, difference))
    if any(result.tenants for result in runs.values()):
        console.print(_tenant_table(runs))
    console.print(conclusion(repeats, advice))


def _named(text: str, runs: Mapping[str, RunResult]) -> str:
    """Return `text` with nodes in place of storage nodes, where nodes lend one another their memory."""
    return text.replace(
        answering(False), answering(any(result.index is not None for result in runs.values()))
    )


def _shown(rows: Sequence[_Row], runs: Mapping[str, RunResult]) -> list[tuple[str, list[str]]]:
    return [
        (label, [show(result) for result in runs.values()])
        for label, show in rows
        if label not in _WHERE or any(map(_WHERE[label], runs.values()))
    ]


def _title(name: str) -> str:
    return MODES[name].title if name in MODES else name


def _interval_table(repeats: Repeats) -> Table:
    """Return means with 95 % intervals, and the differences of each mode from the first, play by play."""
    base, *others = repeats.runs
    table = Table(
        title=f"Means of {repeats.count} plays, 95% intervals (Student's t); differences in pairs",
        title_justify="left",
    )
    table.add_column("")
    for name in repeats.runs:
        table.add_column(_title(name), justify="right")
    for name in others:
        table.add_column(f"{_title(name)}, less {_title(base)}", justify="right")
    intervals = repeats.intervals()
    differences = [repeats.differences(name, base) for name in others]
    for figure in FIGURES:
        cells = [intervals[name][figure] for name in repeats.runs] + [of[figure] for of in differences]
        table.add_row(figure, *(f"{cell:,.1f}" for cell in cells))
    return table


def _tenant_table(runs: Mapping[str, RunResult]) -> Table:
    columns = (
        "tenant", "nodes", "requests", "from the pool", "from storage nodes", "TTFT p50 / p99, ms",
        "its blocks in the pool",
    )  # fmt: skip
    table = Table("", *columns, title="By tenant", title_justify="left")
    for name, result in runs.items():
        for one in result.tenants:
            fetched = max(1, one.blocks.total)
            table.add_row(
                _title(name),
                *map(str, (one.tenant, one.nodes, one.completed)),
                *(f"{count:,} ({count / fetched:.1%})" for count in (one.blocks.pool, one.blocks.remote)),
                f"{one.ttft_ms.p50:.0f} / {one.ttft_ms.p99:.0f}",
                f"{one.pool_blocks:,}",
            )
    return table


def conclusion(repeats: Repeats, advice: str) -> str:
    """Return what the table shows, and why it does not count if so, in rich's markup."""
    text = _compared(repeats.typical())
    if not repeats.overloaded:
        return text
    reasons = [f"  {complaint}" for complaint in repeats.complaints()]
    counts = "[bold red]The machine did not keep up: these figures don't count.[/]"
    return "\n".join([text, counts, *reasons, advice])


def _compared(runs: Mapping[str, RunResult]) -> str:
    if not {"no_pool", "pool"} <= runs.keys():
        return "Without a play that only forwards and one with the pool there is nothing to compare."
    without, with_pool = runs["no_pool"], runs["pool"]
    saved = 1 - with_pool.storage_egress_bytes / max(1, without.storage_egress_bytes)
    fetched = with_pool.blocks.pool + with_pool.blocks.remote
    merging = ""
    if "merging" in runs:
        by_merging = 1 - runs["merging"].storage_egress_bytes / max(1, without.storage_egress_bytes)
        merging = f" (by merging alone {_amount(by_merging)})"
    text = (
        f"With the pool {_amount(saved)} bytes left the storage nodes{merging}: the switch served "
        f"{with_pool.blocks.pool / max(1, fetched):.0%} of the blocks that were fetched, and merged "
        f"{with_pool.merged:,} requests into others in flight. GET of a block, p50 / p99: "
        f"{without.get_ms.p50:.0f} / {without.get_ms.p99:.0f} ms without, "
        f"{with_pool.get_ms.p50:.0f} / {with_pool.get_ms.p99:.0f} ms with the pool; time to first "
        f"token: {without.ttft_ms.p50:.0f} / {without.ttft_ms.p99:.0f} and {with_pool.ttft_ms.p50:.0f} / "
        f"{with_pool.ttft_ms.p99:.0f} ms."
    )
    return _named(text, runs)


def _amount(saved: float) -> str:
    return f"[bold]{saved:.0%} fewer[/]" if saved >= 0 else f"[bold]{-saved:.0%} more[/]"
