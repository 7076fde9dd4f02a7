"""Measurement of the machine's speed at this moment, and the simulator's machine that follows from it.

The speed of one machine varies. In some hours its hosts took 0.7 times as long as when the costs in
`MEASURED` were measured, in others 1.4 times; rests and entries did not change with them. So the machine is
measured before and after each play, in about twelve seconds, and the play is compared with a simulator that
has these costs. Some costs cannot be measured separately in that time: a switch that is awake, hops, a
block's own costs. They are scaled as the hosts' costs are.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import fmean, geometric_mean, linear_regression, median
from typing import Final, TypeVar

from commands.errors import ExperimentError
from experiments.validate.control.measure import Bench
from simulator.machine_costs import MEASURED, MachineCosts

ROUNDS: Final = 3
FRAGMENTS: Final = 8
"""Number of fragments of 512 bytes in a block of the measurement."""
CHAIN: Final = 6
"""Number of blocks that are asked for after a rest."""
LISTS: Final = (2, 24, 64)
"""Numbers of digests in the lists whose entries are waited for."""
LISTS_EACH: Final = 5
SWITCH_RESTS: Final = 7
"""Number of measured rests of the switch."""
DRIFT: Final = 0.2
"""Relative change of the hosts' or entries' times during a play above which the machine drifted."""
_BENCH: Final = ("-m", "hostlib.tools.bench", "--receive-one-by-one", "--block-bytes", "4096")


@dataclass(frozen=True, slots=True)
class Reading:
    """Times of the machine, in seconds; the defaults go with `MEASURED`."""

    node_alone_s: float = 13.1e-6
    """CPU seconds of a node for a fragment, one block of 8 at a time."""
    store_alone_s: float = 8.7e-6
    node_chain_s: float = 3.1e-6
    """CPU seconds of a node for a fragment in chains of 24 blocks."""
    store_chain_s: float = 2.2e-6
    node_rest_s: float = 0.64e-3
    """CPU seconds that a chain of 6 blocks costs a node more after a rest of 100 ms, its timer included."""
    get_rest_s: float = 0.33e-3
    """Seconds that a GET of that chain takes longer, from its first request on, if node and store rested."""
    switch_rest_s: float = MEASURED.switch_cold_s
    """Seconds that a packet takes longer through a switch that rested as long."""
    entries_s: float = 2.5e-3
    """Seconds from a list of digests to its entries, without the part for each digest."""
    entry_digest_s: float = 56e-6
    """Seconds from a list to its entries for each digest in it."""

    @property
    def slower(self) -> float:
        """Return how many times as long busy hosts take as with `MEASURED`."""
        return geometric_mean(
            getattr(self, name) / getattr(TYPICAL_READING, name)
            for name in ("node_alone_s", "store_alone_s", "node_chain_s", "store_chain_s")
        )

    def entries_after_s(self, digests: int) -> float:
        """Return the seconds from a list of `digests` digests to its entries."""
        return self.entries_s + digests * self.entry_digest_s

    def costs(self) -> MachineCosts:
        """Return the simulator's machine."""
        rest, slower = self.get_rest_s / TYPICAL_READING.get_rest_s, self.slower
        return MachineCosts(
            hop_s=MEASURED.hop_s * slower,
            slowdown=MEASURED.slowdown,
            switch_wake_s=MEASURED.switch_wake_s * slower,
            switch_packet_s=MEASURED.switch_packet_s * slower,
            # A block on its own costs a storage node two wake-ups more than one of many.
            host_wake_s=(self.store_alone_s - self.store_chain_s) * FRAGMENTS / 2,
            node_fragment_s=self.node_chain_s,
            store_fragment_s=self.store_chain_s,
            rest_s=MEASURED.rest_s,
            switch_cold_s=self.switch_rest_s,
            node_cold_s=MEASURED.node_cold_s * self.node_rest_s / TYPICAL_READING.node_rest_s,
            node_answer_cold_s=MEASURED.node_answer_cold_s * rest,
            store_cold_s=MEASURED.store_cold_s * rest,
            node_block_s=MEASURED.node_block_s * slower,
            store_block_s=MEASURED.store_block_s * slower,
            index_s=MEASURED.index_s * slower,
            entries_s=self.entries_s,
            entry_digest_s=self.entry_digest_s,
        )


TYPICAL_READING: Final = Reading()
TYPICAL_LIST: Final = 20
"""Number of digests in a typical list."""
Played = TypeVar("Played")
Calibrate = Callable[[], Reading]
"""Function that measures the machine."""


