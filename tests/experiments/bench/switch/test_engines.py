"""The embedded switch under each workload, for a moment. Needs root."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.bench.switch.engines import Switch
from experiments.bench.switch.load import LoadGenerator, Trial
from experiments.bench.switch.plan import encode
from experiments.bench.switch.workloads import BLOCKS, FRAGMENTS, NODES, WORKLOADS
from topologies.engines import make_engine

pytestmark = [
    pytest.mark.slow,
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
CPU = str(min(os.sched_getaffinity(0)))
RATE_PER_S, SECONDS = 2000, 0.1


@pytest.fixture(scope="module")
def switch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Switch]:
    with Switch(make_engine("embedded"), tmp_path_factory.mktemp("switch"), CPU, CPU) as running:
        yield running


def run(switch: Switch, name: str, directory: Path) -> Trial:
    (workload,) = (one for one in WORKLOADS if one.name == name)
    plan = directory / "plan"
    plan.write_bytes(encode(workload.make_plan(1)))
    switch.prepare(workload)
    return LoadGenerator(switch.cables, CPU).run(plan, workload.cables, RATE_PER_S, SECONDS)


def test_the_pool_is_full(switch: Switch) -> None:
    assert switch.control.fills() == BLOCKS * FRAGMENTS


def test_hits_are_served_and_never_forwarded(switch: Switch, tmp_path: Path) -> None:
    seen = run(switch, "hits", tmp_path)
    assert seen.answered + seen.late == seen.sent  # fewer than were asked for where the machine is busy
    assert 0 < seen.sent <= RATE_PER_S * SECONDS
    assert seen.forwarded == 0


def test_misses_go_to_the_storage_node_and_back(switch: Switch, tmp_path: Path) -> None:
    seen = run(switch, "misses", tmp_path)
    assert seen.answered + seen.late == seen.forwarded == seen.sent


def test_one_get_of_four_is_forwarded_and_all_are_answered(switch: Switch, tmp_path: Path) -> None:
    seen = run(switch, "merges", tmp_path)
    assert seen.answered + seen.late == seen.sent
    assert seen.sent / NODES <= seen.forwarded < seen.sent
    assert seen.repeated == 0


def test_plain_ipv4_is_forwarded(switch: Switch, tmp_path: Path) -> None:
    seen = run(switch, "l3", tmp_path)
    assert seen.answered + seen.late == seen.sent


def test_writes_leave_the_pool_as_it_was(switch: Switch, tmp_path: Path) -> None:
    assert switch.control.writes_per_s(64, FRAGMENTS) > 0
    assert run(switch, "hits", tmp_path).answered > 0
    assert switch.control.fills() == BLOCKS * FRAGMENTS


def test_memory_is_that_of_a_process_with_registers(switch: Switch) -> None:
    assert switch.resident_bytes() > switch.control.register_bytes() > BLOCKS * FRAGMENTS * 512
