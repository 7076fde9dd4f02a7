"""Each experiment's page has its figures. Those of run, incast, policies, tiers and bench-switch are read
where these commands are run."""

from dataclasses import fields
from pathlib import Path

from experiments.bench_control.__main__ import Options as ControlOptions
from experiments.bench_control.__main__ import _write_page as write_control
from experiments.bench_control.measure import Cost
from experiments.bench_emulation.__main__ import _OPTIONS
from experiments.bench_emulation.__main__ import Options as EmulationOptions
from experiments.bench_emulation.__main__ import _write_page as write_emulation
from experiments.bench_emulation.measure import ROLES, Blast, Played
from experiments.engines.page import write_page as write_engines
from experiments.engines.result import ModeResult
from experiments.faults.page import write_page as write_faults
from experiments.faults.result import PHASES, Result
from experiments.options import parse_into
from experiments.run.result import Percentiles
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
    result = Result(**{**others, **counts, **times, **named})
    text = text_of(write_faults(tmp_path, ABOUT, [result], ["storage_killed on star: CPU 95%"]))
    for shown in (
        "seed 3",
        "storage node killed (SIGKILL)",
        "2 operations failed",
        "did not keep up",
        "12.5",
    ):
        assert shown in text


def test_what_a_digest_costs(tmp_path: Path) -> None:
    options = ControlOptions(1, "lru", 100, 20, 20.0, 5, tmp_path)
    text = text_of(write_control(options, [Cost(1000, 10, 1900, 55.5, 44.5)]))
    for shown in ("seed 5", "policy lru", "round 1", "1,000", "100.0"):
        assert shown in text


def test_how_large_a_network_can_be(tmp_path: Path) -> None:
    given = ("--nodes", "8", "--seed", "6", "--results", str(tmp_path))
    options = parse_into(EmulationOptions, _OPTIONS, given, "test", "")
    played = Played(
        20_000.0, 3.5, 4321.0, 0.8, ("late",), dict.fromkeys(ROLES, 2.0), dict.fromkeys(ROLES, 1.0)
    )
    limit = Blast(1000, 5.0)
    text = text_of(write_emulation(options, {8: played}, limit))
    for shown in ("seed 6", "8 nodes", "4,321", "did not keep up: late", "Bare datagrams: 1,000/s"):
        assert shown in text


def test_engines(tmp_path: Path) -> None:
    ms = Percentiles(150.0, 900.0)
    mode = ModeResult(10, 10, 0.0, ms, ms, 100, 5_000_000, 2_000_000, 3, ms, 0, {})
    text = text_of(write_engines(tmp_path, ABOUT, {"recompute": mode, "pool": mode}))
    for shown in ("recompute", "pool", "150.0", "900.0", "5.0"):
        assert shown in text


def test_validation(tmp_path: Path) -> None:
    rows = [Row("star", "TTFT", 100.0, 103.0, 0.05), Row("star", "hits", 1.0, 9.0)]
    text = text_of(write_validation(tmp_path, [("Against the emulator", rows)]))
    for shown in ("Against the emulator", "1 of 1 figures within tolerance", "star, TTFT", "103.00"):
        assert shown in text
