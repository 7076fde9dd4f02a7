"""View of a snapshot for a terminal of 60 columns or more. Every bar has a number; no figure needs colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from experiments.live.snapshot import LinkLoad, Snapshot
from experiments.sources import sources

WIDE_COLUMNS: Final = 110
"""Least width at which links and pool are side by side."""
NARROW_COLUMNS: Final = 76
"""Width below which links are above the switch, and decisions of the policy are left out."""
WIDE_ROWS: Final = 22
HIGH_ROWS: Final = 28
"""Least height at which tiers have bars in a narrow terminal too."""
BUSY: Final = 0.8
"""Share of a link's rate from which it is shown as busy."""
LOAD_CELLS: Final = 6
"""Width of a link's bar in characters: in WIDE_COLUMNS there is space for two bars with numbers."""
NARROW_LOAD_CELLS: Final = 3
NARROW_TIERS_ROWS: Final = 2
POOL_ROWS: Final = 8
TIERS_ROWS: Final = 2 + len(sources(lends=False))
_EDGE_ROWS: Final = 2
_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"
_SPARKS: Final = "▁▂▃▄▅▆▇█"


def draw(snapshot: Snapshot, pool_blocks: int, width: int, height: int) -> RenderableType:
    """Return the picture, which has at most `height` rows if `height` is 20 or more."""
    pool, tiers = _pool(snapshot, pool_blocks), _tiers(snapshot)
    if width >= WIDE_COLUMNS and height >= WIDE_ROWS:
        taken = POOL_ROWS + (TIERS_ROWS if tiers else 0)
        below = [pool, *([tiers] if tiers else ()), _policy(snapshot, height - taken)]
        return _side_by_side(_links(snapshot, height), Group(*below), ratios=(6, 5))
    left: RenderableType = pool
    line: list[RenderableType] = [_tiers_line(snapshot)] if tiers else []
    rows = POOL_ROWS
    if width < NARROW_COLUMNS:
        links = _links(snapshot, height - POOL_ROWS - (NARROW_TIERS_ROWS if tiers else 0), NARROW_LOAD_CELLS)
        return Group(links, *([_tiers_line(snapshot, no_wrap=False)] if tiers else ()), pool)
    if tiers and height >= HIGH_ROWS:
        left, line, rows = Group(pool, tiers), [], POOL_ROWS + TIERS_ROWS
    return Group(
        _links(snapshot, height - rows - len(line)),
        *line,
        _side_by_side(left, _policy(snapshot, rows), ratios=(1, 1)),
    )


def _side_by_side(left: RenderableType, right: RenderableType, ratios: tuple[int, int]) -> Table:
    grid = Table.grid(expand=True, padding=(0, 1, 0, 0))
    for ratio in ratios:
        grid.add_column(ratio=ratio)
    grid.add_row(left, right)
    return grid


def _links(snapshot: Snapshot, rows: int, cells: int = LOAD_CELLS) -> Panel:
    """Return the panel of switches and their links, or of the busiest links if there are too many."""
    table = Table(box=None, padding=(0, 1, 0, 0), expand=True, show_edge=False, header_style="dim")
    table.add_column("", no_wrap=True)
    for title in ("to the switch", "from it"):
        table.add_column(title, ratio=1, no_wrap=True)
    table.add_column("queue", justify="right", no_wrap=True)
    switches = len({link.switch for link in snapshot.links})
    shown = _busiest(snapshot.links, max(1, rows - switches - _EDGE_ROWS - 1))
    for switch, links in groupby(shown, key=lambda link: link.switch):
        table.add_row(f"[bold]{switch}[/]")
        for link in links:
            table.add_row(
                f"├ {link.peer}",
                _load(link.to_bit_s, link.rate_bit_s, cells),
                _load(link.from_bit_s, link.rate_bit_s, cells),
                f"{link.queued_bytes / 1000:.0f} kB" if link.queued_bytes else "-",
            )
    hidden = len(snapshot.links) - len(shown)
    rates = sorted({link.rate_bit_s / 1e6 for link in snapshot.links})
    of = f" of {', '.join(f'{rate:.4g}' for rate in rates[:3])} Mbit/s" if rates else ""
    subtitle = f"the {len(shown)} busiest of {len(snapshot.links)}" if hidden else None
    return Panel(
        table, title=f"Links{of}, load in Mbit/s", subtitle=subtitle, title_align="left", padding=(0, 1)
    )


