"""What is blended of a request, and how long that takes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workload.blend import DEFAULT_SHARE, plan_blend
from workload.cost import BlendWork, CostModel, make_cost_model
from workload.trace import Request

COST = make_cost_model("llama3-70b", "h800")


def request(*chunks: int | None, tokens: int | None = None) -> Request:
    length = 512 * len(chunks) if tokens is None else tokens
    return Request(0.0, length, 10, tuple(range(len(chunks))), chunks=chunks)


def layer_by_layer_s(cost: CostModel, work: BlendWork, load_s: float) -> float:
    """The pipeline as it is: a layer is computed when the one before is done and its own KV is there."""
    layers = cost.model.layers
    first, later = (ops * cost.prefill_s(1) / cost.model.prefill_ops(1) for ops in cost.model.blend_ops(work))
    now_s = work.alone_chunks * cost.prefill_s(cost.block_tokens) + first
    for layer in range(1, layers):
        now_s = max(now_s, load_s * (layer + 1) / layers) + later
    return now_s


WORKS = st.builds(
    BlendWork,
    st.integers(0, 20_000),
    st.integers(1, 40).map(lambda blocks: 512 * blocks),
    st.integers(1, 2000),
    st.floats(0.0, 1.0),
    st.integers(0, 5),
)


@given(WORKS, st.sampled_from([1, 2, 80]))
def test_layers_are_blended_one_after_the_other(work: BlendWork, layers: int) -> None:
    cost = replace(COST, model=replace(COST.model, layers=layers))
    assert cost.blend_s(work) == pytest.approx(layer_by_layer_s(cost, work, 0.0))


@given(WORKS, st.floats(0.0, 3.0))
def test_on_a_gpu_that_was_idle_what_is_left_ends_when_the_pipeline_would_have(
    work: BlendWork, load_s: float
) -> None:
    """But for the second layer's KV, which may come later than the first layer is done."""
    end_s = load_s + COST.blend_rest_s(work, load_s)
    assert COST.blend_s(work) <= end_s + 1e-9
    pipeline_s = layer_by_layer_s(COST, work, load_s)
    assert end_s <= pipeline_s + 1e-9
    assert pipeline_s <= end_s + 2 * load_s / COST.model.layers + 1e-9


@given(WORKS)
def test_recomputing_all_tokens_is_prefill(work: BlendWork) -> None:
    whole = replace(work, share=1.0, alone_chunks=0)
    exact_s = COST.prefill_s(work.chunk_tokens + work.new_tokens, work.context_tokens)
    assert COST.blend_s(whole) == pytest.approx(exact_s)


def test_the_first_layer_is_computed_wholly_and_of_the_others_a_share() -> None:
    work = BlendWork(512, 10 * 512, 60, 0.15)
    chunks_s = COST.prefill_s(10 * 512, 512)
    new_s = COST.prefill_s(60, 11 * 512)
    assert COST.blend_s(work) == pytest.approx((1 + 0.15 * 79) / 80 * chunks_s + new_s)
    alone = replace(work, alone_chunks=3)
    assert COST.blend_s(alone) == pytest.approx(COST.blend_s(work) + 3 * COST.prefill_s(512))


def test_chunks_behind_the_prefix_are_blended_and_the_rest_is_computed() -> None:
    plan = plan_blend(request(None, 7, 8, None, 9, None, tokens=5 * 512 + 60), 2, 512, 0.15)
    assert plan is not None
    assert (plan.places, plan.exact_blocks) == ((2, 4), 2)
    assert plan.work == BlendWork(2 * 512, 2 * 512, 512 + 60, 0.15)
    assert plan.recomputed_tokens == round(0.15 * 1024)


def test_what_is_before_the_first_chunk_is_exact() -> None:
    plan = plan_blend(request(None, None, 7, None), 0, 512, 0.15)
    assert plan is not None
    assert plan.exact_blocks == 2


def test_chunks_that_nobody_has_are_computed_alone() -> None:
    plan = plan_blend(request(None, 7, 8, 9, None), 1, 512, DEFAULT_SHARE, alone=[2, 3])
    assert plan is not None
    assert plan.work.alone_chunks == 2
    assert plan.recomputed_tokens == round(DEFAULT_SHARE * 512)


@pytest.mark.parametrize("prefix_blocks", [3, 4])
def test_nothing_is_blended_where_no_chunk_is_behind_the_prefix(prefix_blocks: int) -> None:
    assert plan_blend(request(None, 7, 8, None), prefix_blocks, 512, 0.15) is None
    assert plan_blend(request(), 0, 512, 0.15) is None


def test_the_last_token_is_computed_even_if_a_chunk_ends_the_prompt() -> None:
    plan = plan_blend(request(None, 7), 1, 512, 0.15)
    assert plan is not None
    assert plan.work.new_tokens == 1
