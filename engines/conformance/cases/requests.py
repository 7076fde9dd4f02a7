"""Cases of requests: preemption, abort, speculation and scheduling leave answers as those of recomputing."""

from __future__ import annotations

from typing import Any

from engines.conformance.bench import Bench
from engines.conformance.case import Measured, case
from engines.conformance.outcome import Failed, LeftOut

CROWD = 5
SPECULATION = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 3}


@case(
    "preemption", "Requests that are preempted and resumed answer the same.", "vllm-project/vllm-ascend#14055"
)
def preemption(bench: Bench) -> Measured:
    requests = [bench.prompt(300 + 7 * number) for number in range(CROWD)]
    right = bench.writer.recompute(requests, output_tokens=120)
    for request in requests:
        bench.find(bench.writer, request)
    with bench.engine(num_gpu_blocks_override=52, max_model_len=1024) as small:
        answers = small.serve(requests, output_tokens=120, limit_s=240.0)
        if not answers.preemptions:
            raise LeftOut("nothing was preempted")
        return {
            **bench.check_same(answers, right, "requests that were preempted"),
            "preemptions": answers.preemptions,
        }


@case("abort-while-loading", "A request aborted while it loads harms none of those after it.",
      "vllm-project/vllm#34484", "sgl-project/sglang#31315")  # fmt: skip
def abort_while_loading(bench: Bench) -> Measured:
    requests = [bench.prompt() for _ in range(4)]
    bench.compute(bench.writer, *requests)
    measured: Measured = {}
    with bench.engine(num_gpu_blocks_override=80) as engine:
        for steps, request in enumerate(requests, 1):
            bench.find(bench.reader, request)
            unfinished = engine.ask("abort", tokens=request["tokens"], steps=steps)
            if unfinished:
                raise Failed(f"{unfinished} requests never ended after an abort")
            other = bench.prompt()
            answers = engine.serve([other, request])
            measured = bench.check_same(
                answers, bench.reader.recompute([other, request]), "requests after an abort"
            )
    return measured


@case("races", "Requests that arrive together and share a prefix answer the same.",
      "LMCache/LMCache#4385", "kvcache-ai/Mooncake#4239")  # fmt: skip
def races(bench: Bench) -> Measured:
    prefix = bench.prompt(512)["tokens"]
    requests = [{"tokens": prefix + bench.prompt(40 + 30 * number)["tokens"]} for number in range(8)]
    right = bench.writer.recompute(requests)
    measured: Measured = {}
    with bench.engine(num_gpu_blocks_override=100) as engine:
        for turn in range(3):
            answers = engine.serve(requests if turn % 2 else requests[::-1])
            expected = right if turn % 2 else right[::-1]
            measured = bench.check_same(answers, expected, f"8 requests at once, turn {turn + 1}")
            engine.forget()
    return measured


def _found_with(bench: Bench, what: str, **settings: Any) -> Measured:
    """Serve prompts that another engine stored, one at a time and then together."""
    requests = [bench.prompt(400 + 50 * number) for number in range(CROWD)]
    bench.compute(bench.writer, *requests)
    right = bench.writer.recompute(requests)
    with bench.engine(**settings) as engine:
        hits = 0
        for request, expected in zip(requests, right, strict=True):
            answers = bench.find(engine, request)
            bench.check_same(answers, [expected], what)
            hits += answers.hit_tokens
        engine.forget()
        return {**bench.check_same(engine.serve(requests), right, what), "hit_tokens": hits}


@case("speculation-ngram", "N-gram speculation: found prompts neither end the engine nor change answers.",
      "vllm-project/vllm-ascend#14055", "vllm-project/vllm#46014")  # fmt: skip
def speculation_ngram(bench: Bench) -> Measured:
    return _found_with(bench, "n-gram speculation", speculative_config=SPECULATION)


@case(
    "async-scheduling", "Steps scheduled while the one before still runs.", "vllm-project/vllm-ascend#14055"
)
def async_scheduling(bench: Bench) -> Measured:
    return _found_with(bench, "asynchronous scheduling", async_scheduling=True)


@case("no-async-scheduling", "Steps scheduled one after the other.", "vllm-project/vllm-ascend#14055")
def no_async_scheduling(bench: Bench) -> Measured:
    return _found_with(bench, "synchronous scheduling", async_scheduling=False)


@case(
    "prompt-logprobs",
    "Log-probabilities of the prompt's own tokens, though its KV could be found.",
    "vllm-project/vllm#53194",
)
def prompt_logprobs(bench: Bench) -> Measured:
    request = bench.prompt()
    bench.compute(bench.writer, request)
    bench.find(bench.reader, request)
    bench.reader.forget()
    answers = bench.reader.serve([request], prompt_logprobs=0)
    right = bench.writer.serve([request], recompute=True, prompt_logprobs=0)
    told, expected = (one.replies[0]["prompt_logprobs"] for one in (answers, right))
    if len(told) != len(request["tokens"]) - 1:
        raise Failed(f"{len(told)} log-probabilities came for {len(request['tokens'])} tokens")
    largest = max(abs(one - other) for one, other in zip(told, expected, strict=True))
    measured = bench.check_same(answers, right.replies, "a request for the prompt's log-probabilities")
    if largest > 1e-4:
        raise Failed(
            f"a log-probability of the prompt is off by {largest:.2g}", prompt_logprob_difference=largest
        )
    return {**measured, "prompt_logprob_difference": round(largest, 7)}