def _busiest(links: Sequence[LinkLoad], most: int) -> list[LinkLoad]:
    """Return the busiest of the links, at most `most`, in their given order."""
    if len(links) <= most:
        return list(links)
    chosen = set(sorted(range(len(links)), key=lambda at: -links[at].share)[:most])
    return [link for at, link in enumerate(links) if at in chosen]


def _load(bit_s: float, rate_bit_s: float, cells: int) -> Text:
    share = bit_s / rate_bit_s
    style = "red" if share >= BUSY else "cyan"
    return Text.assemble((bar(share, cells), style), f" {bit_s / 1e6:6.1f} {share:4.0%}")


def bar(share: float, cells: int) -> str:
    """Return a bar of `cells` characters, which is full for a share of 1."""
    eighths = round(8 * cells * min(1.0, max(0.0, share)))
    full, part = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[part] if part else "")).ljust(cells)


def spark(values: Sequence[float], cells: int) -> str:
    """Return the last `cells` values as a line of bars; the largest is full."""
    last = values[-cells:]
    most = max(last, default=0.0) or 1.0
    return "".join(_SPARKS[min(7, int(8 * value / most))] for value in last)


def _pool(snapshot: Snapshot, pool_blocks: int) -> Panel:
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    share = snapshot.resident / max(1, pool_blocks)
    table.add_row("occupied", f"[cyan]{bar(share, 10)}[/] {snapshot.resident:,} of {pool_blocks:,}")
    for name, title in (("served", "served"), ("merged", "merged"), ("digests", "digests")):
        rates = snapshot.rates.get(name, ())
        line = Text.assemble((spark(rates, 10).ljust(10), "cyan"), f" {rates[-1] if rates else 0:,.0f}/s")
        table.add_row(title, line)
    table.add_row("in all", f"{snapshot.served:,} served, {snapshot.merged:,} merged")
    waits = [f"{name} {ms:.0f} ms" for name, ms in snapshot.backlog_ms.items() if ms]
    table.add_row("stores", ", ".join(waits[:3]) or "nothing waits")
    return Panel(table, title="Switch", title_align="left", padding=(0, 1))


def _tiers(snapshot: Snapshot) -> Panel | None:
    """Return the panel of blocks' sources, or None if they are not known."""
    if not snapshot.blocks:
        return None
    table = Table.grid(padding=(0, 1, 0, 0))
    for _ in range(3):
        table.add_column(no_wrap=True)
    for title, share in _shares(snapshot):
        table.add_row(title, f"[cyan]{bar(share, 8)}[/]", f"{share:4.0%}")
    return Panel(table, title="Blocks came from", title_align="left", padding=(0, 1))


def _tiers_line(snapshot: Snapshot, no_wrap: bool = True) -> Text:
    shown = ", ".join(
        f"{title.removesuffix(' in the switch')} {share:.0%}" for title, share in _shares(snapshot)
    )
    return Text(shown, no_wrap=no_wrap, overflow="ellipsis")


def _shares(snapshot: Snapshot) -> list[tuple[str, float]]:
    total = max(1, sum(snapshot.blocks.values()))
    titles = sources(snapshot.lends)
    return [(title, snapshot.blocks.get(source, 0) / total) for source, title in titles.items()]


def _policy(snapshot: Snapshot, rows: int) -> Panel:
    """Return the panel of the hottest prefixes and the latest decisions, the newest last."""
    hottest = Table(box=None, padding=(0, 1, 0, 0), show_edge=False, header_style="dim")
    hottest.add_column("hot prefix ends in", no_wrap=True)
    for title in ("blocks", "hits"):
        hottest.add_column(title, justify="right", no_wrap=True)
    inside = rows - _EDGE_ROWS
    hot = snapshot.hottest[: max(1, min(5, inside // 2 - 1))]
    for one in hot:
        hottest.add_row(str(one["key"]), str(one["depth"] + 1), f"{one['hits']:,}")
    last = max(1, inside - len(hot) - 1)
    decisions = [_decision(one) for one in snapshot.decisions[-last:]]
    parts = [hottest if hot else Text("no hits yet", "dim"), *decisions]
    title = f"Policy: {snapshot.admitted:,} in, {snapshot.evicted:,} out"
    return Panel(Group(*parts), title=title, title_align="left", padding=(0, 1))


def _decision(decided: Mapping[str, Any]) -> Text:
    if decided["what"] == "admitted":
        sign, style, more = "+", "green", f"block {decided['depth'] + 1} of its prefix"
    else:
        sign, style, more = "-", "yellow", f"after {decided['hits']:,} hits"
    return Text.assemble((f"{sign} ", style), f"{decided['switch']} {decided['key']} {more}", no_wrap=True)
