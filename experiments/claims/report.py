"""Report of the claims: a table and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commands.intervals import Interval
from experiments.claims.cases import Work
from experiments.pictures import panels, save

TITLES = (
    "traffic and condition",
    "system",
    "over",
    "memory in the switch",
    "TTFT, mean",
    "TTFT, p99",
    "last of a group",
    "sessions an hour",
    "bytes from storage or lenders",
    "cache, $/h",
)

LEAST_CHANGE = 0.0005
"""Least difference from 1 at which a ratio may be bold."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Claim of one system over another: ratios, with 95 % intervals over seeds."""

    work: Work
    system: str
    over: str
    memory: str
    ratios: Mapping[str, Interval]
    dollars: float
    over_dollars: float
    seeds: int

    def record(self) -> dict[str, Any]:
        """Return the claim as an object of summary.json."""
        return {
            "traffic": self.work.name,
            "condition": self.work.condition,
            "system": self.system,
            "over": self.over,
            "memory": self.memory,
            "seeds": self.seeds,
            "cache_dollars_per_hour": [self.dollars, self.over_dollars],
            **{
                name: {"ratio": one.mean, "low": one.low, "high": one.high}
                for name, one in self.ratios.items()
            },
        }


def write_table(path: Path, claims: Sequence[Claim]) -> Path:
    """Write the claims in Markdown. Ratios whose 95 % interval does not contain 1 are bold."""
    lines = ["| " + " | ".join(TITLES) + " |", "|" + "---|" * len(TITLES)]
    for one in claims:
        ratios = [_ratio(ratio) for ratio in one.ratios.values()]
        cells = (
            f"{one.work.name}: {one.work.condition}",
            one.system,
            one.over,
            one.memory,
            *ratios,
            f"{one.dollars:.2f} / {one.over_dollars:.2f}",
        )
        lines.append("| " + " | ".join(cells) + " |")
    path.write_text("\n".join(lines) + "\n")
    return path


def draw(folder: Path, work: Work, means: Mapping[str, Mapping[str, float]]) -> Path:
    """Draw the mean and p99 time to the first token under each system; returns the file's path."""
    figure, axes = panels(1, 2, (9.0, 3.2), sharey=True)
    names = list(means)[::-1]
    for axis, name, title in zip(axes, ("ttft_mean_s", "ttft_p99_s"), ("mean", "p99"), strict=True):
        axis.barh(names, [means[one][name] for one in names])
        axis.set_xlabel(f"time to first token, {title}, s")
    figure.suptitle(f"{work.name}: {work.condition}", fontsize=9)
    return save(figure, folder, work.name, ("png",))[0]


def _ratio(one: Interval) -> str:
    text = f"{one.mean:.3f} ({one.low:.3f} to {one.high:.3f})"
    is_clear = not one.low <= 1 <= one.high and abs(one.mean - 1) >= LEAST_CHANGE
    return f"**{text}**" if is_clear else text
