import json
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path

import pytest

from commands.errors import OptionError
from experiments.policies.__main__ import main
from experiments.policies.compare import compare, misses_target
from experiments.policies.options import parse_options
from experiments.policies.pools import NAMES
from experiments.policies.replay import Result
from tests.experiments.conftest import Done
from tests.experiments.summaries import assert_described
from workload.generate import generate, to_line


@pytest.fixture
def make(play: Callable[..., Done]) -> Callable[..., Done]:
    """make(*arguments, **variables): run the command."""
    return partial(play, main)


def test_a_trace_from_the_environment(make: Callable[..., Done], tmp_path: Path) -> None:
    trace = tmp_path / "some.jsonl"
    trace.write_text("".join(to_line(request) + "\n" for request in generate("chat", 1, 80).requests))
    done = make(TRACE=str(trace), BLOCKS="50", JOBS="1", RESULTS=str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert "the best other online policy" in done.stdout
    assert_described("policies", tmp_path / "out" / "summary.json")
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary.keys() == {"trace", "results"}
    assert len(summary["results"]) == len(NAMES)
    assert set(summary["results"][0]) == {field.name for field in fields(Result)}
    ablation = json.loads((tmp_path / "out" / "ablation.json").read_text())
    assert len(ablation["results"]) == 5
    assert {path.suffix for path in (tmp_path / "out").iterdir()} == {".html", ".json", ".png", ".svg"}


def test_generated_shapes_say_their_trace(make: Callable[..., Done], tmp_path: Path) -> None:
    arguments = ("--shapes", "rag,flash", "--requests", "60", "--blocks", "40", "--policies", "lru,reuse")
    done = make(*arguments, "--ablation", "no", "--results", str(tmp_path))
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "summary.json").read_text())["results"]
    assert [(r["trace"], r["policy"]) for r in results] == [
        (f"{shape} seed 1", policy) for shape in ("rag", "flash") for policy in ("lru", "reuse")
    ]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--policies", "lru,x"), "POLICIES: there is no 'x': choose one of reuse, fifo"),
        (("--shapes", "x"), "SHAPES: there is no 'x': choose one of agents"),
        (("--blocks", "100,y"), "BLOCKS: must be a whole number, not 'y'"),
        (("--blocks", "3"), "BLOCKS: must be from 20 to 10000000, not 3"),
        (("--requests", "0"), "REQUESTS: must be from 1 to 10000000, not 0"),
        (("--block-tokens", "0"), "BLOCK_TOKENS: must be from 1 to 65536, not 0"),
        (
            ("--block-tokens", "64", "--events", __file__, "--explain", "1"),
            r"BLOCK_TOKENS: an event log \(EVENTS\) has blocks of its own",
        ),
        (("--home-gbit", "200"), "HOME_GBIT: must be 4 values, by commas, not 1"),
        (("--home-gbit", "200,200,0,25"), r"HOME_GBIT: must be from 0\.001 to 100000, not 0"),
        (
            ("--home-gbit", "1,1,1,1", "--events", __file__, "--explain", "1"),
            r"HOME_GBIT: an event log \(EVENTS\) has links",
        ),
    ],
)
def test_bad_options(arguments: tuple[str, ...], reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        parse_options(arguments)


@pytest.mark.slow
def test_blocks_and_links_may_be_others_and_results_say_so(make: Callable[..., Done], tmp_path: Path) -> None:
    trace = tmp_path / "some.jsonl"
    trace.write_text("".join(to_line(request) + "\n" for request in generate("chat", 1, 80).requests))
    arguments = ("--trace", str(trace), "--blocks", "400", "--policies", "lru,reuse", "--ablation", "no")

    def saved_s(*more: str) -> dict[str, float]:
        done = make(*arguments, "--results", str(tmp_path / "out"), *more)
        assert done.returncode == 0, done.stderr
        results = json.loads((tmp_path / "out" / "summary.json").read_text())["results"]
        return {result["policy"]: result["saved_s"] for result in results}

    usual = saved_s()
    assert "Gbit/s" not in (tmp_path / "out" / "report.html").read_text()
    slow = saved_s("--home-gbit", "20,20,20,20")
    assert slow["lru"] == pytest.approx(10 * usual["lru"], rel=0.2)
    small = saved_s("--block-tokens", "128", "--home-gbit", "200,200,50,25")
    assert 0 < small["reuse"] < slow["reuse"]
    report = (tmp_path / "out" / "report.html").read_text()
    assert "tokens of a block" in report
    assert "200, 200, 50, 25" in report
    refused = make(*arguments, "--block-tokens", "100")
    assert refused.returncode == 2
    assert "blocks of 100 tokens can't be made of blocks of 512" in refused.stderr
    assert "Traceback" not in refused.stdout + refused.stderr


def test_bad_trace_is_one_line(make: Callable[..., Done], tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"timestamp": 1}\n')
    done = make(TRACE=str(tmp_path / "bad.jsonl"))
    assert done.returncode == 2
    assert "bad.jsonl:1: " in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_comparison() -> None:
    def result(policy: str, hit: float) -> Result:
        return Result(policy, 100, hit, hit, hit, hit, hit, 0.0, 0)

    rows = [result("reuse", 0.30), result("lru", 0.20), result("mq", 0.25), result("belady", 0.50)]
    comparisons = compare("t", rows)
    assert len(comparisons) == 5
    assert comparisons[0].best_policy == "mq"
    assert comparisons[0].lead == pytest.approx(0.2)
    assert comparisons[0].closed == pytest.approx(0.2)
    assert not misses_target(comparisons)
    assert len(misses_target(compare("t", [result("reuse", 0.2), result("mq", 0.25)]))) == 5
    assert compare("t", rows[1:]) == []
