"""The command: what it writes, and what it says about input that cannot be."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from commands.errors import OptionError
from experiments.tiers.__main__ import main
from experiments.tiers.options import parse_options
from tests.experiments.conftest import Done
from tests.experiments.summaries import assert_described
from workload.generate import generate, to_line


@pytest.fixture
def make(play: Callable[..., Done]) -> Callable[..., Done]:
    """make(*arguments, **variables): run the command."""
    return partial(play, main)


def test_a_trace_from_the_environment(make: Callable[..., Done], tmp_path: Path) -> None:
    trace = tmp_path / "some.jsonl"
    trace.write_text("".join(to_line(request) + "\n" for request in generate("chat", 1, 60).requests))
    out = tmp_path / "out"
    done = make(TRACE=str(trace), TIERS="inclusive,by-value", PREFETCH="chain", JOBS="1", RESULTS=str(out))
    assert done.returncode == 0, done.stderr
    assert "shortest mean time to first token" in done.stdout
    assert_described("tiers", out / "summary.json")
    summary = json.loads((out / "summary.json").read_text())
    assert [(r["tiers"], r["gate"], r["prefetch"]) for r in summary["results"]] == [
        (tiers, gate, "chain") for tiers in ("inclusive", "by-value") for gate in ("always", "compare")
    ]
    assert all(r["trace"] == str(trace) for r in summary["results"])
    assert summary["options"]["seed"] == 1
    assert {path.suffix for path in out.iterdir()} == {".html", ".json", ".png", ".svg"}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--tiers", "x"), "TIERS: there is no 'x': choose one of exclusive, inclusive, by-value"),
        (("--gate", "x"), "GATE: there is no 'x': choose one of always, compare"),
        (("--prefetch", "queued,x"), "PREFETCH: there is no 'x': choose one of none, chain, queued"),
        (("--hosts", "0"), "HOSTS: must be from 1 to 256, not 0"),
    ],
)
def test_bad_options(arguments: tuple[str, ...], reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        parse_options(arguments)


def test_a_bad_trace_and_a_bad_pool_are_one_line(make: Callable[..., Done], tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"timestamp": 1}\n')
    done = make(TRACE=str(tmp_path / "bad.jsonl"))
    assert done.returncode == 2
    assert "bad.jsonl:1: " in done.stderr
    taken = make("--results", str(tmp_path / "bad.jsonl"))
    assert (taken.returncode, "File exists" in taken.stderr) == (2, True)
    small = make("--requests", "10", "--policy", "arc", "--pool-blocks", "3", "--tiers", "inclusive")
    assert small.returncode == 2
    assert "at least 20 blocks" in small.stderr
    assert "Traceback" not in done.stdout + done.stderr + small.stdout + small.stderr
