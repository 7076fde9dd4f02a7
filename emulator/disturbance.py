"""Whether the control plane shows in the figures: where both are played, no pool is compared with a pool that
is managed as any other and whose entries no GET finds. Their traffic is the same, so what lies between their
medians is this machine's doing, and a comparison of a real pool with none is biased by as much."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from commands.intervals import Interval, mean_interval
from emulator.result import RunResult

COMPARED = ("no_pool", "phantom")
LIMIT = 0.02
"""What the control plane may add to a median before comparisons on this machine are biased by it."""
FIGURES: dict[str, Callable[[RunResult], float]] = {
    "GET p50": lambda run: run.get_ms.p50,
    "TTFT p50": lambda run: run.ttft_ms.p50,
}

Runs = Mapping[str, Sequence[RunResult]]
"""Plays by mode, in the order in which they were played."""


def differences(runs: Runs) -> dict[str, Interval]:
    """Relative difference of each figure, phantom against no pool, in pairs; none where one is missing."""
    if any(name not in runs for name in COMPARED):
        return {}
    pairs = list(zip(*(runs[name] for name in COMPARED), strict=False))
    return {
        name: mean_interval([figure(phantom) / figure(quiet) - 1 for quiet, phantom in pairs])
        for name, figure in FIGURES.items()
        if pairs and all(figure(quiet) for quiet, _ in pairs)
    }


def verdict(difference: Interval) -> str:
    """Return what an interval says of the limit."""
    if difference.within(LIMIT):
        return "within"
    if difference.low > LIMIT or difference.high < -LIMIT:
        return "outside"
    return "undecided: more RUNS, or a quieter machine"


def in_words(name: str, difference: Interval) -> str:
    """Return one figure's difference, its interval, and the verdict, in words."""
    interval = f"{difference.mean:+.1%} (95 %: {difference.low:+.1%} to {difference.high:+.1%})"
    return f"{name} with a pool that is never hit: {interval}, limit {LIMIT:.0%}: {verdict(difference)}"


def complaints(runs: Runs) -> list[str]:
    """Why figures of these plays don't count: medians that the control plane alone has moved."""
    found = differences(runs).items()
    return [f"control plane: {in_words(*one)}" for one in found if verdict(one[1]) == "outside"]
