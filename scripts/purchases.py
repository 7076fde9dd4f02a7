"""Draw docs/pictures/purchases-few.svg: five purchases of the study by the number of nodes.

    .venv/bin/python scripts/purchases.py

The figures are those of the notebook's table in docs/lab/purchases.md.
"""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).resolve().parent.parent
NODES = (16, 32, 46, 60)
SERIES = {
    "2 storage nodes": "2 storage nodes (1.47 $/h)",
    "2 storage nodes and pool": "2 storage nodes and a pool (1.96 $/h, at 60: 5.36)",
    "… at 36 %, lent (TCP)": "lent DRAM over TCP (0 $/h)",
    "nodes lend their 64 GB": "lent DRAM at 98 % of a link (0 $/h)",
    "CXL pool (Beluga-like)": "CXL pool (1.27 to 2.29 $/h)",
}
"""First cell of a row of the table, and what the picture calls it."""
COLOURS = ("#d55e00", "#0072b2", "#999999", "#009e73", "#cc79a7")


def main() -> None:
    """Write the picture."""
    text = (ROOT / "docs" / "lab" / "purchases.md").read_text(encoding="utf-8")
    table = text[text.index("| mean TTFT relative to recomputing") :]
    plt.rcParams["svg.hashsalt"] = "weir"
    figure, axes = plt.subplots(figsize=(8.6, 4.2), layout="constrained")
    for (row, label), colour in zip(SERIES.items(), COLOURS, strict=True):
        means, errors = figures(table, row)
        axes.errorbar(NODES, means, errors, color=colour, marker="o", markersize=4, capsize=3, linewidth=1.5)
        axes.annotate(
            label, (NODES[-1], means[-1]), (8, 0), textcoords="offset points", color=colour, va="center"
        )
    axes.axhline(1, color="black", linewidth=0.8, linestyle=":")
    axes.annotate("recomputing", (NODES[0], 1), (0, 4), textcoords="offset points")
    axes.set(xlabel="inference nodes", xticks=NODES, xlim=(14, 100))
    axes.set_title(
        "Mean time to the first token over that of recomputing (95 % intervals)", loc="left", fontsize=11
    )
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(ROOT / "docs" / "pictures" / "purchases-few.svg", metadata={"Date": None})


def figures(table: str, row: str) -> tuple[list[float], list[float]]:
    """Return means and half widths of the intervals of a row, by NODES."""
    found = re.search(rf"^\| {re.escape(row)} \|(.*)$", table, re.MULTILINE)
    if found is None:
        raise SystemExit(f"docs/lab/purchases.md has no row {row!r}")
    pairs = [cell.split("±") for cell in found[1].split("|")[: len(NODES)]]
    return [float(mean) for mean, _ in pairs], [float(error) for _, error in pairs]


if __name__ == "__main__":
    main()
