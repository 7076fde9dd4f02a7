"""Choice of the sigma that this machine can carry now, from the CPU time of a fragment and the
fragments of a run.

An emulation counts only while the machine keeps up. The larger sigma, the fewer fragments a block has. The
smallest sigma that the machine can carry is the most detailed one that still counts.
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
"""Number of blocks in the measurement, which takes about two seconds in all."""
BENCH_LINK_MBIT_S = 40
"""Link rate of a node of 200 Gbit/s with sigma 5,000: hosts hand datagrams to the kernel as
on such a link."""
BENCH_TIMEOUT_S = 60.0
PATH_FACTOR = 6.5
"""CPU time of a fragment's whole way, with the switch and the kernel's links, over that of
its two ends alone.

With the compiled core, the two ends take 2.4 us and the rest about 13 us. If the factor is too small, all is
played again; if it is too large, sigma is larger than it need be.
"""
BLOCK_FRAGMENTS = 25.0
"""CPU time that a block takes beside its fragments, in fragments: keys, look-ups,
probe, futures, table entry."""
MOST_MEAN_SHARE = 0.35
"""Largest share of the idle CPU that a run may take on average; bursts need the rest."""
MOST_BURST_SHARE = 0.8
"""Largest share of the idle CPU that the busiest second may take."""
SIGMA_STEP = 2.0


BUSY_CORES = 0.2
"""Number of cores from which on a process is named as one that keeps the machine busy."""
MOST_NAMED = 3
LEAST_CORES = 0.1
"""Number of cores that count as idle on any machine, however busy it is."""
MANY_PROCESSES = 32
"""Number of hosts and switches above which the network's background load is measured.

In a smaller network it is a few hundredths of a core.
"""


class CapacityError(ExperimentError):
    """A machine that could not be measured."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """CPU that the machine has left."""

    idle_cores: float
    fragment_us: float
    """CPU time in microseconds that a fragment takes at its two ends."""
    cores: float = 0.0
    """Number of cores that this process may use, busy or not."""
    others: tuple[str, ...] = ()
    """Names of the processes that take the rest, the busiest first."""
    background_cores: float = 0.0
    """Number of idle cores that the started network takes without requests."""

    @property
    def fragments_per_s(self) -> float:
        """Return how many fragments a second would take all idle CPU beside the started network.

        Each block counts as BLOCK_FRAGMENTS more.
        """
        left = max(LEAST_CORES, self.idle_cores - self.background_cores)
        return left / (1e-6 * self.fragment_us * PATH_FACTOR)


@dataclass(frozen=True, slots=True)
class Demand:
    """Blocks a second that a run moves at most: all that its requests name, fetched or written."""

    mean_blocks_s: float
    busiest_blocks_s: float
    """Blocks a second in the busiest second."""
    link_bit_s: float
    """Real rate in bit/s of the links of all hosts that answer GETs, both directions: no
    second can move more."""

    def fragments_per_s(self, scale: ScaleModel, real_block_bytes: float) -> tuple[float, float]:
        """Return the fragments a second under a scale, on average and in the busiest second."""
        fragments = scale.block_bytes(real_block_bytes) // scale.fragment_bytes
        limit = scale.rate_bit_s(self.link_bit_s) / (8 * VALUE_FRAME_BYTES)
        return min(limit, self.mean_blocks_s * fragments), min(limit, self.busiest_blocks_s * fragments)


def demand_of(requests: Iterable[Request], link_bit_s: float) -> Demand:
    """Return the demand of requests whose arrival times are those of the run."""
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
        figures = json.loads(done.stdout)
        cost_us = figures["client_us_per_fragment"] + figures["storage_us_per_fragment"]
    except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        raise CapacityError(
            f"the machine could not be measured ({error}): give a SCALE, such as SCALE=20000"
        ) from None
    return Capacity(max(LEAST_CORES, idle_cores), float(cost_us), usable_cores(), others)


def sample_load() -> tuple[float, tuple[str, ...]]:
    """Watch the machine for IDLE_SAMPLE_S; return how many cores are idle, and the
    processes that take most."""
    share, before = BusyShare(find_quota()), _cpu_s()
    time.sleep(IDLE_SAMPLE_S)
    return usable_cores() * (1 - share.take()), busiest(before, _cpu_s())


def _cpu_s() -> dict[int, tuple[str, float]]:
    """Return the name and the CPU seconds so far of every process, by process id."""
    found = {}
    for process in psutil.process_iter():
        try:
            with process.oneshot():
                times = process.cpu_times()
                found[process.pid] = process.name(), times.user + times.system
        except psutil.Error:
            continue  # it has ended, or may not be read
    return found


def busiest(before: Mapping[int, tuple[str, float]], now: Mapping[int, tuple[str, float]]) -> tuple[str, ...]:
    """Return the processes that took BUSY_CORES or more and how much, in words; MOST_NAMED at most."""
    took = {
        pid: (used_s - before[pid][1]) / IDLE_SAMPLE_S for pid, (_, used_s) in now.items() if pid in before
    }
    busy = sorted((pid for pid, cores in took.items() if cores >= BUSY_CORES), key=lambda pid: -took[pid])
    return tuple(f"{now[pid][0]} ({took[pid]:.1f} cores, process {pid})" for pid in busy[:MOST_NAMED])


def choose_sigma(
    capacity: Capacity, demand: Demand, real_block_bytes: float, least: float, speed: float
) -> float:
    """Return the smallest of `least`, twice that, ... that the machine can carry; a
    block keeps one fragment."""
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


if __name__ == "__main__":  # started by the agent of another server
    print(json.dumps(asdict(measure())))
