"""Costs of computing and moving KV: presets of models and GPUs, prefill, blending, decode, transfer, and the
break-even between computing and fetching.

The arithmetic is Mooncake's (FAST'25, section 3.1). A prefill of n tokens takes layers * (a*n^2*d + b*n*d^2)
operations with a = 4 and b = 22. Fetching a prefix of p tokens is faster than computing it if bandwidth over
operations, B/G, exceeds 2*d*s / (gqa * (a*p*d + b*d^2)).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

ATTENTION_OPS = 4.0
ATTENTION_SHARES = {"full": 1.0, "causal": 0.5}
"""Shares of ATTENTION_OPS: Mooncake counts every pair of tokens, engines' kernels compute half of them."""
LINEAR_OPS = 22.0


@dataclass(frozen=True, slots=True)
class BlendWork:
    """Prompt with chunks to blend (workload/blend.py), as numbers of tokens."""

    context_tokens: int
    """Tokens of the exact prefix, of which nothing is computed."""
    chunk_tokens: int
    """Tokens of chunks: all are computed in the first layer, and a share of them in every other layer."""
    new_tokens: int
    """Tokens that are computed in all layers behind the chunks; a new token before a chunk counts here,
    too."""
    share: float
    """Share of the chunks' tokens that is recomputed: mean over the layers behind the first."""
    alone_chunks: int = 0
    """Number of chunks that nobody had: each is computed by itself before all are blended."""


@dataclass(frozen=True)
class ModelSpec:
    """Shape of a model, as far as its KV and its costs depend on it."""

    name: str
    layers: int
    hidden: int
    kv_values_per_layer: int
    """Numbers kept per token and layer: 2 * kv_heads * head_dim, or latent + rope dimensions with MLA."""
    kv_dtype_bytes: float
    weights: float
    """Number of weights read to decode one token (the active ones of a mixture of experts)."""
    source: str
    attention_width: int | None = None
    """Query heads times the mean of key and value head size, if that is not the hidden size."""
    linear_ops_per_token: float | None = None
    """Operations per token outside attention, if LINEAR_OPS * hidden^2 * layers does not describe the
    model."""
    attention_share: float = 1.0
    """Share of ATTENTION_OPS that attention takes; one of ATTENTION_SHARES."""

    @property
    def kv_bytes_per_token(self) -> float:
        """Return the bytes of one token's KV, over all layers and ranks."""
        return self.layers * self.kv_values_per_layer * self.kv_dtype_bytes

    def block_bytes(self, tokens: int) -> float:
        """Return the bytes of KV of a block of `tokens` tokens."""
        return self.kv_bytes_per_token * tokens

    def prefill_ops(self, new_tokens: float, context_tokens: float = 0.0) -> float:
        """Return the operations to prefill `new_tokens` behind `context_tokens` whose KV is already there."""
        end = context_tokens + new_tokens
        width = self.attention_width or self.hidden
        squares = end * end - context_tokens * context_tokens
        attention = ATTENTION_OPS * self.attention_share * squares * width * self.layers
        linear = self.linear_ops_per_token or LINEAR_OPS * self.hidden * self.hidden * self.layers
        return attention + linear * new_tokens

    def blend_ops(self, work: BlendWork) -> tuple[float, float]:
        """Return the operations of the first layer and of each later one, without chunks computed alone.

        The recomputed tokens are spread evenly among the chunks' and attend to all tokens before them.
        """
        chunks = self.prefill_ops(work.chunk_tokens, work.context_tokens) / self.layers
        new = self.prefill_ops(work.new_tokens, work.context_tokens + work.chunk_tokens) / self.layers
        return chunks + new, work.share * chunks + new


@dataclass(frozen=True)
class GpuSpec:
    """Accelerators of one inference node."""

    name: str
    ops_per_s: float
    memory_bytes_per_s: float
    source: str
    count: int = 8
    prefill_utilisation: float = 0.5
    """Share of the peak operations that prefill reaches; large dense prefills reach 0.4 to 0.6."""
    memory_utilisation: float = 0.7
    """Share of the memory bandwidth that decode reaches."""


