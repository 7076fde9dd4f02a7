"""Which sigma this machine can carry now: what a fragment costs it, and how many of them the run would move.

A scale model counts only while the machine keeps up. The larger sigma, the fewer fragments a block has; the
smallest one that leaves this machine enough is the most detailed model that still counts.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

import psutil

from commands.cores import BusyShare, find_quota, usable_cores
from commands.errors import ExperimentError
from hostlib.protocol.wire import VALUE_BYTES, VALUE_FRAME_BYTES
from workload.scale import ScaleModel
from workload.trace import Request

IDLE_SAMPLE_S = 0.5
BENCH_BLOCKS = 2000
"""Some two seconds for the measurement in all."""
BENCH_LINK_MBIT_S = 40
"""Of a node of 200 Gbit/s with sigma 5,000: hosts hand datagrams to the kernel as on such a link."""
BENCH_TIMEOUT_S = 60.0
PATH_FACTOR = 6.5
"""CPU of a fragment's whole way, with the switch and the kernel's links, over that of its two ends alone.
Some 13 us beside the 2.4 of the compiled core. Too little: all is played again; too much: a larger sigma."""
BLOCK_FRAGMENTS = 25.0
"""What a block costs beside its fragments, in fragments: keys, look-ups, its probe, futures, an entry."""
MOST_MEAN_SHARE = 0.35
"""Of what is idle now: the mean of a run may take. Bursts need the rest."""
MOST_BURST_SHARE = 0.8
"""The busiest second may take."""
SIGMA_STEP = 2.0


BUSY_CORES = 0.2
"""From here on a process is named as one that keeps the machine busy."""
MOST_NAMED = 3
LEAST_CORES = 0.1
"""That a machine has left at the least, however busy it is."""
MANY_PROCESSES = 32
"""Hosts and switches of a network whose background is worth measuring; below that it is some hundredths of a
core."""


class CapacityError(ExperimentError):
    """The machine could not be measured."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """What the machine has left."""

    idle_cores: float
    fragment_us: float
    """CPU time that a fragment takes at its two ends."""
    cores: float = 0.0
    """What this process may use, busy or not."""
    others: tuple[str, ...] = ()
    """Which processes take the rest, the busiest first."""
    background_cores: float = 0.0
    """What the started network takes of the idle cores while nobody asks for anything."""

    @property
    def fragments_per_s(self) -> float:
        """Fragments a second that would take all that is idle beside the started network; a block counts as
        BLOCK_FRAGMENTS besides."""
        left = max(LEAST_CORES, self.idle_cores - self.background_cores)
        return left / (1e-6 * self.fragment_us * PATH_FACTOR)


@dataclass(frozen=True, slots=True)
class Demand:
    """Blocks a second that a run moves at the most: all that its requests name, fetched or written."""

    mean_blocks_s: float
    busiest_blocks_s: float
    """Of the busiest second."""
    link_bit_s: float
    """Real rate of the links of all who answer GETs together, both directions: no second can move more."""

    def fragments_per_s(self, scale: ScaleModel, real_block_bytes: float) -> tuple[float, float]:
        """(mean, busiest second) under a scale."""
        fragments = scale.block_bytes(real_block_bytes) // scale.fragment_bytes
        limit = scale.rate_bit_s(self.link_bit_s) / (8 * VALUE_FRAME_BYTES)
        return min(limit, self.mean_blocks_s * fragments), min(limit, self.busiest_blocks_s * fragments)


def demand_of(requests: Iterable[Request], link_bit_s: float) -> Demand:
    """Of requests whose times are already those of the run."""
    seconds: Counter[int] = Counter()
    for request in requests:
        seconds[int(request.arrival_s)] += len(request.blocks)
    if not seconds:
        return Demand(0.0, 0.0, link_bit_s)
    duration_s = max(seconds) - min(seconds) + 1
    return Demand(sum(seconds.values()) / duration_s, max(seconds.values()), link_bit_s)


def measure() -> Capacity:
    """Measure the machine for about two seconds; raises CapacityError."""
    idle_cores, others = sample_load()
    given = {"--blocks": BENCH_BLOCKS, "--link-mbit-s": BENCH_LINK_MBIT_S}
    arguments = [part for name, value in given.items() for part in (name, str(value))]
    command = [sys.executable, "-m", "hostlib.tools.bench", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=BENCH_TIMEOUT_S, check=True)
        said = json.loads(done.stdout)
        cost_us = said["client_us_per_fragment"] + said["storage_us_per_fragment"]
    except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        raise CapacityError(
            f"the machine could not be measured ({error}): give a SCALE, such as SCALE=20000"
        ) from None
    return Capacity(max(LEAST_CORES, idle_cores), float(cost_us), usable_cores(), others)


def sample_load() -> tuple[float, tuple[str, ...]]:
    """Watch the machine for IDLE_SAMPLE_S; return how many cores are idle, and which processes take most."""
    share, before = BusyShare(find_quota()), _cpu_s()
    time.sleep(IDLE_SAMPLE_S)
    return usable_cores() * (1 - share.take()), busiest(before, _cpu_s())


def _cpu_s() -> dict[int, tuple[str, float]]:
    """Name and CPU time so far of every process."""
    found = {}
    for process in psutil.process_iter():
        try:
            with process.oneshot():
                times = process.cpu_times()
                found[process.pid] = process.name(), times.user + times.system
        except psutil.Error:
            continue  # it has ended, or is nobody's business
    return found


def busiest(before: Mapping[int, tuple[str, float]], now: Mapping[int, tuple[str, float]]) -> tuple[str, ...]:
    """Name the processes that took BUSY_CORES or more, and how much; MOST_NAMED at most."""
    took = {
        pid: (used_s - before[pid][1]) / IDLE_SAMPLE_S for pid, (_, used_s) in now.items() if pid in before
    }
    busy = sorted((pid for pid, cores in took.items() if cores >= BUSY_CORES), key=lambda pid: -took[pid])
    return tuple(f"{now[pid][0]} ({took[pid]:.1f} cores, process {pid})" for pid in busy[:MOST_NAMED])


def choose_sigma(
    capacity: Capacity, demand: Demand, real_block_bytes: float, least: float, speed: float
) -> float:
    """Return the smallest of `least`, twice that, ... that the machine can carry; a block keeps one
    fragment."""
    sigma = least
    while real_block_bytes / sigma > 2 * VALUE_BYTES:
        mean, busiest = demand.fragments_per_s(ScaleModel(sigma, speed, VALUE_BYTES), real_block_bytes)
        mean += BLOCK_FRAGMENTS * demand.mean_blocks_s
        busiest += BLOCK_FRAGMENTS * demand.busiest_blocks_s
        most = capacity.fragments_per_s
        if mean <= MOST_MEAN_SHARE * most and busiest <= MOST_BURST_SHARE * most:
            break
        sigma *= SIGMA_STEP
    return sigma


if __name__ == "__main__":  # on another server, whose agent was asked for it
    print(json.dumps(asdict(measure())))
