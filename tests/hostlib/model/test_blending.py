"""Whether blending is worth it: the gate between fetching and blending, and computing exactly."""

from __future__ import annotations

import pytest

from hostlib.model.blending import Blending, Chunks
from hostlib.model.gate import Gate, Load
from workload.blend import BlendPlan
from workload.cost import make_cost_model
from workload.trace import Request

COST = make_cost_model("llama3-70b", "h800")
BLOCK_S = COST.fetch_s(COST.block_bytes, 200e9)
IDLE = Load(lambda home: 0.0)
CHUNKS = 10
ASKED = Request(
    0.0, 512 * (CHUNKS + 1) + 60, 10, tuple(range(CHUNKS + 2)), chunks=(None, *range(CHUNKS), None)
)
BLENDING = Blending(COST, 0.15)


def plan(prefix_blocks: int = 1) -> BlendPlan:
    made = BLENDING.plan(ASKED, prefix_blocks)
    assert made is not None
    return made


def admits(load: Load, block_s: float = BLOCK_S, held: int = 0) -> int | None:
    gate = Gate(COST.prefill_s, 512, block_s)
    admitted = BLENDING.admits(gate, plan(), ["a"] * (CHUNKS - held), load)
    assert (gate.stats.blended, gate.stats.exact) == ((0, 1) if admitted is None else (1, 0))
    return admitted


def test_an_idle_network_is_faster_than_computing() -> None:
    assert admits(IDLE, 0.5 * BLOCK_S) == CHUNKS


def test_on_a_slow_link_everything_is_computed_exactly() -> None:
    assert admits(IDLE, 40 * BLOCK_S) is None
    assert admits(Load(lambda home: 10.0)) is None


def test_what_the_node_holds_is_blended_even_if_nothing_can_be_fetched() -> None:
    assert admits(IDLE, 100 * BLOCK_S, held=CHUNKS - 1) == 0


def test_it_fetches_as_many_as_come_while_the_others_are_computed() -> None:
    alone_s = COST.prefill_s(512)
    admitted = admits(IDLE, 1.5 * alone_s, held=4)
    assert admitted is not None
    assert 0 < admitted < CHUNKS - 4


def test_a_wait_for_the_gpu_hides_the_loading() -> None:
    load_s = CHUNKS * 10 * BLOCK_S
    assert admits(Load(lambda home: 0.0, gpu_s=load_s), 10 * BLOCK_S) == CHUNKS


def test_blending_ten_chunks_saves_most_of_the_work() -> None:
    assert BLENDING.work_s(plan()) < 0.25 * BLENDING.exact_s(plan())
    assert BLENDING.exact_s(plan()) == pytest.approx(COST.request_prefill_s(ASKED.input_tokens, 1))


def test_a_prefix_that_was_computed_meanwhile_is_not_blended() -> None:
    had = Chunks(0.0, 0.0, {1: "pool", 2: "pool"})
    behind = BLENDING.planned(ASKED, 5, had)
    assert behind is not None
    assert behind.places == (5, 6, 7, 8, 9, 10)
    assert behind.work.alone_chunks == 6
    assert BLENDING.planned(ASKED, CHUNKS + 1, had) is None


def test_seconds_are_those_of_the_node() -> None:
    fast = Blending(COST, 0.15, lambda real_s: real_s / 4)
    assert fast.work_s(plan()) == pytest.approx(BLENDING.work_s(plan()) / 4)
    assert fast.rest_s(plan(), 0.01) == pytest.approx(BLENDING.rest_s(plan(), 0.04) / 4)
