"""The simulator against Mooncake's paper (FAST'25): arithmetic, cache, scheduler, a long prompt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from experiments.validate.literature import SCENARIOS, TOLERANCE
from experiments.validate.rows import Row
from scenario import Scenario, load_scenario
from simulator.result import SimResult
from simulator.simulation import simulate
from workload.cost import GPUS, MODELS, CostModel

EXACT = 1e-9


def arithmetic() -> Iterator[Row]:
    """Yield the link rate at which fetching beats computing (section 3.1), and the size of KV named there."""
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
    """Return the bytes a second at which fetching and computing take the same time, with the paper's numbers.

    The rule is B/G > 2ds / (gqa (apd + bd^2)); `ops_per_s` is G.
    """
    d, s, gqa, a, b, p = 8192, 2, 8, 4, 22, 8192
    return ops_per_s * 2 * d * s / (gqa * (a * p * d + b * d * d))


@dataclass(frozen=True, slots=True)
class Published:
    """Published figures on one trace; heights of bars are read from the paper's vector graphics."""

    file: str
    hits: float
    """Hits with the global cache over those with local caches (figure 10)."""
    prefill: float
    """GPU time of prefills with the global cache over that with local caches (figure 10)."""
    hit_share: float
    """Share of the blocks that hit with the global cache (figure 10)."""
    prefill_s: float
    """Seconds of prefill of a request with the global cache (figure 10)."""
    alone_s: float
    """Seconds of prefill of a request if nothing is cached, as in vLLM (figure 8)."""
    of_most: float
    """Hits with 3 million cached tokens over those without a limit (figure 9)."""


TRACES = {
    "conversation": Published("conversation_trace.jsonl", 2.22, 0.76, 0.375, 1.051, 1.661, 0.41),
    "synthetic": Published("synthetic_trace.jsonl", 2.36, 0.52, 0.622, 0.783, 2.022, 0.46),
}
"""Published figures by trace; the synthetic trace is played if it lies beside
the given conversation trace."""
NO_LIMIT_GB = 1e6
READING = (
    "The reading of what local caches hold was chosen by the conversation trace's two rows, after the "
    "conductor of section 4.1 had given 1.12 and 0.05 with local caches: requests go to the longest prefix, "
    "and to the first of several nodes that hold it, so all of them to one."
)


def global_cache(trace: Path) -> Iterator[Row]:
    """Yield ten nodes' local caches against the same memory shared, on Mooncake's own traces."""
    for name, path, published in _played(trace):
        local, shared, endless, nothing = (
            simulate(base.changed(workload={"trace": str(path)} | workload, nodes=nodes))
            for base, workload, nodes in _caches()
        )
        what, chosen = f"Mooncake, global cache over local caches, 10 nodes, {name}", path == trace
        ratio = shared.found_share / local.found_share
        yield Row(what, "ratio of hits", published.hits, ratio, TOLERANCE, note=READING, fitted=chosen)
        saved = 1 - shared.prefill_s / local.prefill_s
        yield Row(what, "prefill time saved", 1 - published.prefill, saved, TOLERANCE, fitted=chosen)
        what = f"Mooncake, global cache, 10 nodes, {name}"
        yield Row(what, "share of hits", published.hit_share, shared.found_share, TOLERANCE)
        each_s = shared.prefill_s / shared.requests
        yield Row(what, "prefill of a request, s", published.prefill_s, each_s, TOLERANCE)
        each_s = nothing.prefill_s / nothing.requests
        what = f"Mooncake, nothing held, {name}"
        yield Row(what, "prefill of a request, s", published.alone_s, each_s, TOLERANCE)
        share = local.found_share / endless.found_share
        what = f"Mooncake, 3 million tokens held over all, {name}"
        yield Row(what, "ratio of hits", published.of_most, share, TOLERANCE)


def _caches() -> Iterator[tuple[Scenario, dict[str, Any], dict[str, Any]]]:
    """Yield local caches, a global one, one without limit, and none, with which no prefix was seen before."""
    local, shared = (load_scenario(SCENARIOS / f"mooncake-{kind}.toml")[0] for kind in ("local", "global"))
    yield local, {}, {}
    yield shared, {}, {}
    yield local, {}, {"dram_gb": NO_LIMIT_GB}
    yield local, {"reuse": 0.0}, {}


def _played(trace: Path) -> Iterator[tuple[str, Path, Published]]:
    """Yield the traces whose files exist."""
    for number, (name, published) in enumerate(TRACES.items()):
        path = trace.with_name(published.file) if number else trace
        if path.exists():
            yield name, path, published


SCHEDULE_S = 0.055
"""Seconds until a request is sent to a node: the mean of the ten bars of figure 14."""
NODES = 16


def _decoders(count: int) -> dict[str, Any]:
    """Return the fields of `count` decoders.

    A first token is there when the KV is at the decoder (section 5.4.3): sent as between peers, and loaded
    from DRAM, where 42.9 GB take 0.42 s (figure 14). KV has nine tenths of 8 x 80 GB, less 141 GB of weights.
    """
    return {"count": count, "running_gb": 435.0, "load_gbyte_s": 102.0}


