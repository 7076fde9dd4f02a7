"""Picture of the benchmark: CPU time a byte by the size of values, with the limit of each part."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from experiments.bench.values.measure import ECHO, SWITCH, UDP, Costs
from experiments.pictures import panels, save

PANELS: Final = {
    "Switch, a hit": {SWITCH: f"{SWITCH}, hits", ECHO: f"{ECHO}, hits"},
    "Node, a GET": {"node": "node, GET", "limit: bare UDP": f"{UDP}, receiver"},
    "Storage node, a GET": {"storage node": "storage node, GET", "limit: bare UDP": f"{UDP}, sender"},
}
"""Parts to draw by panel and label: first the part itself, then its limit."""


def draw(rounds: Mapping[int, Sequence[Costs]], folder: Path) -> Path:
    """Write values.svg: medians in ns of CPU a byte, with bars from the lowest to the highest round."""
    figure, ((*row,),) = panels(1, len(PANELS), (3.6 * len(PANELS), 3.2), squeeze=False, sharey=True)
    sizes = list(rounds)
    for panel, (title, series) in zip(row, PANELS.items(), strict=True):
        for number, (label, part) in enumerate(series.items()):
            costs = [[one[part] for one in measured] for measured in rounds.values()]
            middle = [statistics.median(one) for one in costs]
            below = [median - min(one) for median, one in zip(middle, costs, strict=True)]
            above = [max(one) - median for median, one in zip(middle, costs, strict=True)]
            style = {"color": "C7", "linestyle": "--"} if number else {"color": "C0"}
            panel.errorbar(sizes, middle, (below, above), marker="o", capsize=3, **style)
            panel.annotate(
                label, (sizes[0], middle[0]), (6, 6), textcoords="offset points", color=style["color"]
            )
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_xticks(sizes, [f"{size:,}" for size in sizes], minor=False)
        panel.minorticks_off()
        panel.set_xlabel("bytes of a value")
        panel.set_title(title, fontsize=10)
        panel.grid(alpha=0.3)
    row[0].set_ylabel("CPU time a byte, ns")
    (path,) = save(figure, folder, "values", ("svg",))
    return path
