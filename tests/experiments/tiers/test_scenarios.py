"""Combinations as scenarios of the simulator: small traces whose outcome can be worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from experiments.tiers.options import TiersOptions, parse_options
from experiments.tiers.scenarios import SOURCES, Result, play
from hostlib.model.gate import GATES
from hostlib.model.tier_rules import RULES
from workload.cost import make_cost_model
from workload.generate import to_line
from workload.trace import Request

COST = make_cost_model(gpu="h800")
BLOCK_S = COST.fetch_s(COST.block_bytes, 200e9)
SSD_S = COST.block_bytes / 12e9


def run(
    folder: Path,
    chains: Sequence[Sequence[int]],
    *arguments: str,
    gap_s: float = 10.0,
    gate: str = "always",
    prefetch: str = "queued",
) -> Result:
    """Requests for these chains, in turn at two nodes."""
    trace = folder / "small.jsonl"
    requests = [Request(gap_s * n, 512 * len(chain), 1, tuple(chain)) for n, chain in enumerate(chains)]
    trace.write_text("".join(to_line(request) + "\n" for request in requests))
    given: TiersOptions = parse_options(
        ["--trace", str(trace), "--hosts", "2", "--scheduler", "round_robin", "--seed", "0", *arguments]
    )
    (loaded,) = given.traces()
    return play(loaded, given, "exclusive", gate, prefetch)


def found(result: Result) -> dict[str, int]:
    return {source: count for source, count in result.blocks.items() if count}


def test_what_one_node_stored_another_fetches_and_then_holds(tmp_path: Path) -> None:
    result = run(tmp_path, [[1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 2, 3, 4]], "--pool-blocks", "0")
    assert found(result) == {"recomputed": 4, "remote": 3, "gpu": 6}
    values_bytes = 3 * COST.block_bytes * 1.02
    assert values_bytes < result.storage_bytes < 1.05 * values_bytes  # acknowledgements and NOT_FOUND, too
    last_token_s = COST.prefill_s(1, 3 * 512 - 1)
    assert result.saved_prefill_s == pytest.approx(3 * COST.prefill_s(3 * 512) - 2 * last_token_s)


def test_the_pool_serves_what_it_was_sent_before(tmp_path: Path) -> None:
    result = run(tmp_path, [[1, 2, 3]] * 5, "--hosts", "5", "--policy", "lru")
    # The second miss is reported, what passes after that fills the pool.
    assert found(result) == {"recomputed": 3, "remote": 9, "pool": 3}
    assert result.pool_bytes == pytest.approx(3 * COST.block_bytes * 1.02)


def test_blocks_that_a_storage_nodes_dram_has_no_room_for_come_from_its_ssd(tmp_path: Path) -> None:
    arguments = ("--stores", "1", "--store-blocks", "1", "--pool-blocks", "0")
    result = run(tmp_path, [[1, 2, 3], [1, 2, 3]], *arguments)
    assert found(result) == {"recomputed": 3, "remote": 3}
    assert result.ssd_reads == 2  # the third is still in DRAM when all are asked for


@pytest.mark.parametrize(
    ("prefetch", "least_s", "most_s"),
    [
        ("none", 5 * (SSD_S + BLOCK_S), 5 * (SSD_S + BLOCK_S) * 1.05),
        ("chain", 5 * SSD_S + BLOCK_S * 0.9, 5 * SSD_S + 1.3 * BLOCK_S),
        ("queued", 5 * SSD_S + BLOCK_S * 0.9, 5 * SSD_S + 1.3 * BLOCK_S),
    ],
)
def test_a_chain_at_once_hides_the_ssd_behind_the_link(
    tmp_path: Path, prefetch: str, least_s: float, most_s: float
) -> None:
    chains = [[1, 2, 3, 4, 5], [11, 12, 13, 14, 15], [21], [1, 2, 3, 4, 5]]
    arguments = ("--stores", "1", "--store-blocks", "5", "--pool-blocks", "0")
    result = run(tmp_path, chains, *arguments, prefetch=prefetch)
    assert result.ssd_reads == 5
    assert least_s < result.fetch_s < most_s


def test_a_fetch_on_arrival_runs_while_the_gpu_is_busy(tmp_path: Path) -> None:
    stored = list(range(1, 40))
    chains = [stored, [7], [8], list(range(100, 300)), [9], stored]
    early = run(tmp_path, chains, "--pool-blocks", "0", gap_s=0.5)
    late = run(tmp_path, chains, "--pool-blocks", "0", gap_s=0.5, prefetch="chain")
    assert early.blocks == late.blocks
    assert early.blocks["remote"] == len(stored)
    assert early.ttft_mean_s < late.ttft_mean_s


def test_the_gate_computes_what_a_slow_link_would_bring_later(tmp_path: Path) -> None:
    slow = ("--link-gbit", "10", "--pool-blocks", "0")
    always = run(tmp_path, [[1, 2, 3]] * 2, *slow)
    assert found(always) == {"recomputed": 3, "remote": 3}
    gated = run(tmp_path, [[1, 2, 3]] * 2, *slow, gate="compare")
    assert found(gated) == {"recomputed": 6}
    assert gated.refused_blocks == 6
    assert gated.ttft_mean_s < always.ttft_mean_s


@pytest.mark.parametrize("tiers", RULES)
@pytest.mark.parametrize("gate", GATES)
def test_every_block_has_a_source_and_the_same_run_gives_the_same_result(tiers: str, gate: str) -> None:
    sizes = ("--gpu-blocks", "10", "--dram-blocks", "40", "--pool-blocks", "100", "--store-blocks", "50")
    given = parse_options(["--shapes", "chat", "--requests", "120", *sizes])
    (trace,) = given.traces()
    once = play(trace, given, tiers, gate, "queued")
    assert set(once.blocks) == set(SOURCES)
    assert sum(once.blocks.values()) == trace.accesses
    assert once == play(trace, given, tiers, gate, "queued")
