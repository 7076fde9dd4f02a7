"""Disturbance of the figures by the control plane on this machine.

If both are run, no pool is compared with a phantom pool, which is managed as any other but never hit. Their
traffic is the same, so this machine causes any difference of their medians. A comparison of a real pool with
none is biased by as much.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from commands.intervals import Interval, mean_interval
from emulator.result import RunResult

COMPARED = ("no_pool", "phantom")
LIMIT = 0.02
"""Relative change of a median by the control plane above which comparisons on this machine are biased."""
FIGURES: dict[str, Callable[[RunResult], float]] = {
    "GET p50": lambda run: run.get_ms.p50,
    "TTFT p50": lambda run: run.ttft_ms.p50,
}

Runs = Mapping[str, Sequence[RunResult]]
"""Results by mode, in the order of the runs."""


def differences(runs: Runs) -> dict[str, Interval]:
    """Return the relative difference of each figure between phantom and no pool, in pairs of runs.

    It is empty if one of the two modes was not run.
    """
    if any(name not in runs for name in COMPARED):
        return {}
    pairs = list(zip(*(runs[name] for name in COMPARED), strict=False))
    return {
        name: mean_interval([figure(phantom) / figure(quiet) - 1 for quiet, phantom in pairs])
        for name, figure in FIGURES.items()
        if pairs and all(figure(quiet) for quiet, _ in pairs)
    }


def verdict(difference: Interval) -> str:
    """Return whether an interval is within or outside the limit, or undecided."""
    if difference.within(LIMIT):
        return "within"
    if difference.low > LIMIT or difference.high < -LIMIT:
        return "outside"
    return "undecided: more RUNS, or a quieter machine"


def in_words(name: str, difference: Interval) -> str:
    """Return one figure's difference, its interval and the verdict in words."""
    interval = f"{difference.mean:+.1%} (95 %: {difference.low:+.1%} to {difference.high:+.1%})"
    return f"{name} with a pool that is never hit: {interval}, limit {LIMIT:.0%}: {verdict(difference)}"


def complaints(runs: Runs) -> list[str]:
    """Return reasons why figures of these runs don't count: medians moved by the control plane alone."""
    found = differences(runs).items()
    return [f"control plane: {in_words(*one)}" for one in found if verdict(one[1]) == "outside"]