def mean_of(readings: Sequence[Reading]) -> Reading:
    """Return the mean of each figure; a play's machine is the mean of before and after."""
    names = [entry.name for entry in fields(Reading)]
    return Reading(**{name: fmean(getattr(each, name) for each in readings) for name in names})


def drift(before: Reading, after: Reading) -> float:
    """Return the share by which hosts, or the entries of a typical list, took longer after a play.

    It is the larger change of the two, and negative if they took less time.
    """
    changes = (
        after.slower / before.slower - 1,
        after.entries_after_s(TYPICAL_LIST) / before.entries_after_s(TYPICAL_LIST) - 1,
    )
    return max(changes, key=abs)


def calibrate() -> Reading:
    """Measure the machine in about twelve seconds; needs root. Raises ExperimentError."""
    rounds = [_Round.measured() for _ in range(ROUNDS)]
    hosts = {entry.name: median(getattr(each, entry.name) for each in rounds) for entry in fields(_Round)}
    return Reading(**hosts, **_control())


@dataclass(frozen=True, slots=True)
class _Round:
    """Times of hosts in one round; the fields are those of `Reading`."""

    node_alone_s: float
    store_alone_s: float
    node_chain_s: float
    store_chain_s: float
    node_rest_s: float
    get_rest_s: float

    @classmethod
    def measured(cls) -> _Round:
        """Measure once, in about two seconds."""
        alone, chain, awake = _Hosts.of(1, 2000), _Hosts.of(24, 200), _Hosts.of(CHAIN, 400)
        rested = _Hosts.of(CHAIN, 8, pause_ms=100)
        return cls(
            alone.node_s,
            alone.store_s,
            chain.node_s,
            chain.store_s,
            max(0.0, rested.node_s - awake.node_s) * CHAIN * FRAGMENTS,
            max(0.0, rested.get_s - awake.get_s),
        )


@dataclass(frozen=True, slots=True)
class _Hosts:
    """CPU time of both ends for a fragment, and the median GET, in seconds."""

    node_s: float
    store_s: float
    get_s: float

    @classmethod
    def of(cls, chain: int, chains: int, pause_ms: int = 0) -> _Hosts:
        """Measure `chains` chains of `chain` blocks each, with a pause between them."""
        arguments = ("--chain", f"{chain}", "--blocks", f"{chain * chains}", "--pause-ms", f"{pause_ms}")
        done = subprocess.run(
            (sys.executable, *_BENCH, *arguments), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise CalibrationError(f"hosts could not be measured: {done.stderr.strip()[-500:]}")
        output = json.loads(done.stdout)
        return cls(
            output["client_us_per_fragment"] / 1e6,
            output["storage_us_per_fragment"] / 1e6,
            output["block_ms"]["p50"] / 1e3,
        )


class Calibrations:
    """Measurements of the machine before and after each of several consecutive plays."""

    def __init__(self, calibrate: Calibrate | None) -> None:
        """Take the function that measures; with None, nothing is measured."""
        self._calibrate = calibrate
        self._last: Reading | None = None
        """Reading after the last play, which is also the one before the next."""

    def around(self, play: Callable[[], Played]) -> tuple[Played, tuple[Reading, ...]]:
        """Play and return the result, with the machine's readings before and after."""
        if self._calibrate is None:
            return play(), ()
        before = self._last or self._calibrate()
        played = play()
        self._last = self._calibrate()
        return played, (before, self._last)


class CalibrationError(ExperimentError):
    """The machine could not be measured."""


def _control() -> dict[str, float]:
    """Measure switch and controller; return fields of `Reading`."""
    with (
        tempfile.TemporaryDirectory(prefix="weir-calibrate-") as directory,
        Bench(Path(directory), LISTS_EACH * sum(LISTS)) as bench,
    ):
        rest_s = bench.rest_s(SWITCH_RESTS)
        found = bench.entries(LISTS_EACH, LISTS)
    line = linear_regression([each.digests for each in found], [each.last_ms for each in found])
    slope_ms = max(0.0, line.slope)
    base_ms = fmean(each.last_ms - slope_ms * each.digests for each in found)
    return {
        "switch_rest_s": max(0.0, rest_s),
        "entries_s": max(0.0, base_ms) / 1000,
        "entry_digest_s": slope_ms / 1000,
    }
