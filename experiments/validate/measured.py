"""Measurements of a scenario on the emulator, in real seconds, and the files that store them.

A play takes most of a minute, and its simulation seconds at most. So plays are stored: an interrupted
comparison continues where it stopped, and one with a changed simulator plays nothing again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from emulator.emulation import Measurements
from emulator.result import RunResult, revision
from experiments.simulate.emulate import Emulated
from experiments.validate.calibrate import DRIFT, Reading, drift, mean_of
from scenario import Scenario
from simulator.machine_costs import MEASURED, MachineCosts
from simulator.spread import Spread, spread

_REQUEST_FIELDS = ("arrival_s", "sources", "refused", "fetch_s", "waits_s", "queue_s", "prefill_s", "ttft_s")
"""Fields stored of each request, for the analysis of differences; times are seconds of the emulation."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements of one run."""

    speed: float
    """Number of real seconds in one of the emulation."""
    blocks: dict[str, int]
    """Number of blocks by source."""
    ttft_s: Spread
    get_s: Spread
    admitted: int
    digests: int
    failed: int
    """Number of failed requests."""
    corrupt: int
    """Number of wrong blocks."""
    complaints: tuple[str, ...]
    """Reasons why the machine did not keep up; none if it did."""
    revision: str
    readings: tuple[Reading, ...] = ()
    """Readings of the machine before and after the play; none if it was not measured."""

    @property
    def costs(self) -> MachineCosts:
        """Return the costs of the machine that it was played on, or the usual ones if it was not measured."""
        return mean_of(self.readings).costs() if self.readings else MEASURED

    @property
    def drift(self) -> float:
        """Return the share by which the machine became slower during the play; negative
        if it became faster."""
        return drift(self.readings[0], self.readings[-1]) if self.readings else 0.0

    @property
    def drifted(self) -> bool:
        """Return whether the machine's speed changed by more than DRIFT during the play."""
        return abs(self.drift) > DRIFT

    @property
    def overloaded(self) -> bool:
        """Return whether the machine did not keep up, so that times don't count."""
        return bool(self.complaints)


def measured_of(emulated: Emulated, readings: Sequence[Reading] = ()) -> Measured:
    """Return the figures of a play; `readings` are those of the machine before and after."""
    run, speed = emulated.run, emulated.speed
    workers = emulated.raw.workers.values()
    ttfts_s = [r["ttft_s"] for worker in workers for r in worker["records"] if r["ttft_s"] is not None]
    gets_s = [ms / 1000 for worker in workers for ms in worker["get_ms"]]
    return Measured(
        speed,
        asdict(run.blocks),
        spread([speed * ttft_s for ttft_s in ttfts_s]),
        spread([speed * get_s for get_s in gets_s]),
        run.admitted,
        run.digests,
        run.failed,
        run.corrupt,
        tuple(run.complaints),
        revision(),
        tuple(readings),
    )


def load_play(path: Path, scenario: Scenario, sigma: float, speed: float) -> Measured | None:
    """Return the stored measurements of exactly this play, or None if the file has none."""
    try:
        record = json.loads(path.read_text())
        if _without_empty(record["play"]) != _without_empty(_play(scenario, sigma, speed)):
            return None
        stored = {"readings": []} | record["measured"]
        figures = {entry.name: stored[entry.name] for entry in fields(Measured)}
        readings = tuple(Reading(**each) for each in figures["readings"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    times = {name: Spread(**figures[name]) for name in ("ttft_s", "get_s")}
    return Measured(**figures | times | {"complaints": tuple(figures["complaints"]), "readings": readings})


def store_play(
    path: Path, scenario: Scenario, sigma: float, emulated: Emulated, readings: Sequence[Reading] = ()
) -> Measured:
    """Write a play to a file, with all requests and GETs and the machine before and
    after; return its figures."""
    measured = measured_of(emulated, readings)
    record = {
        "play": _play(scenario, sigma, emulated.speed),
        "measured": asdict(measured),
        "run": _shown(emulated.run),
        "requests": _requests(emulated.raw),
        "get_ms": {name: worker["get_ms"] for name, worker in emulated.raw.workers.items()},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = path.with_suffix(".part")
    whole.write_text(json.dumps(record))
    whole.replace(path)
    return measured


def _play(scenario: Scenario, sigma: float, speed: float) -> dict[str, Any]:
    """Return the description of a play; fields that have their defaults are left out, so
    new fields change nothing."""
    defaults: dict[str, Any] = asdict(Scenario())
    given = {
        table: {name: value for name, value in keys.items() if value != defaults[table][name]}
        if isinstance(keys, dict)
        else keys
        for table, keys in asdict(scenario).items()
    }
    described: dict[str, Any] = json.loads(json.dumps(given))
    return {"scenario": described, "sigma": sigma, "speed": speed}


def _without_empty(play: dict[str, Any]) -> dict[str, Any]:
    """Return the description without empty tables: an older file has fewer tables."""
    return play | {"scenario": {table: keys for table, keys in play["scenario"].items() if keys != {}}}


def _shown(run: RunResult) -> dict[str, Any]:
    return {name: value for name, value in asdict(run).items() if isinstance(value, int | float | list)}


def _requests(raw: Measurements) -> list[dict[str, Any]]:
    return [
        {"node": name} | {field: record[field] for field in _REQUEST_FIELDS}
        for name, worker in raw.workers.items()
        for record in worker["records"]
    ]
