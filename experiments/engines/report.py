"""Table at the end of a run, and the list of what is not as it must be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rich.console import Console
from rich.table import Table

from commands.intervals import mean_interval
from experiments.engines.options import MOONCAKE, POOL, RECOMPUTE
from experiments.engines.result import Damage, ModeResult

GOAL = 0.7
"""Median time to the first token with the pool over that of recomputing, which must be below this."""


def print_report(
    console: Console, title: str, modes: Mapping[str, ModeResult], damaged: Damage | None
) -> None:
    """Print the table, with a row for each figure and a column for each mode."""
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for name in modes:
        table.add_column(name, justify="right")
    rows: tuple[tuple[str, Callable[[ModeResult], str]], ...] = (
        ("identical / requests", lambda m: f"{m.identical} / {m.requests}"),
        ("largest difference of a log-probability", lambda m: f"{m.max_logprob_diff:.1e}"),
        ("TTFT ms, p50", lambda m: f"{m.ttft_ms.p50:,.0f}"),
        ("TTFT ms, p99", lambda m: f"{m.ttft_ms.p99:,.0f}"),
        ("TTFT p50, of recomputing", lambda m: _share(m, modes)),
        ("time between tokens ms, p50", lambda m: f"{m.tbt_ms.p50:,.0f}"),
        ("time between tokens ms, p99", lambda m: f"{m.tbt_ms.p99:,.0f}"),
        ("TTFT ms of new prefixes, p50", lambda m: f"{m.first_ms.p50:,.0f}"),
        ("prompt tokens: connector's hits", lambda m: f"{m.hit_tokens:,}"),
        ("prompt tokens: engine's own cache", lambda m: f"{m.own_tokens:,}"),
        ("KV from the switch, MB", lambda m: f"{m.pool_bytes / 1e6:,.1f}"),
        ("KV from storage nodes, MB", lambda m: f"{m.store_bytes / 1e6:,.1f}"),
        ("merged fragments", lambda m: f"{m.merged:,}"),
        ("objects that failed", lambda m: f"{sum(m.failed.values()):,}"),
    )
    for name, cell in rows:
        table.add_row(name, *(cell(mode) for mode in modes.values()))
    if MOONCAKE in modes and len(modes[MOONCAKE].round_ttft_ms) > 1:
        mooncake = modes[MOONCAKE].round_ttft_ms
        table.add_row(
            "TTFT p50 to Mooncake's, by rounds", *(_ratio_to(mooncake, mode) for mode in modes.values())
        )
    console.print(table)
    if damaged is not None:
        verdict = "noticed" if damaged.noticed else "NOT NOTICED: the comparison is worth nothing"
        console.print(
            f"Damaged on purpose: {damaged.tokens_changed} tokens and a log-probability by "
            f"{damaged.max_logprob_diff:.2g} differ: {verdict}."
        )


def shortfalls(modes: Mapping[str, ModeResult], damaged: Damage | None) -> list[str]:
    """Return what is not as it must be; empty if all is well."""
    found = [
        f"{name}: {mode.requests - mode.identical} of {mode.requests} requests were answered otherwise"
        for name, mode in modes.items()
        if mode.identical < mode.requests
    ]
    if damaged is not None and not damaged.noticed:
        found.append("damaged KV went unnoticed")
    pool, recompute = modes.get(POOL), modes.get(RECOMPUTE)
    if pool is not None and recompute is not None:
        found += [f"pool: {name} is 0" for name in ("hit_tokens", "pool_bytes") if not getattr(pool, name)]
        if pool.ttft_ms.p50 >= GOAL * recompute.ttft_ms.p50:
            found.append(f"pool: the median TTFT is not below {GOAL:g} of recomputing's")
    return found


def _ratio_to(mooncake: Sequence[float], mode: ModeResult) -> str:
    """Return the mean of the rounds' ratios with its interval; "" if the numbers of rounds differ."""
    if len(mode.round_ttft_ms) != len(mooncake):
        return ""
    return (
        f"{mean_interval([one / other for one, other in zip(mode.round_ttft_ms, mooncake, strict=True)]):.2f}"
    )


def _share(mode: ModeResult, modes: Mapping[str, ModeResult]) -> str:
    reference = modes[RECOMPUTE].ttft_ms.p50
    return f"{mode.ttft_ms.p50 / reference:.2f}" if reference else "-"
