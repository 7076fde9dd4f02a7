"""What the emulator measured of a scenario, in real seconds, and files that keep it.

A play takes most of a minute and the simulator's side seconds at most: what was played is kept, so that a
comparison that was interrupted goes on where it was, and one with a changed simulator plays nothing again.
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

_TOLD = ("arrival_s", "sources", "refused", "fetch_s", "waits_s", "queue_s", "prefill_s", "ttft_s")
"""Of each request, for whoever looks into a difference; seconds of the emulation."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One run."""

    speed: float
    """Real seconds in one of the emulation."""
    blocks: dict[str, int]
    """By where they were found."""
    ttft_s: Spread
    get_s: Spread
    admitted: int
    digests: int
    failed: int
    """Requests."""
    corrupt: int
    """Blocks."""
    complaints: tuple[str, ...]
    """Why the machine did not keep up; none: it did."""
    revision: str
    readings: tuple[Reading, ...] = ()
    """Of the machine, before the play and after it; none: it was not measured."""

    @property
    def costs(self) -> MachineCosts:
        """Of the machine that it was played on; of one that was not measured, what others were."""
        return mean_of(self.readings).costs() if self.readings else MEASURED

    @property
    def drift(self) -> float:
        """By which share the machine became slower during the play (negative: faster)."""
        return drift(self.readings[0], self.readings[-1]) if self.readings else 0.0

    @property
    def drifted(self) -> bool:
        """Return whether the machine was another one after the play than before."""
        return abs(self.drift) > DRIFT

    @property
    def overloaded(self) -> bool:
        """Return whether the machine did not keep up, so that times don't count."""
        return bool(self.complaints)


def measured_of(emulated: Emulated, readings: Sequence[Reading] = ()) -> Measured:
    """Return the figures of a play; `readings`: of the machine, before and after."""
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


def kept(path: Path, scenario: Scenario, sigma: float, speed: float) -> Measured | None:
    """Return what a file has of exactly this play; None: nothing."""
    try:
        record = json.loads(path.read_text())
        if _without_empty(record["play"]) != _without_empty(_play(scenario, sigma, speed)):
            return None
        told = {"readings": []} | record["measured"]
        figures = {entry.name: told[entry.name] for entry in fields(Measured)}
        readings = tuple(Reading(**each) for each in figures["readings"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    times = {name: Spread(**figures[name]) for name in ("ttft_s", "get_s")}
    return Measured(**figures | times | {"complaints": tuple(figures["complaints"]), "readings": readings})


def keep(
    path: Path, scenario: Scenario, sigma: float, emulated: Emulated, readings: Sequence[Reading] = ()
) -> Measured:
    """Write a play to a file, with all of its requests and GETs, and the machine before and after."""
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
    """What was played; of the scenario what differs from the defaults: a new field changes nothing."""
    usual: dict[str, Any] = asdict(Scenario())
    given = {
        table: {name: value for name, value in told.items() if value != usual[table][name]}
        if isinstance(told, dict)
        else told
        for table, told in asdict(scenario).items()
    }
    described: dict[str, Any] = json.loads(json.dumps(given))
    return {"scenario": described, "sigma": sigma, "speed": speed}


def _without_empty(play: dict[str, Any]) -> dict[str, Any]:
    """Without the tables that are as usual: a play is of when there were fewer."""
    return play | {"scenario": {table: told for table, told in play["scenario"].items() if told != {}}}


def _shown(run: RunResult) -> dict[str, Any]:
    return {name: value for name, value in asdict(run).items() if isinstance(value, int | float | list)}


def _requests(raw: Measurements) -> list[dict[str, Any]]:
    return [
        {"node": name} | {told: record[told] for told in _TOLD}
        for name, worker in raw.workers.items()
        for record in worker["records"]
    ]
