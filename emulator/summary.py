"""Writing of results/run/summary.json."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from emulator.repeats import Repeats


def write_summary(path: Path, about: dict[str, object], repeats: Repeats) -> None:
    """Write the summary so that a reader never sees half of it.

    `runs` has the typical run of each mode, `repeats` all of them, `intervals` mean, low and high of 95 %.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    summary: dict[str, object] = {
        **about,
        "runs": {name: asdict(run) for name, run in repeats.typical().items()},
    }
    if repeats.count > 1:
        summary["repeats"] = {name: [asdict(run) for run in runs] for name, runs in repeats.runs.items()}
        summary["intervals"] = {
            name: {figure: asdict(one) for figure, one in figures.items()}
            for name, figures in repeats.intervals().items()
        }
    text = json.dumps(summary, indent=1)
    part = path.with_suffix(".part")
    part.write_text(text + "\n")
    part.replace(path)
