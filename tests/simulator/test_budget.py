"""Workers with fixed times within a budget of tokens."""

import json
from pathlib import Path

import pytest

from commands.toml_file import ScenarioError
from scenario import Scenario
from simulator.result import SimResult
from simulator.simulation import simulate


def play(folder: Path, chains: list[list[int]], gap_s: float, budget_tokens: int = 8192) -> SimResult:
    """Prompts of these blocks with answers of 101 tokens, at one worker."""
    trace = folder / f"{len(list(folder.iterdir()))}.jsonl"
    records = [
        {
            "timestamp": round(1000 * gap_s * number),
            "input_length": 512 * len(chain),
            "output_length": 101,
            "hash_ids": chain,
        }
        for number, chain in enumerate(chains)
    ]
    trace.write_text("".join(json.dumps(record) + "\n" for record in records))
    scenario = Scenario().changed(
        workload={"trace": str(trace), "requests": len(chains), "start_s": 0.0},
        nodes={"count": 1, "decode": "budget", "gate": "never", "budget_tokens": budget_tokens},
    )
    return simulate(scenario)


def test_times_are_those_given(tmp_path: Path) -> None:
    result = play(tmp_path, [[1, 2], [1, 2, 3]], gap_s=10.0)
    first_s, second_s = result.ttfts_s
    assert first_s == pytest.approx(0.01227 + 1024 * 14.04e-6)
    assert second_s == pytest.approx(0.01227 + 512 * 14.04e-6 + 1024 * 0.94e-6)
    assert result.tpot_s.p50 == pytest.approx(0.003)
    assert result.between_tokens_s.mean == pytest.approx(0.003)
    assert result.end_to_end_s.mean == pytest.approx((first_s + second_s) / 2 + 0.3)


def test_requests_are_served_side_by_side_as_far_as_the_budget_goes(tmp_path: Path) -> None:
    chains = [[n] for n in range(4)]  # 512 + 101 tokens each
    together = play(tmp_path, chains, gap_s=0.0)
    assert max(together.ttfts_s) == pytest.approx(min(together.ttfts_s))
    by_two = play(tmp_path, chains, gap_s=0.0, budget_tokens=1300)
    assert sorted(by_two.ttfts_s)[2] == pytest.approx(2 * min(by_two.ttfts_s) + 0.3)


def test_such_workers_fetch_nothing() -> None:
    with pytest.raises(ScenarioError, match='use gate = "never"'):
        simulate(Scenario().changed(nodes={"decode": "budget"}))
