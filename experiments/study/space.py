"""Many settings, simulated once each and briefly: which axes a pool's gain depends on, over the whole space.

The map (setting_map.py) simulates a few settings thoroughly. Here POINTS simulations are spread over settings
drawn in the same way: five systems a setting, each setting with a seed of its own. There are few requests, so
most of a run is its cold start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log

from commands.intervals import Interval, mean_interval
from experiments.study.point import Point
from experiments.study.sample import LEAST_DIFFERENCE, MEAN, P99, Sample
from experiments.study.setting_map import CHOICES, MAP_AXES, hypercube
from experiments.study.systems import POOLS, Setting, system

SPACE = "space"
SYSTEMS = ("recompute", "lent", "lent_pool", "stores", "switch")
PAIRS = (("switch", "stores"), ("lent_pool", "lent"), ("lent", "recompute"), ("switch", "lent"))
"""Pairs of systems that are compared, seed by seed."""
MOST_NODES = 60
REQUESTS, REQUESTS_A_NODE = 150, 6
THIRDS = ("low", "middle", "high")
ALL = "all settings"


def space_points(centre: Setting, points: int) -> Iterator[Point]:
    """Yield `points` points, rounded down to whole settings."""
    for number, place in enumerate(hypercube(points // len(SYSTEMS), centre.seed)):
        values: dict[str, object] = {}
        for axis in MAP_AXES:
            high = MOST_NODES if axis.field == "nodes" else axis.high
            values[axis.field] = replace(axis, high=high).at(place[axis.field])
        for name, choices in CHOICES.items():
            values[name] = choices[min(len(choices) - 1, int(place[name] * len(choices)))]
        requests = max(REQUESTS, REQUESTS_A_NODE * int(str(values["nodes"])))
        setting = replace(centre, requests=requests, **values)  # type: ignore[arg-type]
        for name in SYSTEMS:
            yield Point(SPACE, number, name, setting, system(name, setting))


@dataclass(frozen=True, slots=True)
class Gain:
    """Share by which one system's mean first token is sooner than another's, in a part of the settings."""

    what: str
    without: str
    part: str
    """ALL, or an axis with its part, or a choice."""
    settings: int
    gain: Interval
    """Mean gain over the settings, taken of logarithms, so that halving and doubling weigh the same."""
    sooner: float
    """Share of the settings in which it is sooner by more than LEAST_DIFFERENCE."""
    later: float
    tail: Interval
    """Gain in p99."""


Settings = Mapping[int, tuple[Setting, Mapping[str, Sample]]]
"""Setting, and samples by system, by the number of the setting."""


def settings_of(done: Sequence[tuple[Point, Sample]]) -> Settings:
    """Return the settings of the sweep whose systems were all simulated."""
    found: dict[int, tuple[Setting, dict[str, Sample]]] = {}
    for point, sample in done:
        if point.sweep == SPACE:
            found.setdefault(point.value, (point.setting, {}))[1][point.system] = sample
    return {number: pair for number, pair in found.items() if len(pair[1]) == len(SYSTEMS)}


def lead(samples: Mapping[str, Sample]) -> float:
    """Return the lead of the fastest system with a pool over the fastest without, whatever they cost."""
    means = {name: sample.mean(*MEAN) for name, sample in samples.items()}
    pools = [mean_s for name, mean_s in means.items() if name in POOLS]
    return 1 - min(pools) / min(mean_s for name, mean_s in means.items() if name not in POOLS)


def gains(settings: Settings) -> list[Gain]:
    """Return the gain of each pair, over all settings and by each part of each axis.

    Parts with one setting are left out.
    """
    parts = {ALL: list(settings.values())}
    for field in (*(axis.field for axis in MAP_AXES), *CHOICES):
        parts |= _parts(field, list(settings.values()))
    return [
        _gain(what, without, part, [samples for _, samples in mine])
        for what, without in PAIRS
        for part, mine in parts.items()
        if len(mine) > 1
    ]


def _parts(
    field: str, settings: Sequence[tuple[Setting, Mapping[str, Sample]]]
) -> dict[str, list[tuple[Setting, Mapping[str, Sample]]]]:
    """Return thirds of an axis by rank, or one part for each choice."""
    if field in CHOICES:
        return {
            f"{field} {choice}": [pair for pair in settings if getattr(pair[0], field) == choice]
            for choice in CHOICES[field]
        }
    order = sorted(settings, key=lambda pair: float(getattr(pair[0], field)))
    ends = [len(order) * at // len(THIRDS) for at in range(len(THIRDS) + 1)]
    return {
        f"{field} {part}": order[first:end] for part, first, end in zip(THIRDS, ends, ends[1:], strict=False)
    }


def _gain(what: str, without: str, part: str, mine: Sequence[Mapping[str, Sample]]) -> Gain:
    ratios, tails = (
        [samples[what].mean(*path) / samples[without].mean(*path) for samples in mine] for path in (MEAN, P99)
    )
    sooner = sum(one < 1 - LEAST_DIFFERENCE for one in ratios) / len(ratios)
    later = sum(one > 1 + LEAST_DIFFERENCE for one in ratios) / len(ratios)
    return Gain(what, without, part, len(ratios), _mean_gain(ratios), sooner, later, _mean_gain(tails))


def _mean_gain(ratios: Sequence[float]) -> Interval:
    logs = mean_interval([log(one) for one in ratios])
    return Interval(1 - exp(logs.mean), 1 - exp(logs.high), 1 - exp(logs.low))