# KV shapes are from the models' published config.json.
MODELS = {
    spec.name: spec
    for spec in (
        ModelSpec("llama3-70b", 80, 8192, 2 * 8 * 128, 2.0, 70e9, "meta-llama/Meta-Llama-3-70B config.json"),
        ModelSpec(
            "llama3-70b-fp8", 80, 8192, 2 * 8 * 128, 1.0, 70e9, "the same with 8-bit KV: 160 KiB a token"
        ),
        ModelSpec(
            "qwen3-32b",
            64,
            5120,
            2 * 8 * 128,
            2.0,
            32.8e9,
            "Qwen/Qwen3-32B config.json",
            64 * 128,
            2 * 31.2e9,
        ),
        ModelSpec(
            "deepseek-v3", 61, 7168, 512 + 64, 2.0, 37e9, "arXiv 2412.19437, section 4.2", 128 * 160, 2 * 37e9
        ),
    )
}

# Dense BF16 peaks and memory bandwidths are from NVIDIA's data sheets.
GPUS = {
    spec.name: spec
    for spec in (
        GpuSpec("a800", 312e12, 2.039e12, "NVIDIA A100/A800 80GB SXM data sheet"),
        GpuSpec("h800", 989e12, 3.35e12, "NVIDIA H100/H800 SXM data sheet"),
        GpuSpec("l40s", 362e12, 0.864e12, "NVIDIA L40S data sheet"),
        GpuSpec("h20", 148e12, 4.0e12, "NVIDIA H20 data sheet"),
    )
}

DEFAULT_MODEL = "llama3-70b-fp8"
DEFAULT_GPU = "a800"
DEFAULT_LINK_BIT_S = 200e9


class CostError(ValueError):
    """Model or GPU that does not exist; the message lists those that do."""


