"""Samples of memory, open files and namespaces of a cluster's processes, and their growth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import psutil

from experiments.faults.cluster import Cluster
from topologies.network import Network


@dataclass(frozen=True, slots=True)
class Sample:
    """Sample of one process at one time."""

    pid: int
    memory_bytes: int
    """Resident memory."""
    files: int
    """Number of open files, sockets and pipes."""


def sample(running: Cluster) -> dict[str, Sample]:
    """Return a sample of all processes that live, by name."""
    taken = {}
    for pid, name in processes_of(running).items():
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            taken[name] = Sample(pid, process.memory_info().rss, process.num_fds())
    return taken


def growth(samples: Sequence[Mapping[str, Sample]]) -> dict[str, float]:
    """Return the growth of memory, as a share, of each process that is in all samples.

    It compares the mean of the last third with that of the first third.
    """
    third = max(1, len(samples) // 3)
    grown = {}
    for name, own in _lasting(samples):
        memory = [one.memory_bytes for one in own]
        grown[name] = fmean(memory[-third:]) / fmean(memory[:third]) - 1
    return grown


def more_files(samples: Sequence[Mapping[str, Sample]]) -> dict[str, int]:
    """Return the growth of open files of each process that is in all samples.

    It is the least number in the last third, less the greatest in the first third; it may be negative.
    """
    third = max(1, len(samples) // 3)
    more = {}
    for name, own in _lasting(samples):
        files = [one.files for one in own]
        more[name] = min(files[-third:]) - max(files[:third])
    return more


def _lasting(samples: Sequence[Mapping[str, Sample]]) -> Iterator[tuple[str, list[Sample]]]:
    for name, first in samples[0].items():
        own = [one[name] for one in samples if name in one and one[name].pid == first.pid]
        if len(own) == len(samples):
            yield name, own


def processes_of(running: Cluster) -> dict[int, str]:
    """Return the names of a cluster's processes, by their process id."""
    lines = [running.controller, *running.stores.values(), *running.alive_nodes(), *running.proxies]
    named = {one.process.pid: one.name for one in lines}
    named |= {process.pid: name for name, process in running.network.switch_processes.items()}
    return named


def namespaces_of(network: Network | None = None) -> list[str]:
    """Return the network namespaces of a network's hosts and switches, or of all processes."""
    if network is not None:
        pids = [node.pid for node in (*network.mininet.hosts, *network.mininet.switches)]
    else:
        pids = psutil.pids()
    found = set()
    for pid in pids:
        with suppress(OSError):
            found.add(str(Path(f"/proc/{pid}/ns/net").readlink()))
    return sorted(found)
