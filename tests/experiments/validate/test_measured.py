"""What a play measured is kept, so that a comparison goes on where it was; for it alone."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emulator.emulation import Measurements
from emulator.result import BlockSources, Percentiles, RunResult
from experiments.simulate.emulate import Emulated
from experiments.validate.calibrate import TYPICAL_READING
from experiments.validate.measured import load_play, store_play
from scenario import Scenario
from simulator.machine_costs import MEASURED

SIGMA, SPEED = 20_000.0, 2.0
RUN = RunResult(
    requests=2, completed=2, failed=0, corrupt=0, blocks=BlockSources(1, 2, 3, 4, 5),
    storage_egress_bytes=0, switch_served_bytes=0, get_ms=Percentiles(0.0, 0.0),
    ttft_ms=Percentiles(0.0, 0.0), merged=0, admitted=7, evicted=0, p4runtime_writes=0, digests=9,
    wall_s=1.0, overloaded=True, complaints=["a timer was late"],
)  # fmt: skip
RECORD = dict.fromkeys(("arrival_s", "refused", "fetch_s", "queue_s", "prefill_s"), 0.0)


def emulated() -> Emulated:
    records: list[dict[str, Any]]
    records = [{**RECORD, "sources": {}, "waits_s": {}, "ttft_s": ttft_s} for ttft_s in (0.5, 1.5, None)]
    workers: dict[str, dict[str, Any]]
    workers = {"node1": {"records": records, "get_ms": [10.0, 30.0]}, "node2": {"records": [], "get_ms": []}}
    return Emulated(RUN, SPEED, Measurements(workers=workers))


def test_what_was_played_is_read_back_in_real_seconds(tmp_path: Path) -> None:
    path, scenario = tmp_path / "drawn" / "1-pool.json", Scenario()
    assert load_play(path, scenario, SIGMA, SPEED) is None
    measured = store_play(path, scenario, SIGMA, emulated())
    assert load_play(path, scenario, SIGMA, SPEED) == measured
    assert measured.ttft_s.mean == pytest.approx(2.0)
    assert (measured.get_s.mean, measured.get_s.p99) == pytest.approx((0.04, 0.06))
    assert (measured.blocks["pool"], measured.admitted, measured.digests) == (3, 7, 9)
    assert measured.overloaded


def test_the_machine_is_kept_with_its_play(tmp_path: Path) -> None:
    path, scenario = tmp_path / "1-pool.json", Scenario()
    slow = replace(
        TYPICAL_READING,
        entries_s=2 * TYPICAL_READING.entries_s,
        entry_digest_s=2 * TYPICAL_READING.entry_digest_s,
    )
    measured = store_play(path, scenario, SIGMA, emulated(), (TYPICAL_READING, slow))
    assert load_play(path, scenario, SIGMA, SPEED) == measured
    assert measured.costs.entries_s == pytest.approx(1.5 * MEASURED.entries_s)
    assert measured.costs.node_fragment_s == pytest.approx(MEASURED.node_fragment_s)
    assert measured.drift == pytest.approx(1.0)
    assert measured.drifted


def test_a_record_from_before_machines_were_measured_has_the_usual_one(tmp_path: Path) -> None:
    path, scenario = tmp_path / "1-pool.json", Scenario()
    store_play(path, scenario, SIGMA, emulated())
    record = json.loads(path.read_text())
    del record["measured"]["readings"]
    path.write_text(json.dumps(record))
    measured = load_play(path, scenario, SIGMA, SPEED)
    assert measured is not None
    assert measured.costs == MEASURED
    assert not measured.drifted


def test_a_play_from_before_there_was_a_table_is_the_same(tmp_path: Path) -> None:
    path, scenario = tmp_path / "1-pool.json", Scenario()
    measured = store_play(path, scenario, SIGMA, emulated())
    record = json.loads(path.read_text())
    del record["play"]["scenario"]["routing"]
    path.write_text(json.dumps(record))
    assert load_play(path, scenario, SIGMA, SPEED) == measured
    record["play"]["scenario"]["another"] = {"field": 1}
    path.write_text(json.dumps(record))
    assert load_play(path, scenario, SIGMA, SPEED) is None


def test_another_play_is_not_taken_for_it_and_a_damaged_file_is_none(tmp_path: Path) -> None:
    path, scenario = tmp_path / "1-pool.json", Scenario()
    store_play(path, scenario, SIGMA, emulated())
    assert load_play(path, scenario.changed(workload={"requests": 3}), SIGMA, SPEED) is None
    assert load_play(path, scenario, 2 * SIGMA, SPEED) is None
    assert load_play(path, scenario, SIGMA, 1.0) is None
    path.write_text(path.read_text()[:-10])
    assert load_play(path, scenario, SIGMA, SPEED) is None
