"""A node's accelerators: prefill in chunks among which tokens are decoded."""

import pytest

from experiments.simulator.events import Loop
from experiments.simulator.gpu import Gpu
from workload.cost import make_cost_model

COST = make_cost_model("llama3-70b", "h800")


def gpu(loop: Loop, chunk_tokens: int) -> Gpu:
    return Gpu(loop, COST, batched=True, running_tokens=1e6, chunk_tokens=chunk_tokens)


def run_beside_a_prefill(chunk_tokens: int, output_tokens: int) -> tuple[float, float]:
    """When the answer of one request and the prefill of another, begun together, have ended; seconds."""
    loop = Loop()
    shared = gpu(loop, chunk_tokens)
    ends = {}

    def answer():
        yield from shared.decode(output_tokens, 1000)
        ends["answer"] = loop.now

    def prefill():
        with shared.exclusive() as turn:
            yield turn
            yield from shared.prefill(32_768, 0)
        ends["prefill"] = loop.now

    loop.process(answer())
    loop.process(prefill())
    loop.run()
    return ends["answer"], ends["prefill"]


def test_a_token_comes_with_every_chunk() -> None:
    answer_s, prefill_s = run_beside_a_prefill(8192, 5)  # four tokens after the first, four chunks and a bit
    whole_s = COST.prefill_s(32_768)
    assert answer_s < whole_s * 1.02
    assert prefill_s == pytest.approx(whole_s + 4 * COST.decode_s(1, 1000), rel=0.01)


def test_an_unchunked_prefill_holds_up_every_token_but_one() -> None:
    answer_s, prefill_s = run_beside_a_prefill(1_000_000, 5)
    assert answer_s == pytest.approx(prefill_s + 3 * COST.decode_s(1, 1000), rel=0.01)


def test_chunks_cost_what_the_whole_costs() -> None:
    loop = Loop()
    alone = gpu(loop, 512)

    def prefill():
        with alone.exclusive() as turn:
            yield turn
            yield from alone.prefill(10_000, 3_000)

    loop.process(prefill())
    loop.run()
    assert loop.now == pytest.approx(COST.prefill_s(10_000, 3_000))
    assert alone.busy_s == pytest.approx(loop.now)
