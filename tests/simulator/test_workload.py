"""Who arrives when."""

from statistics import fmean

import pytest

from scenario import Scenario
from simulator.workload import delay, make_demand
from workload.trace import Request


def test_late_requests_do_not_overtake_each_other_at_their_node() -> None:
    assigned = [(Request(float(n // 8), 512, 1, (n,)), n % 2) for n in range(200)]
    late = delay(assigned, 0.5, seed=1)
    arrivals = [request.arrival_s for request, _ in late]
    assert arrivals == sorted(arrivals)
    for node in (0, 1):
        assert [r.blocks for r, at in late if at == node] == [r.blocks for r, at in assigned if at == node]
    nominal = {request.blocks: request.arrival_s for request, _ in assigned}
    assert all(0.0 <= request.arrival_s - nominal[request.blocks] <= 0.5 for request, _ in late)
    assert len({request.arrival_s - nominal[request.blocks] for request, _ in late}) > 20


def prompts(most: int, seed: int = 1) -> list[Request]:
    workload = {"hit_share": 1.0, "requests": 2000, "output_tokens": 8, "output_tokens_most": most}
    scenario = Scenario().changed(workload=workload | {"prompt_excess_tokens": 3000.0, "seed": seed})
    return list(make_demand(scenario.workload, scenario.model.block_tokens, scenario.nodes.blend).requests)


def test_answers_are_all_the_same_unless_they_are_to_differ() -> None:
    assert {request.output_tokens for request in prompts(0)} == {8}


def test_lengths_of_answers_are_geometric_and_cut() -> None:
    lengths = [request.output_tokens for request in prompts(64)]
    assert fmean(lengths) == pytest.approx(8, rel=0.08)
    assert min(lengths) == 1
    assert max(lengths) <= 64
    for tokens in (1, 4, 8):  # of those that come so far, one in eight ends there
        reached = [length for length in lengths if length >= tokens]
        assert sum(length == tokens for length in reached) / len(reached) == pytest.approx(1 / 8, rel=0.25)
    assert max(request.output_tokens for request in prompts(10)) == 10


def test_prompts_are_the_same_whatever_is_answered() -> None:
    assert [r.input_tokens for r in prompts(0)] == [r.input_tokens for r in prompts(64)]
    assert [r.output_tokens for r in prompts(64)] != [r.output_tokens for r in prompts(64, seed=2)]
