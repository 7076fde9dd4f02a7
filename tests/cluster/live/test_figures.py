"""On a quiet machine: figures over servers are those of one machine.

`python -m pytest -n 0 -m "cluster and slow" -s tests/cluster/live` shows them; it takes a quarter of an hour.
"""

import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.runs import run
from tests.cluster.servers import TestServers

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.xdist_group("cluster"),
    pytest.mark.timeout(3600),
]
ROUNDS = 3
READERS = (
    "--shape", "swarm:sub_agents=5,within_ms=50,lead_ms=2000", "--requests", "30",
    "--gpu-blocks", "8", "--dram-blocks", "16", "--modes", "pool",
    "--topo", "leafspine", "--hosts", "6", "--stores", "3", "--leaves", "3", "--spines", "1",
    "--scale", "20000", "--speed", "1",
)  # fmt: skip
"""Five readers of the same blocks at a time, so that there is something to merge."""
COUNTS = ("requests", "completed", "failed", "corrupt")
FIGURES = ("merged", "storage_egress_bytes", "get_ms", "ttft_ms")
MOST_APART = 0.05


def figure(measured: Mapping[str, Any], name: str) -> float:
    value = measured[name]
    return float(value["p50"] if isinstance(value, dict) else value)


def test_figures_over_three_servers_are_those_of_one_machine(servers: TestServers, tmp_path: Path) -> None:
    file = servers.write_file(("a", "b", "c"))
    alone, several = [], []
    for number in range(ROUNDS):  # in turns, so that what changes on the machine meets both alike
        alone.append(run(tmp_path / f"alone-{number}", READERS, None))
        several.append(run(tmp_path / f"several-{number}", READERS, file))
    assert {name: {one[name] for one in several} for name in COUNTS} == {
        name: {one[name] for one in alone} for name in COUNTS
    }
    apart = {}
    for name in FIGURES:
        here, there = ([figure(one, name) for one in runs] for runs in (alone, several))
        print(f"{name}: one machine {here}, three servers {there}")
        allowed = max(MOST_APART * statistics.median(here), max(here) - min(here))
        apart[name] = abs(statistics.median(there) - statistics.median(here)) <= allowed
    complaints = [complaint for one in (*alone, *several) for complaint in one["complaints"]]
    if complaints:
        pytest.skip(f"figures don't count where the machine does not keep up: {complaints[0]}")
    assert all(apart.values()), apart
