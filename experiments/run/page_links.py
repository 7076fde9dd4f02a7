"""The part of the page that shows the traffic of any link over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from experiments.page import Menu, Page
from experiments.run.page_plots import Run, Runs
from experiments.run.words import title_of

_TO_SWITCH, _FROM_SWITCH = 0, 1

_DRAW = """
weirDraw(plot, {
  kind: "lines", title: "Mbit/s of the emulation, " + chosen.link.replace("-", " to "), x: "seconds",
  series: data.modes.map(mode => ({x: mode.t, y: mode.links[chosen.link][chosen.way], name: mode.name})),
});
"""


def links_over_time(page: Page, topology: Mapping[str, Any], runs: Runs) -> None:
    """Add a plot of Mbit/s in the emulation over the link that the reader chooses, in each mode."""
    links = [link["link"] for link in topology["links"]]
    stores = [link["link"] for link in topology["links"] if link["ends"][1] in topology["stores"]]
    ordered = [*stores, *(link for link in links if link not in stores)]
    page.text("Any link, in Mbit/s of the emulation:")
    page.menus(
        "link",
        (
            Menu("link", "Link", [(link, link.replace("-", " to ")) for link in ordered]),
            Menu("way", "Direction", [(str(_TO_SWITCH), "to the switch"), (str(_FROM_SWITCH), "from it")]),
        ),
        _DRAW,
        {
            "modes": [{"name": title_of(name), **_rates(run, ordered)} for name, run in runs.items()],
        },
    )


def _rates(run: Run, links: Sequence[str]) -> dict[str, Any]:
    pairs = [(one, two) for one, two in pairwise(run["timeline"]) if two["t_s"] > one["t_s"]]
    return {
        "t": [round(two["t_s"], 2) for _, two in pairs],
        "links": {
            link: [[_mbit_s(one, two, link, way) for one, two in pairs] for way in (_TO_SWITCH, _FROM_SWITCH)]
            for link in links
        },
    }


def _mbit_s(one: Mapping[str, Any], two: Mapping[str, Any], link: str, way: int) -> float:
    moved = two["link_bytes"].get(link, (0, 0))[way] - one["link_bytes"].get(link, (0, 0))[way]
    return float(round(8e-6 * moved / (two["t_s"] - one["t_s"]), 3))
