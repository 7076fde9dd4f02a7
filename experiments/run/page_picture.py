"""The picture at the top of a run's page: the network without and with the pool, side by side.

The width of a link shows the bytes that it carried, on one scale for both networks. The number of blocks that
the switch answered and of requests that it merged is written on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from experiments.run.page_plots import Run, Runs, answerers
from experiments.run.words import in_bytes, title_of
from scenario.modes import MODES

WIDTH, TOP, BOTTOM = 620, 34, 16
NODE_X, SWITCH_X, STORE_X = 92, 310, 506
ROW, MOST_HEIGHT = 34, 460
MOST_LINE = 18.0
LEAST_ROW_WITH_NAMES = 11
Position = tuple[float, float]
Carried = Mapping[str, tuple[int, int]]


def pictures(topology: Mapping[str, Any], runs: Runs) -> str:
    """Return the networks of the first and the last run as HTML; one network if there is only one run."""
    names = list(dict.fromkeys((next(iter(runs)), list(runs)[-1])))
    most = max((sum(both) for name in names for both in carried(runs[name]).values()), default=1)
    drawn = "".join(f"<div>{_picture(topology, runs[name], name, most)}</div>" for name in names)
    return f'<div class="columns picture">{drawn}</div>'


def carried(run: Run) -> dict[str, tuple[int, int]]:
    """Return the bytes that each link carried in the whole run: to the switch, and from it."""
    samples = run["timeline"]
    return {link: (to, of) for link, (to, of) in samples[-1]["link_bytes"].items()} if samples else {}


def _picture(topology: Mapping[str, Any], run: Run, name: str, most: int) -> str:
    rows = max(len(topology["nodes"]), len(topology["stores"]), 2 * len(topology["switches"]), 4)
    row = min(ROW, MOST_HEIGHT / rows)
    height = TOP + BOTTOM + rows * row
    at = _places(topology, height)
    moved = carried(run)
    links = "".join(_link(link, at, moved, most) for link in topology["links"])
    parts = [links, *_hosts(topology, at, moved, row), *_switches(topology, at, run)]
    text = _in_words(topology, run, name, moved)
    does = MODES[name].does if name in MODES else ""
    title = f"{title_of(name).capitalize()}: the switch {does}"
    return (
        f'<p class="chart-title">{escape(title)}</p>'
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" role="img" aria-label="{escape(text)}">'
        f"{''.join(parts)}</svg>"
    )


def _places(topology: Mapping[str, Any], height: float) -> dict[str, Position]:
    columns = ((NODE_X, topology["nodes"]), (SWITCH_X, topology["switches"]), (STORE_X, topology["stores"]))
    inside = height - TOP - BOTTOM
    return {
        name: (x, TOP + inside * (index + 0.5) / len(names))
        for x, names in columns
        for index, name in enumerate(names)
    }


def _link(link: Mapping[str, Any], at: Mapping[str, Position], moved: Carried, most: int) -> str:
    switch, peer = link["ends"]
    (x0, y0), (x1, y1) = at[switch], at[peer]
    to_switch, from_switch = moved.get(link["link"], (0, 0))
    thick = 1 + MOST_LINE * (to_switch + from_switch) / max(1, most)
    text = f"{peer} sent {in_bytes(to_switch)}, {switch} sent it {in_bytes(from_switch)}"
    return (
        f'<path class="line s0" style="stroke-width:{thick:.1f};opacity:.75" '
        f'd="M{x0} {y0:.1f}L{x1} {y1:.1f}">'
        f"<title>{escape(text)}</title></path>"
    )


def _hosts(topology: Mapping[str, Any], at: Mapping[str, Position], moved: Carried, row: float) -> list[str]:
    """Return SVG circles for nodes and squares for storage nodes, which have what they sent beside them."""
    parts = [
        f'<text x="{NODE_X}" y="16" text-anchor="middle">inference nodes</text>',
        f'<text x="{STORE_X}" y="16" text-anchor="middle">storage nodes</text>' if topology["stores"] else "",
    ]
    radius = min(9.0, row / 2.4)
    senders = answerers(topology)
    ends = {link["ends"][1]: link["link"] for link in topology["links"]}
    for name in (*topology["nodes"], *topology["stores"]):
        x, y = at[name]
        is_store = name in topology["stores"]
        box = f'x="{x - radius}" y="{y - radius:.1f}" width="{2 * radius}" height="{2 * radius}"'
        shape = (
            f'<rect {box} class="s2"/>'
            if is_store
            else f'<circle cx="{x}" cy="{y:.1f}" r="{radius}" class="s1"/>'
        )
        words = name if row >= LEAST_ROW_WITH_NAMES else ""
        side, anchor = (x + radius + 6, "start") if is_store else (x - radius - 6, "end")
        text = f'<text x="{side}" y="{y + 4:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
        if name in senders and is_store and name in ends:
            sent = in_bytes(moved.get(ends[name], (0, 0))[0])
            text += f'<text x="{side}" y="{y + 20:.1f}" style="font-weight:600">sent {sent}</text>'
        parts.append(shape + text)
    return parts


def _switches(topology: Mapping[str, Any], at: Mapping[str, Position], run: Run) -> list[str]:
    """Return an SVG box for each switch; the middle one says what all switches did together."""
    names = topology["switches"]
    parts = []
    for number, name in enumerate(names):
        x, y = at[name]
        lines = _did(run) if number == len(names) // 2 else ()
        wide, high = (200, 30 + 17 * len(lines)) if lines else (54, 26)
        texts = [f'<text x="{x}" y="{y - high / 2 + 19:.1f}" text-anchor="middle">{escape(name)}</text>']
        texts += [
            f'<text x="{x}" y="{y - high / 2 + 37 + 17 * row:.1f}" text-anchor="middle" '
            f'style="font-weight:600">{escape(line)}</text>'
            for row, line in enumerate(lines)
        ]
        box = f'x="{x - wide / 2}" y="{y - high / 2:.1f}" width="{wide}" height="{high}" rx="6"'
        parts.append(f'<rect {box} class="box"/>{"".join(texts)}')
    return parts


def _did(run: Run) -> tuple[str, ...]:
    """Return what the switches did beside forwarding, in short lines."""
    result = run["result"]
    lines = []
    if result["blocks"]["pool"] or result["switch_served_bytes"]:
        lines += [
            f"{result['blocks']['pool']:,} blocks from its pool",
            in_bytes(result["switch_served_bytes"]),
        ]
    if result["merged"]:
        lines.append(f"{result['merged']:,} requests merged")
    return tuple(lines) or ("only forwards",)


def _in_words(topology: Mapping[str, Any], run: Run, name: str, moved: Carried) -> str:
    """Return the picture in words, for readers who cannot see it."""
    ends = {link["ends"][1]: link["link"] for link in topology["links"]}
    sent = ", ".join(
        f"{one} sent {in_bytes(moved.get(ends[one], (0, 0))[0])}"
        for one in answerers(topology)
        if one in ends
    )
    return f"Network, {title_of(name)}: {sent}; {', '.join(_did(run))}"
