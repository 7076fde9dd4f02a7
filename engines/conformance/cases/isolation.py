"""Cases of isolation: each thing that KV depends on is changed alone. Using what was stored is a failure.

Each case first lets an engine that is the same find the prompt, so that a connector that stores nothing does
not pass. It also checks that the change moves log-probabilities, so that a hit would have been wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from engines.conformance.bench import Bench
from engines.conformance.case import Measured, case
from engines.conformance.models import HIDDEN, LLAMA, LONGROPE, LONGROPE_TOKENS, OTHER_LLAMA
from engines.conformance.outcome import Failed
from engines.conformance.weights import RANK, edit_tensor, write_adapter

WITH_ADAPTERS: dict[str, Any] = {"enable_lora": True, "max_lora_rank": RANK, "max_loras": 2}


def _apart(bench: Bench, what: str, **changes: Any) -> Measured:
    """Check that an engine with `changes` finds nothing of what one in the plain configuration stored."""
    request = bench.prompt()
    before = bench.compute(bench.writer, request).replies[0]
    bench.find(bench.reader, request)
    with bench.engine(**changes) as other:
        return bench.check_isolated(other, request, before, what)


def _other_release(bench: Bench, what: str, source: str, change: Callable[[Path], None] | None) -> Measured:
    """Check that another release of a model at the same path finds nothing of what the one before stored."""
    request = bench.prompt()
    served = bench.served_model(LLAMA)
    with bench.two_engines(served) as (first, second):
        before = bench.compute(first, request).replies[0]
        bench.find(second, request)
    served = bench.served_model(source, change)
    with bench.engine(served) as other:
        return bench.check_isolated(other, request, before, what)


@case("weights", "Other weights at the same path and of the same size.", "jundot/osaurus#1989")
def weights(bench: Bench) -> Measured:
    return _other_release(bench, "other weights at the same path", OTHER_LLAMA, None)


@case("weights-one-tensor", "One tensor of the weights edited, as a repaired scale or a merged layer.",
      "antirez/ds4#805", "sgl-project/sglang#24758")  # fmt: skip
def weights_one_tensor(bench: Bench) -> Measured:
    edit = partial(edit_tensor, name="model.layers.0.post_attention_layernorm.weight")
    return _other_release(bench, "one tensor of 1 KiB edited", LLAMA, edit)


@case("adapter", "Requests with an adapter, with another one, and without: three kinds of KV.",
      "vllm-project/vllm#44250", "vllm-project/vllm#53495")  # fmt: skip
def adapter(bench: Bench) -> Measured:
    folders = [bench.folder / "adapters" / name for name in ("first", "second")]
    for seed, folder in enumerate(folders):
        write_adapter(folder, bench.seed + seed)
    first, second = ([name, number, str(bench.folder / "adapters" / name)] for number, name in
                     enumerate(("first", "second"), 1))  # fmt: skip
    request = bench.prompt()
    with bench.two_engines(**WITH_ADAPTERS) as (one, other):
        before = bench.compute(one, {**request, "adapter": first}).replies[0]
        bench.find(other, {**request, "adapter": first})
        bench.check_isolated(other, {**request, "adapter": second}, before, "another adapter")
        return bench.check_isolated(other, request, before, "no adapter")


@case("adapter-rewritten", "An adapter written anew to the same path is another one.",
      "vllm-project/vllm#42125", "vllm-project/vllm#48352")  # fmt: skip
def adapter_rewritten(bench: Bench) -> Measured:
    """Rewrite an adapter as training does it: the first engine goes on with what it has loaded, and is not
    told."""
    folder = bench.folder / "adapters" / "trained"
    write_adapter(folder, bench.seed)
    tuned = ["trained", 1, str(folder)]
    request, other_request, warm_up = bench.prompt(), bench.prompt(), bench.prompt(64)
    with bench.two_engines(**WITH_ADAPTERS) as (one, second):
        before = bench.compute(one, {**request, "adapter": tuned}).replies[0]
        bench.compute(second, {**warm_up, "adapter": tuned})
        bench.find(second, {**request, "adapter": tuned})
        write_adapter(folder, bench.seed + 1)
        later = bench.compute(one, {**other_request, "adapter": tuned}).replies[0]
    with bench.engine(**WITH_ADAPTERS) as other:
        bench.check_isolated(other, {**request, "adapter": tuned}, before, "an adapter written anew")
        return bench.check_isolated(
            other, {**other_request, "adapter": tuned}, later,
            "an adapter written anew while another engine went on with the old one",
        )  # fmt: skip


@case("adapter-loaded-again", "An adapter loaded again from its path, with other content, as an engine runs.",
      "vllm-project/vllm#42125", "vllm-project/vllm#30931")  # fmt: skip
def adapter_loaded_again(bench: Bench) -> Measured:
    """Check that an adapter loaded again is another one to other engines. The engine's own prefix cache takes
    it for the one before."""
    folder = bench.folder / "adapters" / "again"
    write_adapter(folder, bench.seed)
    first, again = (["again", number, str(folder)] for number in (1, 2))
    request, warm_up = bench.prompt(), bench.prompt(64)
    with bench.two_engines(**WITH_ADAPTERS) as (one, second):
        bench.compute(one, {**warm_up, "adapter": first})
        bench.compute(second, {**warm_up, "adapter": first})
        before = bench.compute(one, {**request, "adapter": first}).replies[0]
        bench.find(second, {**request, "adapter": first})
        write_adapter(folder, bench.seed + 1)
        bench.compute(one, {**warm_up, "adapter": again})
        bench.compute(one, {**request, "adapter": again})
    with bench.engine(**WITH_ADAPTERS) as other:
        bench.compute(other, {**warm_up, "adapter": again})
        return bench.check_isolated(other, {**request, "adapter": again}, before, "an adapter loaded again")


@case("cache-salt", "Requests with another cache_salt, which is how tenants are kept apart.",
      "vllm-project/vllm#53495", "vllm-project/vllm#53194")  # fmt: skip
def cache_salt(bench: Bench) -> Measured:
    """Check that other salts find nothing, although their KV is the same."""
    request = bench.prompt()
    bench.compute(bench.writer, {**request, "salt": "one tenant"})
    bench.find(bench.reader, {**request, "salt": "one tenant"})
    for other in ({**request, "salt": "another tenant"}, request):
        bench.reader.forget()
        hits = bench.reader.serve([other]).hit_tokens
        if hits:
            raise Failed(f"{hits} tokens found under {other.get('salt', 'no salt')!r}", hit_tokens=hits)
    return {"hit_tokens": 0}


@case(
    "prompt-embeddings",
    "Prompts given as embeddings, which have no token ids to be named by.",
    "vllm-project/vllm#53495",
)
def prompt_embeddings(bench: Bench) -> Measured:
    shape = {"embeds_tokens": 645, "embeds_width": HIDDEN}
    first, second = ({"embeds_seed": bench.seed + number, **shape} for number in range(2))
    with bench.engine(enable_prompt_embeds=True) as one:
        before = bench.compute(one, first).replies[0]
        return bench.check_isolated(one, second, before, "other embeddings of the same length")


@case("dtype", "Weights and KV in another type.", "sgl-project/sglang#24758")
def dtype(bench: Bench) -> Measured:
    return _apart(bench, "bfloat16 in place of float32", dtype="bfloat16")


@case(
    "kv-cache-dtype",
    "KV in another type than the weights.",
    "sgl-project/sglang#24758",
    "vllm-project/vllm#53194",
)
def kv_cache_dtype(bench: Bench) -> Measured:
    return _apart(bench, "KV in fp8", kv_cache_dtype="fp8_e5m2")


@case("rope-overridden", "Other rotary embeddings by hf_overrides.", "vllm-project/vllm#53194")
def rope_overridden(bench: Bench) -> Measured:
    rope = {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0}
    return _apart(bench, "other rotary embeddings", hf_overrides={"rope_parameters": rope})


@case(
    "longrope-max-model-len",
    "LongRoPE's factors, which vLLM chooses by max_model_len.",
    "vllm-project/vllm#27431",
)
def longrope_max_model_len(bench: Bench) -> Measured:
    request = bench.prompt(LONGROPE_TOKENS - 100)
    with bench.two_engines(LONGROPE, max_model_len=2048) as (one, same):
        before = bench.compute(one, request).replies[0]
        bench.find(same, request)
    with bench.engine(LONGROPE, max_model_len=LONGROPE_TOKENS) as other:
        return bench.check_isolated(
            other, request, before, "LongRoPE's short factors in place of the long ones"
        )


def _readable(bench: Bench, what: str, tolerance: float = 1e-4, **changes: Any) -> Measured:
    """Check another arrangement of the same KV: whatever is found of it has to be right."""
    request = bench.prompt()
    bench.compute(bench.writer, request)
    bench.find(bench.reader, request)
    with bench.engine(**changes) as other:
        answers = other.serve([request])
        return bench.check_same(answers, other.recompute([request]), what, tolerance)


@case("block-size", "Blocks of another size: whatever is found is right.", "ai-dynamo/dynamo#14416")
def block_size(bench: Bench) -> Measured:
    return _readable(bench, "blocks of 64 tokens in place of 32", block_size=64)


@case("tensor-parallel", "A model split over two workers, each with half of a block: what is found is right.",
      "ai-dynamo/dynamo#14416")  # fmt: skip
def tensor_parallel(bench: Bench) -> Measured:
    return _readable(bench, "two workers in place of one", tensor_parallel_size=2)
