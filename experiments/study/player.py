"""Execution of the sweeps within the time: first a few seeds of each sweep, in its share of the
time that is left.

Then come the other seeds: those of purchases and designs before those of axes, map and tornado.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from experiments.study.adaptive import ALL_SEEDS, FIRST_SEEDS, Group, SimulateUntil, coarse, grouped, play
from experiments.study.options import ALL_SEEDS_FIRST, REMAINING_SEEDS, TIME_SHARES, StudyOptions
from experiments.study.panels.panel import Found
from experiments.study.point import Point
from experiments.study.sample import STEADY
from experiments.study.setting_map import (
    MAP,
    QUICK_SETTINGS,
    REFINED_SETTINGS,
    SETTINGS,
    SETTINGS_AROUND_EACH,
    MapPlace,
    Verdicts,
    around,
    hypercube,
    map_requests,
    setting_at,
    setting_points,
    verdicts,
)
from experiments.study.space import SPACE, lead, settings_of
from experiments.study.systems import Setting

HYPERCUBE_SHARE = 0.6
"""Share of the map's time for the settings that are drawn over the whole space."""
REPLAYED = 8
"""Number of settings of the whole space that are simulated again."""
FRESH_SEEDS = 100
"""Number added to the seeds of those settings."""
MAP_SEEDS = 2
"""Number of seeds that each setting of the map gets first: where to search further has to be known early."""


class Player:
    """Groups of all sweeps, as far as they were simulated."""

    def __init__(self, options: StudyOptions, simulate_until: SimulateUntil, began_s: float) -> None:
        self._options, self._simulate_until = options, simulate_until
        self._end_s = began_s + 60 * options.minutes
        last = REMAINING_SEEDS if options.seeds_played is None else ""
        self._left = [name for name in TIME_SHARES if name in (*options.sweeps, last)]
        self._groups: list[Group] = []
        self._map: list[Group] = []
        self._chosen: list[Group] = []
        """Groups of the map whose settings were chosen because a pool came nearest there, or
        in the whole space."""

    def play(self, sweep: str, centre: Setting, points: Sequence[Point]) -> None:
        """Simulate the first seeds of one sweep, in its share of the time."""
        deadline_s = self._deadline_s(sweep)
        if sweep == MAP:
            self._play_map(centre, deadline_s)
            return
        groups = grouped(points)
        self._groups += groups
        play(groups, self._options.seed, self._seeds, self._simulate_until, deadline_s)
        if sweep == SPACE:
            self._replay(groups, centre, deadline_s)

    def remaining_seeds(self) -> None:
        """Simulate the remaining seeds of all sweeps; those of the sweep space come last."""
        if self._options.seeds_played is None:
            first = [group for group in self._groups if group.sweep in ALL_SEEDS_FIRST]
            space = [group for group in self._groups if group.sweep == SPACE]
            others = [group for group in self._groups if group.sweep not in (*ALL_SEEDS_FIRST, SPACE)]
            for groups in (first, [*others, *self._map], space):
                play(groups, self._options.seed, ALL_SEEDS, self._simulate_until, self._end_s)

    @property
    def _seeds(self) -> int:
        """Return the number of first seeds of each comparison, or the number that was asked for."""
        return self._options.seeds_played or FIRST_SEEDS

    def found(self) -> Found:
        """Return everything that was simulated."""
        everything = self._groups + self._map
        done = [
            pair
            for group in everything
            if group.runs
            for pair in zip(group.points, group.samples, strict=True)
        ]
        places = [group for group in self._map if group.runs]
        found = [verdicts(group.points, group.samples) for group in places]
        steady = [verdicts(group.points, group.samples, STEADY) for group in places]
        near = sum(bool(group.runs) for group in self._chosen)
        return Found(done, found, steady, near, coarse(everything))

    def _deadline_s(self, sweep: str) -> float:
        share = TIME_SHARES[sweep] / sum(TIME_SHARES[name] for name in self._left)
        self._left.remove(sweep)
        now_s = time.monotonic()
        return now_s + max(0.0, self._end_s - now_s) * share

    def _play_map(self, centre: Setting, deadline_s: float) -> None:
        """Simulate settings drawn over the whole space, then settings around those where
        a pool came nearest."""
        options = self._options
        quick, seed = options.quick, options.seed
        hypercube_end_s = time.monotonic() + HYPERCUBE_SHARE * (deadline_s - time.monotonic())
        drawn = hypercube(QUICK_SETTINGS if quick else SETTINGS, seed)
        numbers = count(1)
        known = self._settings(drawn, centre, numbers, hypercube_end_s)
        ranked = sorted(known, key=lambda pair: -pair[1].lead.mean)[:REFINED_SETTINGS]
        near = [
            place
            for number, (place, _) in enumerate(ranked)
            for place in around(place, 1 if quick else SETTINGS_AROUND_EACH, seed + number)
        ]
        before = len(self._map)
        self._settings(near, centre, numbers, deadline_s)
        self._chosen += self._map[before:]

    def _replay(self, groups: Sequence[Group], centre: Setting, deadline_s: float) -> None:
        """Simulate again, with fresh seeds, the settings of the whole space in which a pool led by most.

        Fresh seeds matter: of 2,000 single runs, those with the largest lead are also the luckiest.
        """
        done = [
            pair for group in groups if group.runs for pair in zip(group.points, group.samples, strict=True)
        ]
        ranked = sorted(settings_of(done).values(), key=lambda pair: -lead(pair[1]))[:REPLAYED]
        chosen = []
        for number, (setting, _) in enumerate(ranked, 1):
            requests = map_requests(setting.nodes, centre, self._options.quick)
            points = setting_points(replace(setting, requests=requests), f"of the space, {number}")
            chosen += [replace(group, seed_offset=FRESH_SEEDS) for group in grouped(points)]
        play(chosen, self._options.seed, self._seeds, self._simulate_until, deadline_s)
        self._map += chosen
        self._chosen += chosen

    def _settings(
        self, drawn: Sequence[MapPlace], centre: Setting, numbers: count[int], deadline_s: float
    ) -> list[tuple[MapPlace, Verdicts]]:
        """Simulate new settings and return their verdicts; settings for which there was no
        time are left out."""
        groups = []
        for place in drawn:
            points = setting_points(setting_at(place, centre, self._options.quick), str(next(numbers)))
            groups += grouped(points)
        seeds = self._options.seeds_played or MAP_SEEDS
        for group in groups:  # a setting is of use only if all of it was simulated
            play([group], self._options.seed, seeds, self._simulate_until, deadline_s)
        self._map += groups
        return [
            (place, verdicts(group.points, group.samples))
            for place, group in zip(drawn, groups, strict=True)
            if group.runs
        ]
