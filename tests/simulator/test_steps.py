"""Nodes that work in vLLM's steps: who is in a step waits for all of it, who comes meanwhile for the next."""

import pytest

from commands.toml_file import ScenarioError
from scenario import Scenario
from simulator.checks import cost_model
from simulator.result import SimResult
from simulator.simulation import simulate
from workload.cost import CostModel

TOKENS, BLOCK = 4096, 256


def scenario(clients: int, hit_share: float, requests: int = 2, **nodes: object) -> Scenario:
    """Prompts of one length at one node that reads a pool."""
    return Scenario().changed(
        workload={
            "hit_share": hit_share,
            "prompt_tokens": TOKENS,
            "output_tokens": 3,
            "clients": clients,
            "requests": requests,
        },
        model={"gpus": 1, "block_tokens": BLOCK},
        nodes={"count": 1, "gpu_gb": 0.1, "dram_gb": 0.0, "decode": "steps", "loading": "blocking"} | nodes,
        storage={"kind": "direct"},
        direct={"block_s": 0.01},
    )


def cost(of: Scenario) -> CostModel:
    return cost_model(of, BLOCK)


def play(*arguments: float, **nodes: object) -> SimResult:
    return simulate(scenario(*arguments, **nodes))  # type: ignore[arg-type]


def test_a_prompt_alone_takes_its_chunks_and_then_a_step_for_each_token() -> None:
    whole = scenario(1, 0.0, 1, chunk_tokens=1000)
    model, result = cost(whole), simulate(whole)
    prefill_s = sum(model.prefill_s(min(1000, TOKENS - at), at) for at in range(0, TOKENS, 1000))
    assert result.ttft_s.mean == pytest.approx(prefill_s, rel=1e-3)
    assert result.tpot_s.mean == pytest.approx(model.decode_s(1, TOKENS), rel=1e-3)


def test_one_step_ends_a_prompt_and_begins_the_next() -> None:
    """3,000 tokens a step: the second has 1,096 of the first prompt and 1,904 of the second."""
    both = scenario(2, 0.0, 2, chunk_tokens=3000)
    model, result = cost(both), simulate(both)
    first_s = model.prefill_s(3000) + model.prefill_s(1096, 3000) + model.prefill_s(1904)
    assert min(result.ttfts_s) == pytest.approx(first_s, rel=1e-3)


def test_a_load_holds_up_whoever_is_in_the_step_and_nobody_else() -> None:
    """Both prompts are found whole, and come together: the first token of each waits for both loads."""
    load_s = TOKENS / BLOCK * 0.01
    alone, both = play(1, 1.0, 1), play(2, 1.0, 2)
    assert alone.ttft_s.mean == pytest.approx(load_s, rel=0.1)
    assert both.ttft_s.p50 == pytest.approx(2 * load_s, rel=0.1)
    assert both.tpot_s.mean == pytest.approx(alone.tpot_s.mean, rel=0.05)


def test_a_token_waits_for_the_load_of_who_comes_into_its_step() -> None:
    """Answers of eight tokens, so that the second client's next prompt comes before the first's last."""
    uneven = {"prompt_excess_tokens": 3000.0, "output_tokens": 8}
    apart, together = (
        simulate(scenario(clients, 1.0, 12).changed(workload=uneven)).tpot_s for clients in (1, 2)
    )
    assert together.p99 > apart.p99 + 0.16 / 7
    assert together.p99 > 1.2 * together.p50


def test_who_finds_no_room_for_its_kv_waits() -> None:
    """Tokens for both in a step, room for the KV of one: the second begins when the first has ended."""
    room_gb = 1.5 * TOKENS * 163_840 / 1e9
    narrow, wide = (
        play(2, 0.0, 2, chunk_tokens=2 * TOKENS, running_gb=size_gb) for size_gb in (room_gb, 64.0)
    )
    assert wide.ttfts_s[0] == pytest.approx(wide.ttfts_s[1])
    assert max(narrow.ttfts_s) > 1.9 * min(narrow.ttfts_s)


def test_hits_may_be_whole_prompts() -> None:
    parts = play(1, 0.3, 40)
    whole = simulate(scenario(1, 0.3, 40).changed(workload={"hits_whole": True}))
    assert set(whole.found) == {0.0, 1.0}
    assert set(parts.found) == {5 / 16}
    assert 0.1 < whole.found_share < 0.5


def test_loads_beside_steps_are_refused() -> None:
    with pytest.raises(ScenarioError, match='use "blocking"'):
        play(1, 1.0, 1, loading="overlapped")
