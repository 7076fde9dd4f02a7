"""Coded blocks in replays and simulations."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.toml_file import ScenarioError
from experiments.codecs.__main__ import main
from experiments.codecs.streams import Streams, simulated
from experiments.codecs.sweep import Codec, cost_of, replayed, ttft_ms
from scenario import Scenario
from simulator.simulation import simulate
from tests.experiments.summaries import assert_described
from workload.compression import NONE

PLAIN, CACHEGEN = Codec(NONE), Codec("cachegen")
CODED_SHARE = cost_of(CACHEGEN, 512).stored_share


def test_a_pool_of_coded_blocks_serves_what_a_larger_one_does() -> None:
    small, larger, coded = (
        replayed("chat", 400, 1, blocks, codec, "lru")
        for blocks, codec in ((100, PLAIN), (478, PLAIN), (100, CACHEGEN))
    )
    assert coded.prefix_hit == larger.prefix_hit > small.prefix_hit
    assert coded.sent == pytest.approx(larger.sent * CODED_SHARE)


def test_coded_blocks_weigh_less_and_cost_time_to_decode() -> None:
    given = "agents", 60, 1, 300
    plain, instant, by_cpu = (
        ttft_ms(*given, codec, coder, 50.0)
        for codec, coder in ((PLAIN, "cpu"), (CACHEGEN, "instant"), (CACHEGEN, "cpu"))
    )
    assert instant < plain
    assert instant < by_cpu


def test_a_simulation_sends_less_of_coded_blocks_and_waits_for_their_decoding() -> None:
    base = Scenario().changed(
        workload={"requests": 60}, model={"name": "llama3-70b"}, nodes={"count": 2}, pool={"memory": "none"}
    )
    plain, instant, by_cpu = (
        simulate(base.changed(model={"codec": codec, "coder": coder}))
        for codec, coder in ((NONE, "cpu"), ("cachegen", "instant"), ("cachegen", "cpu"))
    )
    assert instant.block_bytes == pytest.approx(plain.block_bytes * CODED_SHARE)
    assert instant.storage_egress_bytes < plain.storage_egress_bytes / 3
    assert by_cpu.ttft_s.p50 > instant.ttft_s.p50


def test_a_codec_that_makes_blocks_larger_is_refused_with_its_field() -> None:
    with pytest.raises(ScenarioError, match=r"model\.codec: zstd at level 3 makes blocks no smaller"):
        simulate(Scenario().changed(model={"codec": "zstd"}))


def test_the_command_leaves_a_page(tmp_path: Path) -> None:
    given = ["--shapes", "agents", "--blocks", "300", "--requests", "60", "--simulated-requests", "20"]
    given += ["--seeds", "2", "--links", "200", "--simulated", "300", "--stream-links", "200"]
    assert main([*given, "--results", str(tmp_path)]) == 0
    assert_described("codecs", tmp_path / "summary.json")
    page = (tmp_path / "report.html").read_text()
    for shown in ("Prefix hits of the pool", "Time to first token", "Streams at levels", "±"):
        assert shown in page


def test_streams_are_compared_with_each_level_on_the_same_requests() -> None:
    streams = Streams(shape="agents", requests=40, seeds=2, links=(100.0,), slo_s=2.0)
    shown: list[str] = []
    rows = simulated(streams, shown.append)
    assert len(shown) == streams.steps == 16
    assert [row["level"] for row in rows] == 2 * ["adaptive", "1", "3", "5"]
    adaptive, finest, _, coarsest = rows[:4]
    assert 1.0 <= adaptive["mean_level"].mean <= 5.0
    assert (finest["mean_level"].mean, coarsest["mean_level"].mean) == (1.0, 5.0)
    assert coarsest["met_less_coarsest"].mean == 0.0
    assert finest["text_share"].mean == 0.0
    assert all(0.0 < row["met_share"].mean <= 1.0 for row in rows)
