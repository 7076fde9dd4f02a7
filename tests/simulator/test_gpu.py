"""A node's accelerators: prefill in chunks among which tokens are decoded."""

import pytest

from simulator.events import Loop, Steps
from simulator.gpu import Gpu
from simulator.spread import spread_of
from workload.cost import make_cost_model

COST = make_cost_model("llama3-70b", "h800")


def gpu(loop: Loop, chunk_tokens: int) -> Gpu:
    return Gpu(loop, COST, batched=True, running_tokens=1e6, chunk_tokens=chunk_tokens)


def run_beside_a_prefill(chunk_tokens: int, output_tokens: int) -> tuple[float, float]:
    """When the answer of one request and the prefill of another, begun together, have ended; seconds."""
    loop = Loop()
    shared = gpu(loop, chunk_tokens)
    ends = {}

    def answer() -> Steps:
        yield from shared.decode(output_tokens, 1000)
        ends["answer"] = loop.now

    def prefill() -> Steps:
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

    def prefill() -> Steps:
        with alone.exclusive() as turn:
            yield turn
            yield from alone.prefill(10_000, 3_000)

    loop.process(prefill())
    loop.run()
    assert loop.now == pytest.approx(COST.prefill_s(10_000, 3_000))
    assert alone.busy_s == pytest.approx(loop.now)


def test_times_between_tokens_have_the_chunks_in_them() -> None:
    loop = Loop()
    shared = gpu(loop, 8192)

    def answer() -> Steps:
        yield from shared.decode(101, 1000)

    def prefill() -> Steps:
        with shared.exclusive() as turn:
            yield turn
            yield from shared.prefill(32_768, 0)

    loop.process(answer())
    loop.process(prefill())
    loop.run()
    gaps, alone_s = spread_of([shared.gaps]), COST.decode_s(1, 1000)
    assert gaps.mean == pytest.approx(loop.now / 100, rel=0.01)  # together they are the time that it took
    assert gaps.p50 == gaps.p90 == pytest.approx(alone_s, rel=0.01)
    assert gaps.p99 > COST.prefill_s(8192)  # a chunk between two tokens


def test_a_pause_is_in_the_next_token_of_all() -> None:
    loop = Loop()
    shared = gpu(loop, 8192)

    def answer() -> Steps:
        yield from shared.decode(11, 1000)

    def load() -> Steps:
        with shared.exclusive() as turn:
            yield turn
            yield from shared.compute(2.0)

    loop.process(answer())
    loop.process(answer())
    loop.process(load())
    loop.run()
    gaps = spread_of([shared.gaps])
    assert gaps.mean == pytest.approx(loop.now / 10, rel=0.01)
    assert gaps.p99 == pytest.approx(2.0 + 2 * COST.decode_s(1, 1000, batch=2), rel=0.02)


def test_blocks_decoded_beside_tokens_slow_both_down() -> None:
    """A second of blocks beside an answer takes 1.3, and the steps meanwhile take 1.3 of theirs."""
    loop = Loop()
    shared = Gpu(loop, COST, batched=True, running_tokens=1e6, chunk_tokens=512, slowdown=1.3)
    step_s, tokens = COST.decode_s(1, 1000), 2001
    ends = {}

    def answer() -> Steps:
        yield from shared.decode(tokens, 1000)
        ends["answer"] = loop.now

    def blocks() -> Steps:
        yield from shared.interrupt(1.0)
        ends["blocks"] = loop.now

    loop.process(answer())
    loop.process(blocks())
    loop.run()
    assert ends["blocks"] == pytest.approx(1.3)
    assert ends["answer"] == pytest.approx(2000 * step_s + 0.3, rel=0.001)
    assert 2000 * step_s > 2.0


def test_blocks_decoded_while_nobody_answers_take_their_time() -> None:
    loop = Loop()
    idle = Gpu(loop, COST, batched=True, running_tokens=1e6, chunk_tokens=512, slowdown=1.3)
    loop.process(idle.interrupt(1.0))
    loop.run()
    assert loop.now == pytest.approx(1.0)
