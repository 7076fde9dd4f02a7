"""Replays of small traces whose outcome can be worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from experiments.tiers.options import TiersOptions, parse_options
from experiments.tiers.replay import SOURCES, Replay, Result
from hostlib.gate import GATES
from hostlib.tier_rules import RULES
from workload.cost import make_cost_model
from workload.generate import generate
from workload.trace import MOONCAKE, Request, Trace

COST = make_cost_model(gpu="h800")
BLOCK_S = COST.fetch_s(COST.block_bytes, 200e9)
SSD_S = COST.block_bytes / 12e9


def options(*arguments: str) -> TiersOptions:
    return parse_options(["--hosts", "2", "--scheduler", "round_robin", "--seed", "0", *arguments])


def trace_of(*chains: Sequence[int], gap_s: float = 10.0) -> Trace:
    requests = [Request(gap_s * n, 512 * len(chain), 1, tuple(chain)) for n, chain in enumerate(chains)]
    return Trace("small", MOONCAKE, tuple(requests))


def play(trace: Trace, *arguments: str, gate: str = "always", prefetch: str = "queued") -> Result:
    return Replay(trace, options(*arguments), "exclusive", gate, prefetch).run()


def found(result: Result) -> dict[str, int]:
    return {source: count for source, count in result.blocks.items() if count}


def test_what_one_node_stored_another_fetches_and_then_holds() -> None:
    result = play(trace_of([1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 2, 3, 4]), "--pool-blocks", "0")
    assert found(result) == {"recomputed": 4, "remote": 3, "gpu": 6}
    assert result.storage_bytes == pytest.approx(3 * COST.block_bytes)
    last_token_s = COST.prefill_s(1, 3 * 512 - 1)
    assert result.saved_prefill_s == pytest.approx(3 * COST.prefill_s(3 * 512) - 2 * last_token_s)


def test_the_pool_serves_what_it_was_sent_before() -> None:
    result = play(trace_of(*[[1, 2, 3]] * 3), "--hosts", "3", "--policy", "lru")
    assert found(result) == {"recomputed": 3, "remote": 3, "pool": 3}
    assert result.pool_bytes == pytest.approx(3 * COST.block_bytes)


def test_blocks_that_a_storage_nodes_dram_has_no_room_for_come_from_its_ssd() -> None:
    trace = trace_of([1, 2, 3], [1, 2, 3])
    result = play(trace, "--stores", "1", "--store-blocks", "1", "--pool-blocks", "0")
    assert found(result) == {"recomputed": 3, "ssd": 3}  # each makes room for the next


def test_time_to_first_token_is_fetching_and_computing() -> None:
    trace = trace_of([1, 2, 3, 4], [1, 2, 3, 4])
    result = play(trace, "--stores", "1", "--pool-blocks", "0")
    assert result.fetch_s == pytest.approx(4 * BLOCK_S)
    computed_s, last_s = COST.prefill_s(4 * 512), COST.prefill_s(1, 4 * 512 - 1)
    assert result.ttft_mean_s == pytest.approx((computed_s + 4 * BLOCK_S + last_s) / 2)


@pytest.mark.parametrize(
    ("prefetch", "fetch_s"),
    [
        ("none", 5 * (SSD_S + BLOCK_S)),
        ("store", 5 * SSD_S + BLOCK_S),
        ("chain", 5 * SSD_S + BLOCK_S),
        ("queued", 5 * SSD_S + BLOCK_S),
    ],
)
def test_prefetch_hides_the_ssd_behind_the_link(prefetch: str, fetch_s: float) -> None:
    trace = trace_of([1, 2, 3, 4, 5], [11, 12, 13, 14, 15], [21], [1, 2, 3, 4, 5])
    arguments = ("--stores", "1", "--store-blocks", "5", "--pool-blocks", "0")
    result = play(trace, *arguments, prefetch=prefetch)
    assert result.blocks["ssd"] == 5
    assert result.fetch_s == pytest.approx(fetch_s)


def test_a_fetch_on_arrival_runs_while_the_gpu_is_busy() -> None:
    long = list(range(100, 300))
    trace = trace_of([1, 2, 3], [7], long, long, [5], [1, 2, 3], gap_s=0.01)
    first_stored = Trace("t", MOONCAKE, (trace.requests[0], *_later(trace.requests[1:], 50.0)))
    early = play(first_stored, "--pool-blocks", "0", "--stores", "1")
    late = play(first_stored, "--pool-blocks", "0", "--stores", "1", prefetch="chain")
    assert early.blocks == late.blocks
    assert early.ttft_mean_s < late.ttft_mean_s


def _later(requests: Sequence[Request], by_s: float) -> tuple[Request, ...]:
    return tuple(Request(r.arrival_s + by_s, r.input_tokens, r.output_tokens, r.blocks) for r in requests)


def test_the_gate_computes_what_a_slow_link_would_bring_later() -> None:
    trace = trace_of(*[[1, 2, 3]] * 2)
    slow = ("--link-gbit", "10", "--pool-blocks", "0")
    assert found(play(trace, *slow)) == {"recomputed": 3, "remote": 3}
    gated = play(trace, *slow, gate="compare")
    assert found(gated) == {"recomputed": 6}
    assert gated.refused_blocks == 6
    assert gated.ttft_mean_s < play(trace, *slow).ttft_mean_s


@pytest.mark.parametrize("tiers", RULES)
@pytest.mark.parametrize("gate", GATES)
def test_every_block_has_a_source_and_the_same_replay_gives_the_same_result(tiers: str, gate: str) -> None:
    trace = generate("chat", 1, 120)
    given = options(
        "--gpu-blocks", "10", "--dram-blocks", "40", "--pool-blocks", "100", "--store-blocks", "50"
    )
    once = Replay(trace, given, tiers, gate, "queued").run()
    assert set(once.blocks) == set(SOURCES)
    assert sum(once.blocks.values()) == trace.accesses
    assert once == Replay(trace, given, tiers, gate, "queued").run()
