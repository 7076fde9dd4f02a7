"""Streams at levels of their choice, simulated: what comes at which level, and what does not go with them."""

from __future__ import annotations

from typing import Any

import pytest

from commands.toml_file import Document, ScenarioError
from scenario import GB, Scenario
from scenario.reading import decode_scenario
from simulator.checks import cost_model, pool_size, rungs, sizes
from simulator.result import SimResult
from simulator.simulation import simulate

STREAMS = Scenario().changed(
    workload={"shape": "chat", "requests": 80, "ttft_slo_s": 1.0},
    model={"name": "llama3-70b", "gpu": "h800", "codec": "cachegen", "level": "adaptive", "coder": "instant"},
    nodes={"stores_new": False},
)


def streamed(link_gbit_s: float, slo_s: float = 1.0, **model: Any) -> SimResult:
    tables: dict[str, Any] = {"network": {"link_gbit_s": link_gbit_s}, "workload": {"ttft_slo_s": slo_s}}
    return simulate(STREAMS.changed(model=model, **tables))


def test_a_fast_link_brings_the_best_level_and_a_slow_one_a_coarser() -> None:
    fast, slow = streamed(400.0), streamed(10.0)
    assert fast.levels.keys() == {"1"}
    assert fast.mean_level == 1.0
    assert slow.mean_level is not None
    assert slow.mean_level > 2.0
    assert sum(fast.blocks.values()) == sum(slow.blocks.values())
    assert fast.met_share is not None
    assert fast.met_share > 0.8


def test_where_nothing_comes_in_time_chains_are_computed() -> None:
    result = streamed(0.001)
    assert result.levels.keys() == {"text"}
    assert result.blocks["remote"] == result.blocks["pool"] == 0
    assert result.storage_egress_bytes == 0


def test_blocks_travel_with_the_size_of_their_level() -> None:
    fixed = streamed(400.0, level=1)
    found = streamed(400.0)
    assert found.blocks == fixed.blocks
    assert found.storage_egress_bytes == pytest.approx(fixed.storage_egress_bytes, rel=0.05)
    assert found.met_share == fixed.met_share
    assert not fixed.levels


def test_decoding_on_cpus_makes_streams_coarser() -> None:
    """Level 1 takes 0.23 s a block on 64 cores, level 5 takes 0.13 s."""
    instant, cpu = streamed(400.0, slo_s=3.0), streamed(400.0, slo_s=3.0, coder="cpu")
    assert instant.levels.keys() == {"1"}
    assert cpu.levels.keys() - {"1"}


def test_what_is_computed_is_stored_at_every_level() -> None:
    """Three levels are sent to the stores where a single one would be."""

    def stored_bytes(level: object) -> float:
        scenario = STREAMS.changed(model={"level": level}, nodes={"stores_new": True})
        result = simulate(scenario)
        return sum(sent for link, sent in result.link_bytes.items() if "->store" in link)

    ratio = stored_bytes("adaptive") / stored_bytes(1)
    assert ratio == pytest.approx((0.2928 + 0.2091 + 0.1417) / 0.2928, rel=0.06)


def test_a_pool_has_as_many_slots_as_its_memory_has_fragments() -> None:
    scenario = STREAMS.changed(pool={"size_gb": 16.78})  # 100 blocks of 167.8 MB
    cost = cost_model(scenario, 512)
    cut = sizes(scenario, cost)
    size = pool_size(scenario, cost, cut)
    assert size.slots == pytest.approx(100 * 32, abs=2)
    assert size.fragments == 10  # of level 1: 0.2928 of 32, up to 4 % more
    assert size.blocks == int(16.78 * GB / cost.stored_bytes)
    assert [rung.level for rung in rungs(scenario, cost, cut.value_bytes)] == [1, 3, 5]


@pytest.mark.parametrize(
    ("tables", "complaint"),
    [
        ({"workload": {"ttft_slo_s": None}}, "model.level: aims at a time to the first token"),
        ({"workload": {"scheduler": "conductor"}}, "workload.scheduler: the conductor"),
        ({"storage": {"kind": "direct"}}, "model.level: goes with storage nodes"),
        ({"nodes": {"loading": "blocking"}}, 'nodes.loading: .* loading = "overlapped"'),
        (
            {"model": {"decoding": "gpu"}, "nodes": {"decode": "batched"}},
            "model.decoding: .* beside or smartnic",
        ),
        ({"nodes": {"blend": True}}, "nodes.blend: .* streams chains"),
        ({"nodes": {"gate": "never"}}, "nodes.gate: there is no level to choose"),
        ({"model": {"codec": "fp8"}}, "model.codec: .*codec fp8 does not have: choose one of cachegen, kivi"),
    ],
)
def test_what_does_not_go_with_streams_is_refused(tables: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ScenarioError, match=complaint):
        simulate(STREAMS.changed(**tables))


def test_a_level_in_a_file_is_a_number_or_adaptive() -> None:
    def level(text: str) -> object:
        return decode_scenario(Document(f"[model]\nlevel = {text}\n", "x.toml")).model.level

    assert (level("3"), level('"adaptive"')) == (3, "adaptive")
    for text, complaint in (
        ('"best"', "whole number, or adaptive"),
        ("1.5", "whole number"),
        ("100", "from 0 to 99"),
    ):
        with pytest.raises(ScenarioError, match=f"x.toml:2: model.level: .*{complaint}"):
            level(text)
