"""Report of all points: a table, and findings in words."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from emulator.machine import advice
from experiments.incast.result import Point

LEGEND = (
    "kB: left the storage node; copies: that, in multiples of all blocks asked for a burst; p50, p99 (also "
    "of the first burst and of those after it): ms from the moment at which all ask to a block's arrival; "
    "msgs: of the control plane."
)


def print_report(console: Console, title: str, points: Sequence[Point]) -> None:
    """Print the table, the findings, and the points that don't count."""
    console.print(_table(title, points))
    console.print(LEGEND)
    for line in findings(points):
        console.print(line)
    overloaded = [point for point in points if point.overloaded]
    if overloaded:
        console.print(f"[bold red]* At {len(overloaded)} points the machine did not keep up:[/] not counted.")
        for point in overloaded[:5]:
            reasons = "; ".join(point.complaints)
            console.print(f"  {point.mode}, {point.pattern}, {point.n} nodes: {reasons}")
        console.print(advice())


def findings(points: Sequence[Point]) -> list[str]:
    """Return in words what merging and the pool achieved, with the most nodes, at points that count."""
    counted = {(p.mode, p.pattern, p.n): p for p in points if not p.overloaded}
    most = max((p.n for p in points), default=0)
    lines = []
    for mode in ("merge", "both", "push"):
        same = [point for (name, pattern, _), point in counted.items() if (name, pattern) == (mode, "same")]
        if same:
            worst = max(same, key=lambda point: point.copies)
            lines.append(
                f"{mode}: the same blocks left the storage node {worst.copies:.2f} times a burst at most "
                f"({worst.n} nodes)."
            )
    without, both = counted.get(("none", "same", most)), counted.get(("both", "same", most))
    if without and both and both.block_ms.p99:
        ratio = without.block_ms.p99 / both.block_ms.p99
        first = without.first_burst_ms.p99 / both.first_burst_ms.p99
        lines.append(
            f"{most} nodes, the same blocks: p99 {without.block_ms.p99:.0f} ms a block without the pool, "
            f"{both.block_ms.p99:.0f} ms with it: {ratio:.1f} times less (first burst {first:.1f} times)."
        )
    return lines


def _table(title: str, points: Sequence[Point]) -> Table:
    table = Table(title=title, title_justify="left", padding=(0, 0, 0, 1), box=SIMPLE)
    for name in ("pattern", "mode"):
        table.add_column(name)
    for name in ("N", "kB", "copies", "p50", "p99", "first", "later", "Jain", "drops", "msgs"):
        table.add_column(name, justify="right")
    previous = None
    for p in sorted(points, key=lambda p: (p.pattern, points.index(p))):
        if previous not in (None, (p.pattern, p.mode)):
            table.add_section()
        previous = (p.pattern, p.mode)
        table.add_row(
            p.pattern, f"{p.mode}*" if p.overloaded else p.mode, str(p.n),
            f"{p.storage_egress_bytes / 1000:,.0f}", f"{p.copies:.2f}", f"{p.block_ms.p50:.0f}",
            f"{p.block_ms.p99:.0f}", f"{p.first_burst_ms.p99:.0f}", f"{p.later_bursts_ms.p99:.0f}",
            f"{p.fairness:.2f}", str(p.drops), str(p.control_messages),
            style="dim" if p.overloaded else None,
        )  # fmt: skip
    return table
