"""From measurements to points, findings, plots and the summary."""

import json
from pathlib import Path
from typing import Any

import pytest

from emulator.machine import CpuUse
from experiments.incast.emulation import Measurements
from experiments.incast.plots import draw
from experiments.incast.report import findings
from experiments.incast.result import (
    CONTROL_COUNTS,
    CONTROL_MESSAGES,
    SOURCES,
    Point,
    evaluate,
    jain,
    write_summary,
)
from experiments.incast.scenario import Case
from experiments.incast.table import markdown
from hostlib.protocol.wire import VALUE_FRAME_BYTES

FRAGMENTS = 4
KEYS = (b"a", b"b")


def report(*block_ms: float, **counts: Any) -> dict[str, Any]:
    zeros = dict.fromkeys((*SOURCES, "retransmits", "corrupt", "late", "dropped", "late_ms"), 0)
    return {**zeros, "errors": {}, "block_ms": list(block_ms), **counts}


def point(mode: str = "both", n: int = 2, copies: float = 1.0, slower: float = 1.0, **measured: Any) -> Point:
    nodes = [f"node{index}" for index in range(1, n + 1)]
    bursts = [{node: report(10 * slower, 20 * slower) for node in nodes} for _ in range(2)]
    control = dict.fromkeys((*CONTROL_MESSAGES, *CONTROL_COUNTS), 2)
    egress_bytes = round(copies * 2 * len(KEYS) * FRAGMENTS * VALUE_FRAME_BYTES)
    values: dict[str, Any] = {"bursts": bursts, "storage_egress_bytes": egress_bytes, "controller": control}
    values |= measured
    case = Case(mode, "same", n, [{node: [KEYS] for node in nodes}] * 2)
    return evaluate(case, Measurements(**values), FRAGMENTS)


def test_a_point_has_the_figures_of_its_bursts() -> None:
    made = point(copies=1.5)
    assert (made.copies, made.fairness, made.overloaded) == (1.5, 1.0, False)
    assert (made.block_ms.p50, made.block_ms.p99) == (20, 20)
    assert set(made.nodes) == {"node1", "node2"}
    assert made.control_messages == 2 * len(CONTROL_MESSAGES)


@pytest.mark.parametrize(
    ("measured", "complaint"),
    [
        (
            {"cpu": CpuUse(0.99, 1.0), "bursts": [{"node1": report(1.0, late_ms=12), "node2": report(1.0)}]},
            "CPU",
        ),
        ({"store_drops": 3}, "socket of the store"),
        ({"bursts": [{"node1": report(1.0, late_ms=80), "node2": report(1.0)}]}, "timers"),
        ({"bursts": [{"node1": report(1.0), "node2": report(1.0, dropped=1)}]}, "socket of node2"),
    ],
)
def test_a_machine_that_did_not_keep_up_is_reported(measured: dict[str, Any], complaint: str) -> None:
    made = point(**measured)
    assert made.overloaded
    assert complaint in made.complaints[0]


def test_blocks_that_did_not_arrive_are_counted_by_error() -> None:
    failed = report(1.0, errors={"TransferTimeoutError": 1})
    made = point(bursts=[{"node1": failed, "node2": report(1.0)}, {"node1": failed, "node2": report(1.0)}])
    assert made.errors == {"TransferTimeoutError": 2}


def test_fairness() -> None:
    assert jain([1, 1, 1, 1]) == 1
    assert jain([1, 0, 0, 0]) == 0.25
    assert jain([0, 0]) == 1


def test_findings_leave_out_what_does_not_count() -> None:
    points = [
        point("none", n=16, copies=16, slower=12),
        point("both", n=16),
        point("merge", n=16, copies=1.1),
    ]
    assert any("12.0 times less" in line for line in findings(points))
    assert any("merge: the same blocks left the storage node 1.10 times" in line for line in findings(points))
    overloaded = [point("both", n=16, store_drops=1)]
    assert findings(overloaded) == []


def test_the_table_has_a_line_a_point() -> None:
    head, _, *rows = markdown([point("none", n=2), point("both", n=1)]).splitlines()
    assert [row.split(" | ")[2] for row in rows] == ["both", "none"]
    assert {line.count("|") for line in (head, *rows)} == {head.count("|")}


def test_summary_and_plots(tmp_path: Path) -> None:
    points = [point("none", n=1), point("none", n=2, cpu=CpuUse(1.0, 1.0)), point("both", n=1)]
    write_summary(tmp_path / "summary.json", {"seed": 1}, points)
    (first, *_) = json.loads((tmp_path / "summary.json").read_text())["points"]
    assert {"mode", "n", "pattern", "storage_egress_bytes", "storage_packets", "overloaded"} <= set(first)
    assert set(first["block_ms"]) == {"p50", "p99"}
    for path in draw(points, "title", tmp_path):
        assert path.read_text().startswith("<?xml")
