"""`make policies LIVE=yes`, its second part: `reuse` against policies that are told just as it is.

Which of them was best is chosen afterwards for each trace, size and way of telling, by what it saved there:
no online policy could have known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from rich.console import Console

from experiments.intervals import Interval, mean_interval
from experiments.policies.live import AS_IT_IS, IDLE, UNEXPECTED
from experiments.policies.live_tables import print_sizes

TOLD = (AS_IT_IS, UNEXPECTED, IDLE)
"""As by default, with EXPECT=no, and with FILL=idle."""


@dataclass(frozen=True, slots=True)
class Lead:
    """Of `reuse` on a shape's traces, over the best baseline of each."""

    trace: str
    blocks: int
    told: str
    saved: Interval
    """Ratio of the seconds saved to the best baseline's, mean of the traces."""
    worst: float
    """Least ratio of a single trace."""
    saved_s: dict[str, float]
    """By policy, mean of the traces."""
    best: tuple[str, ...]
    """The best baseline of each trace."""


def lead(
    trace: str, blocks: int, told: str, ours_s: Sequence[float], baselines_s: Mapping[str, Sequence[float]]
) -> Lead:
    """From what each saved on each trace; where no baseline saved anything, `reuse` is as good as they."""
    best, ratios = list[str](), list[float]()
    for number, saved in enumerate(ours_s):
        of_each = {name: found[number] for name, found in baselines_s.items()}
        best.append(max(of_each, key=of_each.__getitem__))
        most = of_each[best[-1]]
        ratios.append(saved / most if most > 0.0 else 1.0)
    saved_s = {"reuse": mean(ours_s), **{name: mean(found) for name, found in baselines_s.items()}}
    return Lead(trace, blocks, told, mean_interval(ratios), min(ratios), saved_s, tuple(best))


def print_leads(console: Console, leads: Sequence[Lead]) -> None:
    """How `reuse` stands to the best of them."""
    print_sizes(
        console,
        leads,
        "seconds saved by reuse / by the best baseline that is told the same, chosen afterwards (mean, "
        "95 %); the worst trace; which were best",
        _cell,
    )


def _cell(one: Lead) -> str:
    interval = f" ±{one.saved.half:.3f}" if one.saved.half < float("inf") else ""
    return f"{one.saved.mean:.3f}{interval}; {one.worst:.3f}; {', '.join(sorted(set(one.best)))}"
