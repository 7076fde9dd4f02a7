"""What a play says of the machine, and the limit that it is compared with."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from emulator.emulation import Measurements
from emulator.machine import CpuTime, CpuUse
from experiments.bench.emulation.__main__ import record
from experiments.bench.emulation.measure import ROLES, Blast, bare_blast, summarize


def host(received: int, completed: int = 5) -> dict[str, Any]:
    return {
        "requests": 5,
        "node": {"completed": completed},
        "endpoint": {"received": received, "dropped": 0},
        "process": {"timer_late_ms": {"p99": 1.0}},
    }


def measured(**workers: dict[str, Any]) -> Measurements:
    usage = dict.fromkeys(ROLES, CpuTime(0.02, 0.01))
    return Measurements(workers=workers, wall_s=10.0, usage=usage, usage_s=10.0, cpu=CpuUse(0.4, 0.0))


def test_times_are_a_fragments_and_rates_a_seconds() -> None:
    played = summarize(5000.0, 3.0, measured(node1=host(1500), node2=host(500)))
    assert played.kept_up
    assert played.fragments_per_s == 200.0
    assert played.requests_per_s == 1.0
    assert played.program_us == dict.fromkeys(ROLES, 10.0)
    assert played.kernel_us == dict.fromkeys(ROLES, 5.0)
    assert played.total_us == pytest.approx(60.0)


def test_a_play_that_did_not_serve_every_request_does_not_count() -> None:
    played = summarize(5000.0, 3.0, measured(node1=host(100, completed=3)))
    assert played.complaints == ("2 requests were not served",)


def test_the_history_gets_a_line_for_each_size_that_kept_up(tmp_path: Path) -> None:
    good = summarize(5000.0, 3.0, measured(node1=host(100)))
    bad = summarize(160_000.0, 3.0, measured(node1=host(100, completed=0)))
    path = tmp_path / "history.csv"
    assert record({32: bad}, Blast(1e6, 1.0), path) == 0
    assert not path.exists()
    for _ in range(2):
        assert record({8: good, 32: bad}, Blast(1e6, 1.0), path) == 1
    head, *lines = path.read_text().splitlines()
    assert [line.split(",")[2] for line in lines] == ["8", "8"]
    assert len(head.split(",")) == len(lines[0].split(","))


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_datagrams_pass_between_two_namespaces() -> None:
    blast = bare_blast(0.2)
    assert blast.datagrams_per_s > 0
    assert blast.cpu_us > 0
