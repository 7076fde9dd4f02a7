"""Each experiment's page has its figures. Those of run, incast, policies, tiers and bench-switch are read
where these commands are run."""

from dataclasses import fields
from pathlib import Path
from typing import Any

from commands.options import read
from emulator.result import Percentiles
from experiments.bench.emulation.__main__ import EmulationOptions as EmulationOptions
from experiments.bench.emulation.__main__ import _write_page as write_emulation
from experiments.bench.emulation.measure import ROLES, Blast, Measured
from experiments.bench.hosts.__main__ import _FIGURES as FIGURES
from experiments.bench.hosts.__main__ import write_page as write_hosts
from experiments.engines.page import write_page as write_engines
from experiments.engines.result import ModeResult
from experiments.faults.intruders import IntrudersOptions as IntruderOptions
from experiments.faults.intruders import Result as Attacked
from experiments.faults.intruders import _write_page as write_intruders
from experiments.faults.page import write_page as write_faults
from experiments.faults.result import PHASES, Result
from experiments.faults.soak import Soaked
from experiments.faults.soak import write_page as write_soak
from experiments.simulate_faults.page import write_page as write_simulated
from experiments.simulate_faults.run import RunOutcome
from experiments.validate.page import write_page as write_validation
from experiments.validate.rows import Row

ABOUT = {"seed": 3, "revision": "abc", "engine": "embedded"}


def text_of(path: Path) -> str:
    return path.read_text().split("</script></head>")[1]


def test_faults(tmp_path: Path) -> None:
    p99 = dict.fromkeys(PHASES, 12.5)
    counts = {"operations": 100, "failed": 2, "refused": 0, "wrong_blocks": 0, "lost_blocks": 0}
    times = {"recover_s": 1.5, "p99_ms": p99, "slowest_ms": 300.0, "cpu": 0.95}
    others = {f.name: 0 for f in fields(Result) if f.name not in {*counts, *times}}
    named = {"fault": "storage_killed", "topology": "star", "why": {}}
    values: dict[str, Any] = {**others, **counts, **times, **named}
    result = Result(**values)
    text = text_of(write_faults(tmp_path, ABOUT, [result], ["storage_killed on star: CPU 95%"]))
    for shown in (
        "seed 3",
        "storage node killed (SIGKILL)",
        "2 operations failed",
        "did not keep up",
        "12.5",
    ):
        assert shown in text


def test_soak(tmp_path: Path) -> None:
    p99 = dict.fromkeys(PHASES, 12.5)
    zeros = {f.name: 0 for f in fields(Result)}
    named = {"fault": "storage_killed", "topology": "star", "why": {}, "p99_ms": p99, "cpu": 0.95}
    values: dict[str, Any] = {**zeros, **named, "operations": 77}
    soaked = Soaked([Result(**values)], {"s1": 0.06}, {"s1": 2}, 0, 0, 0, [])
    text = text_of(write_soak(tmp_path, ABOUT, soaked))
    for shown in (
        "seed 3", "storage node killed", "77", "12.5", "round 1: CPU 95%", "s1 grew by 6.0%", "6.0",
    ):  # fmt: skip
        assert shown in text


def test_intruders(tmp_path: Path) -> None:
    options = IntruderOptions(attacks=("malformed",), seconds=1.0, seed=3, results=tmp_path)
    result = Attacked("malformed", 4321, 100, 0, 0, 0, 0, 0, 10.5, 31.5, 1 << 20, 0.5, {})
    text = text_of(write_intruders(options, [result]))
    for shown in ("seed 3", "4,321", "10.5", "31.5", "p99 32 ms, with a sink 10 ms", "The machine kept up"):
        assert shown in text


def test_systems_in_virtual_time(tmp_path: Path) -> None:
    outcomes = [
        RunOutcome(4, (), {"read": 1000, "put": 20}, "abc", 61.5, 2.5),
        RunOutcome(5, ("block lost", "and again"), {"read": 234}, "def", 60.0, 2.0),
    ]
    text = text_of(write_simulated(tmp_path, 300, outcomes))
    for shown in ("seed 4 to 5", "1,234", "block lost", "2 runs, in 1 of which a promise was broken", "61.5"):
        assert shown in text


def test_what_a_block_costs_its_hosts(tmp_path: Path) -> None:
    rounds = [dict.fromkeys(FIGURES, value) for value in (3.25, 4.75)]
    text = text_of(write_hosts(tmp_path, ABOUT, {"together, python": rounds, "together, compiled": rounds}))
    for shown in ("seed 3", "together, compiled", "client, µs a fragment", "3.2", "4.8"):
        assert shown in text


def test_how_large_a_network_can_be(tmp_path: Path) -> None:
    given = ("--nodes", "8", "--seed", "6", "--results", str(tmp_path))
    options = read(EmulationOptions, given, "test", "")
    played = Measured(
        20_000.0, 3.5, 4321.0, 0.8, ("late",), dict.fromkeys(ROLES, 2.0), dict.fromkeys(ROLES, 1.0)
    )
    limit = Blast(1000, 5.0)
    text = text_of(write_emulation(options, {8: played}, limit))
    for shown in ("seed 6", "8 nodes", "4,321", "did not keep up: late", "Bare datagrams: 1,000/s"):
        assert shown in text


def test_engines(tmp_path: Path) -> None:
    ms = Percentiles(150.0, 900.0)
    mode = ModeResult(10, 10, 0.0, ms, ms, 100, 5_000_000, 2_000_000, 3, ms, 0, {}, [150.0], [150.0])
    text = text_of(write_engines(tmp_path, ABOUT, {"recompute": mode, "pool": mode}))
    for shown in ("recompute", "pool", "150.0", "900.0", "5.0"):
        assert shown in text


def test_validation(tmp_path: Path) -> None:
    rows = [Row("star", "TTFT", 100.0, 103.0, 0.05), Row("star", "hits", 1.0, 9.0)]
    text = text_of(write_validation(tmp_path, [("Against the emulator", rows)]))
    for shown in ("Against the emulator", "1 of 1 figures within tolerance", "star, TTFT", "103.00"):
        assert shown in text
