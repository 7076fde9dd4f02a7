"""Roles, bounded memory, and no work that is done already."""

from __future__ import annotations

from engines.conformance.bench import Bench
from engines.conformance.case import Measured, case
from engines.conformance.models import HEAD, KV_HEADS, LAYERS
from engines.conformance.outcome import Failed

TOKEN_BYTES = 2 * LAYERS * KV_HEADS * HEAD * 4
"""Bytes of a token's KV in float32."""
FLOOD_PROMPTS, FLOOD_TOKENS = 40, 1800
GROWTH_BYTES = 160 << 20
"""Bytes that an engine may grow while it computes 295 MB of KV for a store that takes nothing. Connectors
with a bound of their own for what waits are given 64 MiB."""
STEP_PROMPTS = 8


@case("kv-consumer", "An engine with kv_role kv_consumer stores nothing.", "vllm-project/vllm#38474")
def kv_consumer(bench: Bench) -> Measured:
    stored, computed = bench.prompt(), bench.prompt()
    bench.compute(bench.writer, stored)
    with bench.engine(transfer={"kv_role": "kv_consumer"}) as consumer:
        bench.find(consumer, stored)
        bench.compute(consumer, computed)
        control = bench.prompt()
        bench.compute(bench.writer, control)
        bench.find(bench.reader, control)  # by now the other would be found, too
        hits = bench.reader.serve([computed]).hit_tokens
    if hits:
        raise Failed(f"{hits} tokens found of what a consumer computed", hit_tokens=hits)
    return {"hit_tokens": 0}


@case("kv-producer", "An engine with kv_role kv_producer loads nothing.", "vllm-project/vllm#38474")
def kv_producer(bench: Bench) -> Measured:
    request, own = bench.prompt(), bench.prompt()
    bench.compute(bench.writer, request)
    bench.find(bench.reader, request)
    with bench.engine(transfer={"kv_role": "kv_producer"}) as producer:
        hits = producer.serve([request]).hit_tokens
        bench.compute(producer, own)
        bench.find(bench.reader, own)
    if hits:
        raise Failed(f"a producer loaded {hits} tokens", hit_tokens=hits)
    return {"hit_tokens": 0}


@case("turns-store-what-is-new", "Prompts behind a long prefix offer their own blocks, not the prefix again.",
      "LMCache/LMCache#1316")  # fmt: skip
def turns_store_what_is_new(bench: Bench) -> Measured:
    prefix = bench.prompt(1024)["tokens"]
    with bench.engine(num_gpu_blocks_override=400) as engine:
        bench.compute(engine, {"tokens": prefix + bench.prompt(64)["tokens"]})
        bench.find(bench.reader, {"tokens": prefix + bench.prompt(64)["tokens"]})
        before = bench.connector.offered_bytes(engine)
        for _ in range(STEP_PROMPTS):
            bench.compute(engine, {"tokens": prefix + bench.prompt(256)["tokens"]}, output_tokens=2)
        offered = bench.connector.offered_bytes(engine) - before
    new = STEP_PROMPTS * 256 * TOKEN_BYTES
    measured = {"offered_bytes": offered, "new_bytes": new}
    if offered > 2 * new:
        raise Failed(f"{offered:,} bytes were offered to the store for {new:,} that are new", **measured)
    return measured


@case("memory-bound", "An engine stays small whose store takes nothing while it computes.",
      "kvcache-ai/Mooncake#3331", "LMCache/LMCache#1681")  # fmt: skip
def memory_bound(bench: Bench) -> Measured:
    with bench.engine(num_gpu_blocks_override=80) as engine:
        control = bench.prompt()
        bench.compute(engine, control)
        bench.find(bench.reader, control)
        engine.serve([bench.prompt(FLOOD_TOKENS)], output_tokens=1)
        before = int(engine.ask("memory_bytes"))
        bench.connector.silence()
        try:
            for _ in range(FLOOD_PROMPTS):
                engine.serve([bench.prompt(FLOOD_TOKENS)], output_tokens=1)
            grown = int(engine.ask("memory_bytes")) - before
        finally:
            bench.connector.resume()
    computed = FLOOD_PROMPTS * FLOOD_TOKENS * TOKEN_BYTES
    measured = {"grown_bytes": grown, "computed_bytes": computed}
    if grown > GROWTH_BYTES:
        raise Failed(f"the engine grew by {grown:,} bytes while it computed {computed:,} of KV", **measured)
    return measured