SCHEDULING = {
    "random": ("random", "never", 19.65),
    "local cache-aware": ("conductor", "never", 3.58),
    "global cache-aware": ("conductor", "always", 3.07),
}
"""Scheduler, gate and published mean TTFT on 16 nodes in seconds (figure 5).

Mooncake's load balancing (5.27 s) goes by numbers of requests and is not in the simulator.
"""
PREFILLING = 8
"""Number of nodes that prefill: section 5.5 finds that about half of the nodes is best."""


def scheduling(trace: Path) -> Iterator[Row]:
    """Yield the mean time to the first token by scheduling, on the conversation trace."""
    base, _ = load_scenario(SCENARIOS / "mooncake-global.toml")
    for name, (scheduler, gate, published_s) in SCHEDULING.items():
        workload = {"trace": str(trace), "scheduler": scheduler}
        nodes = {"count": PREFILLING, "gate": gate}
        result = simulate(
            base.changed(workload=workload, nodes=nodes, decoders=_decoders(NODES - PREFILLING))
        )
        what = f"Mooncake, 16 nodes, {name} scheduling"
        yield Row(what, "mean TTFT, s", published_s, result.ttft_s.mean + SCHEDULE_S, TOLERANCE)


SPLITS = {5: 5.714, 6: 1.688, 7: 1.278, 8: 1.167, 9: 1.099, 10: 1.087, 11: 1.113}
"""Mean TTFT in seconds by the number of 16 nodes that prefill, from the vector graphics of figure 15b."""


def splits(trace: Path) -> Iterator[Row]:
    """Yield the mean TTFT by the number of nodes that prefill, on the synthetic trace at its own times."""
    base, _ = load_scenario(SCENARIOS / "mooncake-global.toml")
    path = trace.with_name(TRACES["synthetic"].file)
    for count, published_s in SPLITS.items() if path.exists() else ():
        nodes, decoders = {"count": count}, _decoders(NODES - count)
        result = simulate(base.changed(workload={"trace": str(path)}, nodes=nodes, decoders=decoders))
        what = f"Mooncake, {count} of 16 nodes prefill, synthetic"
        yield Row(what, "mean TTFT, s", published_s, result.ttft_s.mean + SCHEDULE_S, TOLERANCE)


PARTS = {
    8: (1.002, 0.135, 3.397),
    16: (2.056, 0.226, 3.436),
    32: (4.479, 0.407, 3.522),
    64: (10.587, 0.881, 3.660),
    128: (27.512, None, 3.943),
}
"""Seconds of the parts of a request by thousands of tokens, from the vector graphics of figure 14.

They are prefill without a prefix, prefill with 95 % of it in another node's memory, and decoding 128 tokens.
The longest prompt has no second figure, because its prefill follows from the published saving.
"""
DECODED = 128


def one_request() -> Iterator[Row]:
    """Yield the parts of the time of one request on its own (figure 14)."""
    base, _ = load_scenario(SCENARIOS / "mooncake-global.toml")
    for thousands, (computed_s, fetched_s, decoded_s) in PARTS.items():
        found = _alone(base, 1024 * thousands, DECODED + 1)
        what = f"Mooncake, {thousands} k tokens by themselves"
        yield Row(what, "prefill, s", computed_s, found[0].prefill_s, TOLERANCE, note=LAUNCHES)
        if fetched_s is not None:
            figure = "prefill with 95 % cached, s"
            yield Row(what, figure, fetched_s, found[1].prefill_s, TOLERANCE, note=LAUNCHES)
        simulated_s = DECODED * found[0].tpot_s.mean
        yield Row(what, "128 tokens decoded, s", decoded_s, simulated_s, TOLERANCE, note=LAUNCHES)


LAUNCHES = (
    "Figure 14: of a step there is what the tensor cores and the memory take, 6.1 ms for launching its "
    "kernels and adding up what eight GPUs have (Vidur's times of this model on 8 A100), and 9 ms in which "
    "the GPUs wait for the engine (vLLM issue 6854: 5 to 13), which decides where little is computed."
)
LONG_TOKENS, PREFIX = 128 * 1024, 0.95


def _alone(base: Scenario, tokens: int, answer: int) -> tuple[SimResult, SimResult]:
    """Simulate one request without a prefix, and with the share PREFIX in another node's memory."""
    workload = {"scheduler": "random", "requests": 1, "prompt_tokens": tokens, "output_tokens": answer}
    computed, fetched = (
        simulate(
            base.changed(workload=workload | {"hit_share": share}, nodes={"count": 2}, decoders=_decoders(1))
        )
        for share in (0.0, PREFIX)
    )
    return computed, fetched


def long_prompt() -> Iterator[Row]:
    """Yield the savings for one request of 128 k tokens with 95 % of it in another
    node's memory (figure 14)."""
    base, _ = load_scenario(SCENARIOS / "mooncake-global.toml")
    computed, fetched = _alone(base, LONG_TOKENS, 1)
    what = "Mooncake, 128 k tokens, 95 % of them cached"
    saved = 1 - fetched.prefill_s / computed.prefill_s
    yield Row(what, "prefill time saved", 0.92, saved, TOLERANCE)
    saved = 1 - (fetched.ttft_s.mean + SCHEDULE_S) / (computed.ttft_s.mean + SCHEDULE_S)
    yield Row(what, "TTFT saved", 0.86, saved, TOLERANCE)