@dataclass(frozen=True)
class CostModel:
    """Costs of one inference node in seconds and bytes at real scale; the scale model converts them."""

    model: ModelSpec = field(default_factory=lambda: MODELS[DEFAULT_MODEL])
    gpu: GpuSpec = field(default_factory=lambda: GPUS[DEFAULT_GPU])
    block_tokens: int = 512
    stored_share: float = 1.0
    """Mean share of a block's bytes that is sent and stored outside the node; below 1 with a codec."""
    launch_s: float = 0.0
    """Seconds that a step takes beside arithmetic and memory, to launch kernels and add up the GPUs' results.
    If above 0, a request's prefill takes them once and reads the weights once."""

    @property
    def block_bytes(self) -> float:
        """Return the bytes of KV of one full block."""
        return self.model.block_bytes(self.block_tokens)

    @property
    def stored_bytes(self) -> float:
        """Return the mean bytes of one full block as it travels."""
        return self.block_bytes * self.stored_share

    def prefill_s(self, new_tokens: float, context_tokens: float = 0.0) -> float:
        """Return the seconds to prefill `new_tokens` behind `context_tokens` whose KV is already there."""
        return self.model.prefill_ops(new_tokens, context_tokens) / self._prefill_ops_per_s

    def block_prefill_s(self, depth: int) -> float:
        """Return the seconds to recompute the block at `depth` (0 is the first) behind its whole prefix."""
        return self.prefill_s(self.block_tokens, depth * self.block_tokens)

    def request_prefill_s(self, input_tokens: int, held_blocks: int) -> float:
        """Return the seconds to prefill a request behind its first `held_blocks`: at least its last token."""
        return self.prefill_s(*self.prefill_span(input_tokens, held_blocks)) + self._launched_s

    def prefill_span(self, input_tokens: int, held_blocks: int) -> tuple[int, int]:
        """Return how many tokens to compute behind `held_blocks`, at least the last one, and how many precede
        them."""
        new_tokens = max(1, input_tokens - held_blocks * self.block_tokens)
        return new_tokens, input_tokens - new_tokens

    def computed_spans(
        self, input_tokens: int, blocks: int, computed: Iterable[int]
    ) -> list[tuple[int, int]]:
        """Return spans (tokens to compute, tokens before them) of a request with `blocks` blocks.

        The blocks at the ascending indices `computed` are computed, all others are held. Tokens behind the
        blocks, and the last token, are always computed.
        """
        if isinstance(computed, range) and computed.stop == blocks and computed.step == 1:
            return [self.prefill_span(input_tokens, computed.start)]  # most often: all behind a prefix
        size, spans = self.block_tokens, list[tuple[int, int]]()
        behind = range(blocks, -(-input_tokens // size))
        for depth in (*computed, *behind):
            first, end = depth * size, min(input_tokens, (depth + 1) * size)
            if first >= input_tokens:
                break
            if spans and sum(spans[-1]) == first:
                spans[-1] = (end - spans[-1][1], spans[-1][1])
            else:
                spans.append((end - first, first))
        if not spans or sum(spans[-1]) < input_tokens:
            spans.append((1, input_tokens - 1))
        return spans

    def computed_s(self, input_tokens: int, blocks: int, computed: Iterable[int]) -> float:
        """Return the seconds to compute these blocks of a request, and the tokens behind its blocks."""
        spans = self.computed_spans(input_tokens, blocks, computed)
        return sum(self.prefill_s(*span) for span in spans) + self._launched_s

    def blend_s(self, work: BlendWork) -> float:
        """Return the seconds to compute chunks that nobody had, and to blend, once the others are loaded."""
        alone_s, first_s, later_s = self._blend_parts_s(work)
        return alone_s + first_s + (self.model.layers - 1) * later_s

    def blend_rest_s(self, work: BlendWork, idle_s: float) -> float:
        """Return the seconds of `blend_s` that remain once everything is loaded, if the GPU was idle for
        `idle_s`.

        As in CacheBlend (arXiv 2405.16444), a layer is computed once the layer before is done and its own KV
        is there: loading one layer overlaps with computing the one before. The GPU began so late that no
        layer held it up. The last layer cannot be computed before everything is loaded.
        """
        return max(self.blend_last_s(work), self.blend_s(work) - idle_s)

    def blend_last_s(self, work: BlendWork) -> float:
        """Return the seconds to compute the last layer."""
        return self._blend_parts_s(work)[2]

    def _blend_parts_s(self, work: BlendWork) -> tuple[float, float, float]:
        """Return the seconds of chunks computed by themselves, of the first layer, and of each later
        layer."""
        first, later = (ops / self._prefill_ops_per_s for ops in self.model.blend_ops(work))
        return work.alone_chunks * self.prefill_s(self.block_tokens), first, later

    def decode_s(self, output_tokens: int, context_tokens: float, batch: int = 1) -> float:
        """Return the seconds to decode, limited by memory: weights are read for `batch` requests, KV for each
        alone."""
        kv_bytes = self.model.kv_bytes_per_token * (context_tokens + output_tokens / 2)
        read_bytes = self.model.weights * 2.0 / batch + kv_bytes
        return output_tokens * read_bytes / self._memory_bytes_per_s + output_tokens * self.launch_s / batch

    def fetch_s(self, fetched_bytes: float, rate_bit_s: float) -> float:
        """Return the seconds to receive `fetched_bytes` over a link of `rate_bit_s`."""
        return fetched_bytes * 8.0 / rate_bit_s

    def break_even_bytes_per_s(self, prefix_tokens: float) -> float:
        """Return the bytes per second above which fetching a prefix is faster than computing it (B/G
        rule)."""
        kv_bytes = self.model.kv_bytes_per_token * prefix_tokens
        return kv_bytes / self.prefill_s(prefix_tokens)

    @property
    def _launched_s(self) -> float:
        """Return the seconds of a prefill beside its arithmetic: launch, and one read of the weights."""
        if not self.launch_s:
            return 0.0
        return self.launch_s + self.model.weights * 2.0 / self._memory_bytes_per_s

    @property
    def _memory_bytes_per_s(self) -> float:
        return self.gpu.memory_bytes_per_s * self.gpu.count * self.gpu.memory_utilisation

    @property
    def _prefill_ops_per_s(self) -> float:
        return self.gpu.ops_per_s * self.gpu.count * self.gpu.prefill_utilisation


def make_cost_model(model: str = DEFAULT_MODEL, gpu: str = DEFAULT_GPU, block_tokens: int = 512) -> CostModel:
    """Return a cost model from names of presets; raises CostError for an unknown name."""
    if model not in MODELS:
        raise CostError(f"no model {model!r}: choose one of {', '.join(MODELS)}")
    if gpu not in GPUS:
        raise CostError(f"no GPU {gpu!r}: choose one of {', '.join(GPUS)}")
    return CostModel(MODELS[model], GPUS[gpu], block_tokens)
