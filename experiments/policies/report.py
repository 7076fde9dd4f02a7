"""The report of a run: tables on the console, summary.json and ablation.json."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from experiments.policies.compare import MEASURES, OURS, Comparison, misses_target
from experiments.policies.jobs import ABLATION
from experiments.policies.pools import BELADY
from experiments.policies.replay import Result

Results = Mapping[str, Sequence[Result]]
"""Results by the name of their trace."""


def write_results(path: Path, results: Results) -> None:
    """Write the results as JSON: {"trace", "results"}.

    With several traces, "trace" is their names joined, and each result has its own "trace".
    """
    names = list(results)
    records = [
        asdict(result) if len(names) == 1 else {"trace": name, **asdict(result)}
        for name, of_trace in results.items()
        for result in of_trace
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"trace": ", ".join(names), "results": records}, indent=1) + "\n")


def print_hits(console: Console, trace: str, results: Sequence[Result]) -> None:
    """Print the hit ratios of every policy at every size; the best online policy of a size is bold."""
    best: dict[int, float] = {}
    for result in results:
        if result.policy != BELADY:
            best[result.blocks] = max(result.block_hit, best.get(result.blocks, 0.0))

    def cell(result: Result) -> str:
        text = f"{_ratio(result.block_hit)}/{_ratio(result.prefix_hit)}"
        return f"[bold]{text}[/]" if result.block_hit == best.get(result.blocks) else text

    _print_pairs(console, f"{trace}: block / prefix hit ratio, by blocks in the pool", results, cell)


def print_savings(console: Console, trace: str, results: Sequence[Result]) -> None:
    """Print what the pool saved and what was written into it, at every size."""
    _print_pairs(console, f"{trace}: seconds saved", results, lambda r: _seconds(r.saved_s))
    _print_pairs(
        console,
        f"{trace}: prefill s / transfer s saved",
        results,
        lambda r: f"{_seconds(r.saved_prefill_s)}/{_seconds(r.saved_transfer_s)}",
    )
    _print_pairs(
        console,
        f"{trace}: TB served / thousand blocks written",
        results,
        lambda r: f"{r.saved_bytes / 1e12:.2f}/{r.admissions / 1e3:.0f}",
    )


def print_comparison(console: Console, comparisons: Sequence[Comparison]) -> None:
    """Print the policy against the best baseline of each trace and size, and where it falls short.

    "best" names the baseline that saved most seconds; each measure is compared with its own best.
    """
    table = Table(title=f"{OURS} against the best other online policy of each trace and size")
    table.add_column("trace")
    table.add_column("blocks", justify="right")
    table.add_column("best")
    for measure in ("saved", "block", "prefix", "prefill", "transfer", "to Belady"):
        table.add_column(measure, justify="right")
    rows: dict[tuple[str, int], dict[str, Comparison]] = {}
    for comparison in comparisons:
        rows.setdefault((comparison.trace, comparison.blocks), {})[comparison.measure] = comparison
    for (trace, blocks), row in rows.items():
        saved, block_hit = row["saved_s"], row["block_hit"]
        leads = [f"{row[measure].lead:+.1%}" for measure in MEASURES]
        closed = "" if block_hit.closed is None else f"{block_hit.closed:.0%}"
        table.add_row(trace, f"{blocks:,}", saved.best_policy, *leads, closed)
    console.print(table)
    behind = misses_target(comparisons)
    for miss in behind:
        console.print(
            f"[red]behind[/] {miss.trace}, {miss.blocks:,} blocks, {miss.measure}: {miss.ours:.4g}, "
            f"{miss.best_policy} has {miss.best:.4g}"
        )
    if comparisons and not behind:
        console.print(
            f"{OURS} is nowhere more than 2 % below the best other online policy "
            f"({len(comparisons)} comparisons)"
        )


def print_ablation(console: Console, trace: str, full: Sequence[Result], ablated: Sequence[Result]) -> None:
    """Print block hits and seconds saved with one part switched off, relative to the whole policy."""
    whole = {result.blocks: result for result in full if result.policy == OURS}
    if not whole or not ablated:
        return

    def cell(result: Result) -> str:
        reference = whole[result.blocks]
        block, saved = result.block_hit / reference.block_hit, result.saved_s / reference.saved_s
        return f"{100 * (block - 1):+.1f}/{100 * (saved - 1):+.1f}"

    title = f"{trace}: block hits / seconds saved with one part switched off, % against the whole policy"
    named = [replace(result, policy="without " + result.policy.removeprefix(ABLATION)) for result in ablated]
    _print_pairs(console, title, named, cell)


def _print_pairs(
    console: Console, title: str, results: Sequence[Result], cell: Callable[[Result], str]
) -> None:
    sizes = sorted({result.blocks for result in results})
    table = Table(title=title)
    table.add_column("policy")
    for size in sizes:
        table.add_column(f"{size:,}", justify="right")
    for policy, row in _by_policy(results).items():
        table.add_row(policy, *(cell(row[size]) for size in sizes))
    console.print(table)


def _seconds(time_s: float) -> str:
    """Return a time in text, with one decimal below 10 s, where whole seconds would hide differences."""
    return f"{time_s:.0f}" if abs(time_s) >= 9.95 else f"{time_s:.1f}"


def _ratio(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def _by_policy(results: Sequence[Result]) -> dict[str, dict[int, Result]]:
    rows: dict[str, dict[int, Result]] = {}
    for result in results:
        rows.setdefault(result.policy, {})[result.blocks] = result
    return rows
