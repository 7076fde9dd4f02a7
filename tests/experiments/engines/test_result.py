"""From replies to figures, and what counts as identical."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from engines.conformance.comparison import TOLERANCE, difference
from experiments.engines.__main__ import _about
from experiments.engines.options import EnginesOptions
from experiments.engines.report import print_report, shortfalls
from experiments.engines.result import Damage, ModeResult, Served, evaluate, write_summary
from tests.experiments.summaries import assert_described


def reply(tokens: list[int], logprobs: list[float], ttft_s: float = 1.0, cached: int = 0) -> dict[str, Any]:
    return {
        "tokens": tokens,
        "logprobs": logprobs,
        "ttft_s": ttft_s,
        "tbt_s": [0.05] * (len(tokens) - 1),
        "cached_tokens": cached,
    }


RIGHT = reply([4, 5, 6], [-1.0, -2.0, -3.0])


def mode(replies: list[dict[str, Any]], **counts: Any) -> ModeResult:
    return evaluate([Served(replies[:1], replies, counts)], [RIGHT] * len(replies))


def test_log_probabilities_tell_apart_what_the_text_does_not() -> None:
    assert difference(reply([4, 5, 6], [-1.0, -2.4, -3.0]), RIGHT) == pytest.approx((0, 0.4))
    assert mode([RIGHT, reply([4, 5, 6], [-1.0, -2.4, -3.0])]).identical == 1
    assert mode([RIGHT, reply([4, 5, 6], [-1.0, -2.0 + TOLERANCE / 2, -3.0])]).identical == 2


def test_behind_the_first_other_token_nothing_is_comparable() -> None:
    changed, largest = difference(reply([4, 7, 8], [-1.0, -2.1, -9.0]), RIGHT)
    assert (changed, largest) == pytest.approx((2, 0.1))
    assert mode([reply([4, 7, 8], [-1.0, -2.0, -9.0])]).identical == 0


def test_hits_of_the_connector_are_not_the_engines_own() -> None:
    result = mode([reply([4, 5, 6], [-1.0, -2.0, -3.0], cached=96)] * 2, hit_tokens=64, pool_bytes=10)
    assert (result.hit_tokens, result.own_tokens, result.pool_bytes) == (64, 128, 10)
    assert result.ttft_ms.p50 == 1000.0
    assert result.tbt_ms.p99 == 50.0


def modes(pool_ttft_s: float, **counts: Any) -> dict[str, ModeResult]:
    return {
        "recompute": mode([RIGHT]),
        "pool": mode([reply([4, 5, 6], [-1.0, -2.0, -3.0], pool_ttft_s)], **counts),
    }


NOTICED, UNNOTICED = Damage(0, 0.3), Damage(0, TOLERANCE / 2)


@pytest.mark.parametrize(
    ("results", "damaged", "said"),
    [
        (modes(0.5, hit_tokens=1, pool_bytes=1), NOTICED, []),
        (modes(0.5, hit_tokens=1, pool_bytes=1), UNNOTICED, ["damaged KV went unnoticed"]),
        (modes(0.5, hit_tokens=1), NOTICED, ["pool: pool_bytes is 0"]),
        (modes(0.8, hit_tokens=1, pool_bytes=1), NOTICED, ["pool: the median TTFT is not below 0.7"]),
        ({"recompute": mode([RIGHT]), "storage": mode([reply([1, 5, 6], [-1.0, -2.0, -3.0])])}, None,
         ["storage: 1 of 1 requests were answered otherwise"]),
    ],
)  # fmt: skip
def test_what_is_not_as_it_should_be_is_said(
    results: dict[str, ModeResult], damaged: Damage | None, said: list[str]
) -> None:
    found = shortfalls(results, damaged)
    assert len(found) == len(said)
    assert all(one.startswith(expected) for one, expected in zip(found, said, strict=True))


def test_the_summary_has_every_mode_and_the_table_every_figure(tmp_path: Path) -> None:
    results = modes(0.5, hit_tokens=64, pool_bytes=1_500_000, merged=7)
    write_summary(tmp_path / "new" / "summary.json", _about(EnginesOptions()), results, NOTICED)
    assert_described("engines", tmp_path / "new" / "summary.json")
    summary = json.loads((tmp_path / "new" / "summary.json").read_text())
    expected = {"requests", "identical", "max_logprob_diff", "ttft_ms", "tbt_ms", "hit_tokens", "pool_bytes"}
    assert expected | {"store_bytes", "merged"} <= summary["modes"]["pool"].keys()
    assert summary["modes"]["pool"]["ttft_ms"].keys() == {"p50", "p99"}
    assert summary["damaged"]["noticed"] is True
    console = Console(record=True, width=120)
    print_report(console, "title", results, NOTICED)
    said = console.export_text()
    assert "0.50" in said
    assert "1.5" in said
    assert "noticed" in said


def test_rounds_are_counted_together_and_compared_one_by_one() -> None:
    slow, fast = (reply([4, 5, 6], [-1.0, -2.0, -3.0], ttft_s) for ttft_s in (0.4, 0.2))
    rival = [Served([slow], [slow], {"merged": 1, "failed": {"x": 1}}), Served([slow], [fast], {"merged": 2})]
    own = [Served([slow], [fast], {}), Served([fast], [fast], {})]
    results = {"recompute": mode([RIGHT])}
    results |= {"pool": evaluate(own, [RIGHT]), "mooncake": evaluate(rival, [RIGHT])}
    assert (results["mooncake"].requests, results["mooncake"].identical) == (2, 2)
    assert (results["mooncake"].merged, results["mooncake"].failed) == (3, {"x": 1})
    assert results["mooncake"].round_ttft_ms == [400.0, 200.0]
    assert results["pool"].round_first_ms == [400.0, 200.0]
    console = Console(record=True, width=120)
    print_report(console, "title", results, None)
    assert "0.75 ±" in console.export_text()
