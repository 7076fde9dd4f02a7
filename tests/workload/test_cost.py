from dataclasses import replace

import pytest

from workload.cost import GPUS, MODELS, CostError, CostModel, make_cost_model


def test_kv_sizes_of_the_presets() -> None:
    """Mooncake gives 40 GB for 128 k tokens of LLaMA3-70B; DeepSeek-V3's MLA keeps 70 KB a token."""
    assert MODELS["llama3-70b"].kv_bytes_per_token * 128 * 1024 == pytest.approx(40 * 2**30, rel=0.01)
    assert MODELS["llama3-70b-fp8"].kv_bytes_per_token == 160 * 1024
    assert MODELS["deepseek-v3"].kv_bytes_per_token == pytest.approx(70e3, rel=0.01)


@pytest.mark.parametrize(("gpu", "published_gb_s"), [("a800", 6.0), ("h800", 19.0)])
def test_break_even_is_the_published_rule(gpu: str, published_gb_s: float) -> None:
    """FAST'25: a prefix of 8,192 tokens needs 6 GB/s on 8 A800 and 19 GB/s on 8 H800, at peak."""
    cost = make_cost_model("llama3-70b", gpu)
    at_peak = cost.break_even_bytes_per_s(8192) / cost.gpu.prefill_utilisation
    assert at_peak / 1e9 == pytest.approx(published_gb_s, rel=0.05)


@pytest.mark.parametrize("model", MODELS)
def test_prefill_adds_up(model: str) -> None:
    cost = make_cost_model(model)
    whole = cost.prefill_s(4096)
    parts = sum(cost.block_prefill_s(depth) for depth in range(8))
    assert parts == pytest.approx(whole)
    assert cost.block_prefill_s(40) > cost.block_prefill_s(0)


def test_prefill_is_about_two_operations_a_weight_and_token() -> None:
    for spec in MODELS.values():
        assert spec.prefill_ops(1, 0) == pytest.approx(2 * spec.weights, rel=0.25)


def test_decode_grows_with_context_and_shrinks_with_batch() -> None:
    cost = CostModel()
    assert 0 < cost.decode_s(100, 1000) < cost.decode_s(100, 100_000)
    assert cost.decode_s(100, 1000, batch=8) < cost.decode_s(100, 1000)


def test_launching_is_shared_by_a_batch_and_comes_once_with_a_prefill_that_reads_the_weights() -> None:
    plain = make_cost_model("llama3-70b", "a800")
    cost = replace(plain, launch_s=0.006)
    assert cost.decode_s(100, 1000) - plain.decode_s(100, 1000) == pytest.approx(100 * 0.006)
    assert cost.decode_s(1, 1000, batch=8) - plain.decode_s(1, 1000, batch=8) == pytest.approx(0.006 / 8)
    more_s = cost.request_prefill_s(8192, 0) - plain.request_prefill_s(8192, 0)
    assert more_s == pytest.approx(0.006 + plain.decode_s(1, -0.5))  # of a token without any context
    assert cost.computed_s(8192, 16, [3, 9]) - plain.computed_s(8192, 16, [3, 9]) == pytest.approx(more_s)
    assert cost.prefill_s(512) == plain.prefill_s(512)  # a part of a prefill


def test_unknown_presets_list_those_that_exist() -> None:
    with pytest.raises(CostError, match="llama3-70b"):
        make_cost_model("x")
    with pytest.raises(CostError, match=", ".join(GPUS)):
        make_cost_model(gpu="x")


@pytest.mark.parametrize(
    ("computed", "spans"),
    [
        ([0, 1, 2, 3], [(2000, 0)]),
        ([2, 3], [(976, 1024)]),
        ([], [(1, 1999)]),
        ([0], [(512, 0), (1, 1999)]),
        ([1, 3], [(512, 512), (464, 1536)]),
    ],
)
def test_what_is_computed_between_held_blocks(computed: list[int], spans: list[tuple[int, int]]) -> None:
    assert CostModel().computed_spans(2000, 4, computed) == spans


def test_a_range_up_to_the_last_block_is_what_its_places_are() -> None:
    cost = CostModel()
    for input_tokens in (1, 511, 512, 513, 2048, 2049):
        for blocks in range(6):
            for held in range(blocks + 1):
                suffix = range(held, blocks)
                spans = cost.computed_spans(input_tokens, blocks, list(suffix))
                assert cost.computed_spans(input_tokens, blocks, suffix) == spans


@pytest.mark.parametrize("input_tokens", [1, 511, 512, 513, 2047, 2048, 3000])
def test_computing_behind_a_prefix_takes_what_the_gate_counts(input_tokens: int) -> None:
    """A trace's blocks may end before its tokens do: what is behind them is computed."""
    cost = CostModel()
    for blocks in range(5):
        for held in range(blocks + 1):
            spans = cost.computed_spans(input_tokens, blocks, range(held, blocks))
            assert spans == [cost.prefill_span(input_tokens, held)]
            assert cost.computed_s(input_tokens, blocks, range(held, blocks)) == pytest.approx(
                cost.request_prefill_s(input_tokens, held)
            )
