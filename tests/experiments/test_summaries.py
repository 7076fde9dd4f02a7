"""Every experiment's summary.json is described, and the check of what they write notices what is not."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
from pydantic import ValidationError

from commands.command import Screen
from emulator.result import ROOT, BlockSources, Percentiles, RunResult
from experiments.bench.hosts import __main__ as hosts
from experiments.bench.values import __main__ as values
from experiments.commands import COMMANDS
from experiments.faults import __main__ as faults
from experiments.faults import intruders, soak
from experiments.faults import options as faults_options
from experiments.faults.cases import CASES
from experiments.faults.intruders import Result as AttackResult
from experiments.faults.result import PHASES
from experiments.faults.result import Result as FaultResult
from experiments.mutate import __main__ as mutate
from experiments.simulate_faults import __main__ as simulate_faults
from tests.experiments.summaries import assert_described, check, schema_of

WITHOUT_SUMMARY = {"topo", "simulate", "shell", "trace", "pool", "bench", "test-bmv2", "fuzz"}
"""Commands that print, or run others."""
WITH_SUMMARY = sorted(set(COMMANDS) - WITHOUT_SUMMARY)


def test_every_command_that_leaves_a_summary_has_a_schema() -> None:
    from experiments.summaries import SUMMARIES
    from experiments.summaries.schema import FOLDER

    assert sorted(SUMMARIES) == WITH_SUMMARY
    files = {path.name for path in FOLDER.glob("*.json")}
    assert files == {f"{name.replace(' ', '-')}.schema.json" for name in (*SUMMARIES, "crashed")}


@pytest.mark.parametrize("command", WITH_SUMMARY)
def test_a_schema_says_what_each_part_is(command: str) -> None:
    made = schema_of(command)
    for entry in (made, *made.get("$defs", {}).values()):
        assert entry["description"].endswith("."), entry
        assert entry.get("required")
    for reference in re.findall(r'"\$ref": "#/\$defs/(\w+)"', json.dumps(made)):
        assert reference in made["$defs"]


def fields_below_text() -> dict[str, str]:
    """Descriptions of fields of plain dataclasses come from the text below them, too."""
    return {
        name: value.get("description", "")
        for name, value in schema_of("run")["$defs"]["RunResult"]["properties"].items()
    }


def test_plain_dataclasses_are_described_by_the_text_below_their_fields() -> None:
    assert fields_below_text()["corrupt"].startswith("Number of blocks whose content differed")


RESULT = RunResult(
    requests=1, completed=1, failed=0, corrupt=0, blocks=BlockSources(), storage_egress_bytes=0,
    switch_served_bytes=0, get_ms=Percentiles(1.0, 2.0), ttft_ms=Percentiles(1.0, 2.0), merged=0, admitted=0,
    evicted=0, p4runtime_writes=0, digests=0, wall_s=1.0, overloaded=False,
)  # fmt: skip
RECORDED = json.loads((ROOT / "tests/weir/old/summary.json").read_text()) | {"value_bytes": 512}


def test_a_summary_is_taken_as_it_is_written() -> None:
    check("run", RECORDED | {"runs": {"pool": asdict(RESULT)}})


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"novel": 1}, "novel"),
        ({"seed": "one"}, "seed"),
        ({"runs": {"pool": asdict(RESULT) | {"novel": 1}}}, r"runs\.pool\.novel"),
        ({"runs": {"pool": {"requests": 1}}}, r"runs\.pool\.completed"),
    ],
)
def test_what_is_not_described_is_noticed(changed: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        check("run", RECORDED | changed)


def test_a_missing_key_is_noticed() -> None:
    with pytest.raises(ValidationError, match="policy"):
        check("run", {name: value for name, value in RECORDED.items() if name != "policy"})


FAULT = FaultResult(
    fault=next(iter(CASES)), topology="star", operations=9, failed=0, refused=0, wrong_blocks=0,
    lost_blocks=0,
    evictions=0, suspicions=1, recover_s=0.5, p99_ms=dict.fromkeys(PHASES, 1.0), slowest_ms=2.0, cpu=0.5,
    why={},
)  # fmt: skip
ATTACK = AttackResult(
    attack="foreign GETs", sent=9, operations=9, failed=0, failed_sink=0, wrong_blocks=0, lost_blocks=0,
    stolen=0, p99_ms_sink=1.0, p99_ms=1.0, growth_bytes=0, cpu=0.5, why={},
)  # fmt: skip


def write_values(folder: Path) -> None:
    values._write(values.ValuesOptions(results=folder), {512: [], 1408: []})


WRITERS: dict[str, Callable[[Path], None]] = {
    "faults": lambda folder: faults._write(faults_options.FaultsOptions(results=folder), [FAULT]),
    "intruders": lambda folder: intruders._write(intruders.IntrudersOptions(results=folder), [ATTACK]),
    "soak": lambda folder: soak._write(
        Screen(),
        soak.SoakOptions(results=folder),
        soak.Soaked([FAULT], {"store1": 0.1}, {"store1": 0}, 0, 0, 0, ()),
    ),
    "mutate": lambda folder: mutate._write(
        mutate.MutateOptions(results=folder), [mutate.MutationResult("a.py", 1, "<", "<=", True, "FAILED x")]
    ),
    "bench values": write_values,
}


@pytest.mark.parametrize("command", WRITERS)
def test_writers_of_long_experiments_write_what_is_described(command: str, tmp_path: Path) -> None:
    WRITERS[command](tmp_path)
    assert_described(command, tmp_path / "summary.json")


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_a_small_bench_of_hosts_writes_what_is_described(tmp_path: Path) -> None:
    small = ("--runs", "2", "--blocks", "20", "--modes", "together", "--quiet")
    assert hosts.main([*small, "--results", str(tmp_path)]) == 0
    assert_described("bench hosts", tmp_path / "summary.json")


@pytest.mark.slow
def test_simulated_faults_write_what_is_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert simulate_faults.main(["--seeds", "1", "--operations", "100", "--processes", "1", "--quiet"]) == 0
    assert_described("simulate-faults", tmp_path / simulate_faults.RESULTS / "summary.json")


def test_tables_of_a_study_are_open_and_its_points_are_not() -> None:
    study: dict[str, object] = {"about": {}, "points": [], "coarse": []}
    check("study", study | {"tornado-16": [{"a": 1}]})
    with pytest.raises(ValidationError, match="novel"):
        check("study", study | {"coarse": [{"name": "x", "seeds": 1, "half": None, "novel": 1}]})


def test_a_crash_is_described(tmp_path: Path) -> None:
    crash = {"process": "store1", "how": "was ended by SIGKILL", "last_lines": ["out of memory"]}
    check("crashed", {"seed": 1, "crashed": crash})
    with pytest.raises(ValidationError, match="novel"):
        check("crashed", {"seed": 1, "crashed": crash | {"novel": 1}})
