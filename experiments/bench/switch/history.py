"""History of ratios, one line for each workload of a recorded run: docs/performance-history.csv.

Rates depend on the machine. Ratios within one run hardly do, so the file has ratios.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Final

from emulator.result import ROOT
from experiments.bench.switch.engines import ECHO
from experiments.bench.switch.summary import Rounds, figures, ratios

HISTORY: Final = ROOT / "docs" / "performance-history.csv"
COLUMNS: Final = (
    "date", "revision", "workload", "lossless_to_echo", "lossless_to_bmv2",
    "overload_to_echo", "overload_to_lossless", "lossless_per_s",
)  # fmt: skip
SUBJECT: Final = "embedded"


def lines(rounds: Rounds, date: str, revision: str) -> list[dict[str, str]]:
    """Return a line for each workload that the embedded switch was measured with."""
    rows = []
    for workload, engines in rounds.items():
        if SUBJECT not in engines:
            continue
        measured = engines[SUBJECT]
        of = figures(measured)
        values = {
            "lossless_to_echo": _ratio(rounds, workload, ECHO, "lossless_per_s"),
            "lossless_to_bmv2": _ratio(rounds, workload, "bmv2", "lossless_per_s"),
            "overload_to_echo": _ratio(rounds, workload, ECHO, "overload_per_s"),
            "overload_to_lossless": of["overload_per_s"].median / (of["lossless_per_s"].median or math.nan),
        }
        shown = {name: "" if math.isnan(value) else f"{value:.2f}" for name, value in values.items()}
        rate = f"{of['lossless_per_s'].median:.0f}"
        rows.append(
            {"date": date, "revision": revision, "workload": workload, **shown, "lossless_per_s": rate}
        )
    return rows


def _ratio(rounds: Rounds, workload: str, reference: str, name: str) -> float:
    engines = rounds[workload]
    return ratios(engines[SUBJECT], engines[reference], name).median if reference in engines else math.nan


def record(rounds: Rounds, date: str, revision: str, path: Path = HISTORY) -> int:
    """Append the lines of a run to the file; returns their number."""
    new = lines(rounds, date, revision)
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerows(new)
    return len(new)
