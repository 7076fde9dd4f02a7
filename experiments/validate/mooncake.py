"""The simulator against Mooncake's paper (FAST'25): arithmetic, cache, scheduler, a long prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from experiments.simulator.result import SimResult
from experiments.simulator.scenario import Scenario, load_scenario
from experiments.simulator.simulation import simulate
from experiments.validate.literature import SCENARIOS, TOLERANCE
from experiments.validate.rows import Row
from workload.cost import GPUS, MODELS, CostModel

EXACT = 1e-9


def arithmetic() -> Iterator[Row]:
    """Mooncake's rule of when fetching beats computing, section 3.1, and the size of KV it names."""
    for gpu, published in (("a800", 6.0), ("h800", 19.0)):
        bare = replace(GPUS[gpu], count=8, prefill_utilisation=1.0)
        simulated = CostModel(MODELS["llama3-70b"], bare).break_even_bytes_per_s(8192)
        rule = mooncake_rule(bare.ops_per_s * bare.count)
        what = f"Mooncake B/G, 8 x {gpu.upper()}, prefix 8192"
        yield Row(what, "GB/s, the formula itself", rule / 1e9, simulated / 1e9, EXACT)
        yield Row(what, "GB/s, as the paper rounds it", published, simulated / 1e9, 0.03)
    kv_gib = MODELS["llama3-70b"].block_bytes(128 * 1024) / 2**30
    yield Row("Mooncake, LLaMA3-70B at 128 k tokens", "GB of KV", 40.0, kv_gib, 0.01)


def mooncake_rule(ops_per_s: float) -> float:
    """B from B/G > 2ds / (gqa (apd + bd^2)), with the paper's numbers."""
    d, s, gqa, a, b, p = 8192, 2, 8, 4, 22, 8192
    return ops_per_s * 2 * d * s / (gqa * (a * p * d + b * d * d))


CACHES = {
    "conversation": ("conversation_trace.jsonl", 2.22, 0.76),
    "synthetic": ("synthetic_trace.jsonl", 2.36, 0.52),
}
"""Figure 10: a trace's file, then hits and GPU time of prefills with the global cache over those with local
caches. The conversation trace is the one that is supplied; the other is played if it lies beside it."""
READING = (
    "The reading of what local caches hold was chosen by the conversation trace's two rows, after the "
    "conductor of section 4.1 had given 1.12 and 0.05 with local caches: requests go to the longest prefix, "
    "and to the first of several nodes that hold it, so all of them to one."
)


def global_cache(trace: Path, trial: Callable[[Scenario], SimResult] = simulate) -> Iterator[Row]:
    """Ten nodes' local caches against the same memory shared, on Mooncake's own traces."""
    for number, (name, (file, hits, prefill)) in enumerate(CACHES.items()):
        path = trace.with_name(file) if number else trace
        if not path.exists():
            continue
        local, shared = (
            trial(
                load_scenario(SCENARIOS / f"mooncake-{kind}.toml")[0].changed(workload={"trace": str(path)})
            )
            for kind in ("local", "global")
        )
        what, chosen = f"Mooncake, global cache over local caches, 10 nodes, {name}", not number
        ratio = shared.found_share / local.found_share
        yield Row(what, "ratio of hits", hits, ratio, TOLERANCE, note=READING, fitted=chosen)
        saved = 1 - shared.prefill_s / local.prefill_s
        yield Row(what, "prefill time saved", 1 - prefill, saved, TOLERANCE, fitted=chosen)


SCHEDULING = {
    "random": ("random", "never", 19.65),
    "local cache-aware": ("conductor", "never", 3.58),
    "global cache-aware": ("conductor", "always", 3.07),
}
"""Figure 5: mean TTFT on 16 nodes. Its load balancing (5.27 s) goes by numbers of requests: not here."""
PREFILLING = 8
"""Of the 16 nodes: section 5.5 finds about 1 to 1 best."""


def scheduling(trace: Path, trial: Callable[[Scenario], SimResult] = simulate) -> Iterator[Row]:
    """Mean time to the first token by who serves what, on the conversation trace."""
    base, _ = load_scenario(SCENARIOS / "mooncake-global.toml")
    for name, (scheduler, gate, published_s) in SCHEDULING.items():
        workload = {"trace": str(trace), "scheduler": scheduler}
        result = trial(base.changed(workload=workload, nodes={"count": PREFILLING, "gate": gate}))
        what = f"Mooncake, 16 nodes, {name} scheduling"
        yield Row(what, "mean TTFT, s", published_s, result.ttft_s.mean, TOLERANCE)


LONG_TOKENS, PREFIX = 128 * 1024, 0.95


def long_prompt(trial: Callable[[Scenario], SimResult] = simulate) -> Iterator[Row]:
    """Figure 14: one request of 128 k tokens, by itself, 95 % of it in another's memory or nowhere."""
    base, _ = load_scenario(SCENARIOS / "mooncake-global.toml")
    alone = {"scheduler": "random", "requests": 1, "hit_share": 0.0, "prompt_tokens": LONG_TOKENS}
    computed, fetched = (
        trial(base.changed(workload=alone | {"hit_share": share, "output_tokens": 1}, nodes={"count": 2}))
        for share in (0.0, PREFIX)
    )
    what = "Mooncake, 128 k tokens, 95 % of them cached"
    saved = 1 - fetched.prefill_s / computed.prefill_s
    yield Row(what, "prefill time saved", 0.92, saved, TOLERANCE)
    yield Row(what, "TTFT saved", 0.86, 1 - fetched.ttft_s.mean / computed.ttft_s.mean, TOLERANCE)
