"""Cases of sharing: what must be found, and be the same. A connector that stores nothing passes none of
these."""

from __future__ import annotations

from typing import Any

from engines.conformance.bench import BLOCK_TOKENS, PROMPT_TOKENS, Bench
from engines.conformance.case import Measured, case
from engines.conformance.comparison import TOLERANCE, difference
from engines.conformance.models import LONGROPE, LONGROPE_TOKENS, MLA, SLIDING
from engines.conformance.outcome import Failed

LONG_TOKENS = 1900
"""Tokens of a prompt that is computed in several chunks of 256 tokens."""


@case("same-configuration", "Another engine in the same configuration finds a prompt and answers the same.",
      "LMCache/LMCache#1139", "vllm-project/vllm#53194")  # fmt: skip
def same_configuration(bench: Bench) -> Measured:
    request = bench.prompt()
    bench.compute(bench.writer, request)
    answers = bench.find(bench.reader, request, least_tokens=512)
    return bench.check_same(answers, bench.reader.recompute([request]), "a prompt that another engine stored")


@case("damage-is-seen", "The suite's own control: KV that is wrong on purpose fails the comparison.",
      "LMCache/LMCache#4991")  # fmt: skip
def damage_is_seen(bench: Bench) -> Measured:
    request = bench.prompt()
    with bench.engine() as damaged:
        damaged.ask("damage", seed=bench.seed)
        bench.compute(damaged, request)
        answers = bench.find(bench.reader, request, least_tokens=256)
    (right,) = bench.reader.recompute([request])
    changed, largest = difference(answers.replies[0], right)
    if not changed and largest <= TOLERANCE:
        raise Failed(
            f"wrong KV moved no log-probability by more than {largest:.2g}: the comparison is worth nothing"
        )
    return {
        "hit_tokens": answers.hit_tokens,
        "logprob_difference": round(largest, 4),
        "tokens_changed": changed,
    }


@case("harmless-settings", "With other settings that change no KV (batch, memory, seed) prompts are found.",
      "vllm-project/vllm#53194")  # fmt: skip
def harmless_settings(bench: Bench) -> Measured:
    request = bench.prompt()
    bench.compute(bench.writer, request)
    harmless: dict[str, Any] = {
        "max_num_seqs": 4, "max_num_batched_tokens": 512, "num_gpu_blocks_override": 150, "seed": 7,
        "max_model_len": 1536, "async_scheduling": False,
    }  # fmt: skip
    with bench.engine(**harmless) as other:
        answers = bench.find(other, request, least_tokens=512)
        return bench.check_same(answers, other.recompute([request]), "an engine with harmless other settings")


@case("chunked-prefill", "Prompts computed in several chunks, some at once, are found nearly whole.",
      "LMCache/LMCache#1681", "kvcache-ai/Mooncake#3331")  # fmt: skip
def chunked_prefill(bench: Bench) -> Measured:
    requests = [bench.prompt(LONG_TOKENS), bench.prompt(LONG_TOKENS - 300)]
    with bench.engine(max_num_batched_tokens=256) as chunked:
        bench.compute(chunked, *requests)
        hits, measured = 0, {}
        for request in requests:
            whole = (len(request["tokens"]) - 1) // 256 * 256
            answers = bench.find(bench.reader, request, least_tokens=whole * 9 // 10)
            measured = bench.check_same(
                answers, bench.reader.recompute([request]), "a prompt computed in chunks"
            )
            hits += answers.hit_tokens
    return {**measured, "hit_tokens": hits}


def _same_with(bench: Bench, model: str, length: int = PROMPT_TOKENS, **settings: Any) -> Measured:
    request = bench.prompt(length)
    with bench.two_engines(model, **settings) as (one, other):
        bench.compute(one, request)
        answers = bench.find(other, request, least_tokens=256)
        return bench.check_same(answers, other.recompute([request]), f"a model of the kind {model}")


@case("model-mla", "Latent attention (DeepSeek): found, as near to recomputing as vLLM's own cache.",
      "sgl-project/sglang#39565")  # fmt: skip
def model_mla(bench: Bench) -> Measured:
    """Check latent attention, with a tolerance as large as the engine's own prefix cache needs.

    vLLM computes what stands behind a cached prefix with another kernel than a whole prompt, so its own
    prefix cache moves log-probabilities, too. A connector may move them as far.
    """
    request = bench.prompt()
    with bench.two_engines(MLA) as (one, other):
        bench.compute(one, request)
        answers = bench.find(other, request, least_tokens=256)
        (right,) = other.recompute([request])
        with bench.engine(MLA, with_connector=False) as alone:
            alone.serve([{"tokens": request["tokens"][: answers.hit_tokens]}], output_tokens=1)
            _, of_own_cache = difference(alone.serve([request]).replies[0], right)
        what = f"a model with MLA (with vLLM's own prefix cache by {of_own_cache:.2g})"
        measured = bench.check_same(answers, [right], what, max(TOLERANCE, 2 * of_own_cache))
    return {**measured, "own_prefix_cache_logprob_difference": round(of_own_cache, 7)}


@case("model-sliding-window", "Layers of a sliding window beside full attention (Gemma 3): found and right.",
      "LMCache/LMCache#2845", "vllm-project/vllm#41830")  # fmt: skip
def model_sliding_window(bench: Bench) -> Measured:
    # A connector for hybrid models has a group of blocks for each kind of layer.
    return _same_with(bench, SLIDING, num_gpu_blocks_override=600)


@case(
    "model-longrope", "LongRoPE (Phi-3) with one max_model_len: found and right.", "vllm-project/vllm#27431"
)
def model_longrope(bench: Bench) -> Measured:
    return _same_with(bench, LONGROPE, LONGROPE_TOKENS - 100, max_model_len=LONGROPE_TOKENS)


@case("hash-seed", "Engines that were started without PYTHONHASHSEED share, or are told what to set.",
      "LMCache/LMCache#1139", "LMCache/LMCache#2979", "vllm-project/vllm#42625")  # fmt: skip
def hash_seed(bench: Bench) -> Measured:
    request = bench.prompt()
    with bench.two_engines(environment={}, forked=False) as (one, other):
        bench.compute(one, request)
        answers = bench.find(other, request, least_tokens=256)
        return bench.check_same(answers, other.recompute([request]), "an engine with another hash seed")


@case("later-turns", "A conversation's next turn finds the turns before it.",
      "LMCache/LMCache#1316")  # fmt: skip
def later_turns(bench: Bench) -> Measured:
    talk = bench.prompt(512)
    measured: Measured = {}
    for _ in range(2):
        answered = bench.compute(bench.writer, talk, output_tokens=32)
        least = len(talk["tokens"]) // 256 * 256 - BLOCK_TOKENS
        talk = {"tokens": talk["tokens"] + answered.replies[0]["tokens"] + bench.prompt(256 - 32)["tokens"]}
        answers = bench.find(bench.reader, talk, least_tokens=least)
        measured = bench.check_same(answers, bench.reader.recompute([talk]), "a later turn")
    return measured
