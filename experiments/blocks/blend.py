"""CacheBlend (Yao et al., EuroSys 2025, arXiv 2405.16444): KV of text chunks reused wherever they stand in
a prompt.

    layer 0         all tokens computed (its KV is a function of token and position alone)
    layer 1         KV of all tokens computed; those that deviate most from the reused KV are chosen
    layers 2 ...    only the chosen are computed on; of them those that deviate most stay chosen

A layer's KV is the reused one, keys turned to their new positions, with the chosen tokens' own in its
place. Each layer needs the reused KV of that layer alone, so it can arrive while the layer before is
computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch

from experiments.blocks.measure import rotary_theta
from experiments.blocks.model.load import Floats, ModelError, Transformer, kv_of
from experiments.blocks.rotary import turn

SHARES: Final = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)
"""Of the tokens, as a mean over the layers behind layer 0."""
FIRST_FACTOR: Final = 1.25
"""So many times the share is chosen in layer 1, and as much less than the share in the last layer."""
COVERED: Final = ("llama", "mistral", "qwen2", "qwen3")
FEWEST_LAYERS: Final = 3
"""One that is computed wholly, one that chooses, and one in which tokens are left out."""


@dataclass(frozen=True, slots=True)
class Blended:
    """The KV of a batch of contexts, and what it took."""

    kv: Floats
    """(batch, layers, 2, tokens, channels)."""
    recomputed: float
    """Tokens whose KV was computed anew, as a share of all, mean over the layers behind layer 0."""
    flops_saved: float
    """Share of the operations of computing the whole context."""


def chunk_kv(of: Transformer, contexts: np.ndarray, chunk_tokens: int) -> Floats:
    """KV of each chunk computed by itself, keys turned to where the chunk stands; shaped as `Blended.kv`."""
    batch, tokens = contexts.shape
    with torch.inference_mode():
        alone = of.model(torch.from_numpy(contexts.reshape(-1, chunk_tokens)), use_cache=True)
    kv = kv_of(alone.past_key_values)
    places = (batch, tokens // chunk_tokens, of.layout.layers, 2, chunk_tokens, of.layout.channels)
    joined = kv.reshape(places).transpose(0, 2, 3, 1, 4, 5).reshape(batch, *of.layout.shape(tokens))
    starts = np.arange(tokens) // chunk_tokens * chunk_tokens
    joined[:, :, 0] = turn(joined[:, :, 0], starts, of.layout.head_dim, rotary_theta(of))
    return joined


class Blender:
    """Runs a model layer by layer over the tokens that are chosen."""

    def __init__(self, of: Transformer) -> None:
        if of.model.config.model_type not in COVERED:
            raise ModelError(
                f"{of.name}: layers of type {of.model.config.model_type!r} are not covered; expected "
                f"one of {', '.join(COVERED)}"
            )
        if of.layout.layers < FEWEST_LAYERS:
            raise ModelError(
                f"{of.name} has {of.layout.layers} layers: blending leaves out tokens from the third on; "
                f"expected {FEWEST_LAYERS} layers or more"
            )
        self._model: Any = of.model.model
        self._layout = of.layout
        self._theta = rotary_theta(of)
        self._heads = of.model.config.num_attention_heads

    def blend(
        self, contexts: np.ndarray, reused: Floats, share: float, wait: Callable[[int], None] | None = None
    ) -> Blended:
        """`share` of the tokens is computed anew; 0 is full reuse, 1 full recomputation.

        `wait` is called before a layer's part of `reused` is read, and returns when it is there.
        """
        if not 0 <= share <= 1:
            raise ValueError(f"a share is from 0 to 1, not {share}")
        if share == 0:
            return Blended(reused, 0.0, 1.0)
        kv = torch.from_numpy(reused if wait else reused.copy())
        batch, layers, _, tokens, _ = kv.shape
        work = _Work()
        chosen = torch.arange(tokens).expand(batch, tokens)
        recomputed = []
        with torch.inference_mode():
            hidden = self._model.embed_tokens(torch.from_numpy(contexts))
            for number, layer in enumerate(self._model.layers):
                normed = layer.input_layernorm(hidden)
                fresh = self._keys_values(layer, normed, chosen)
                if wait is not None:
                    wait(number)
                deviation = _put(kv[:, number], fresh, chosen)
                recomputed.append(chosen.shape[1] / tokens)
                work.projected(layer, chosen.shape[1])
                if number == layers - 1:
                    break
                if number:
                    kept = (
                        deviation.topk(self._count(number, layers, share, tokens), dim=1)
                        .indices.sort(1)
                        .values
                    )
                    chosen, hidden, normed = (_take(one, kept) for one in (chosen, hidden, normed))
                hidden = hidden + self._attend(layer, normed, kv[:, number], chosen)
                hidden = hidden + layer.mlp(layer.post_attention_layernorm(hidden))
                work.advanced(layer, chosen)
        saved = 1 - work.operations / self._computing(tokens)
        return Blended(kv.numpy(), float(np.mean(recomputed[2:])), saved)

    def prefix_saves(self, tokens: int, held: int) -> float:
        """Share of the operations that the KV of the first `held` tokens saves."""
        return self._computing(held) / self._computing(tokens)

    def _computing(self, tokens: int) -> float:
        """Operations for the KV of so many tokens from the first on."""
        work = _Work()
        for number, layer in enumerate(self._model.layers):
            work.projected(layer, tokens)
            if number < self._layout.layers - 1:
                work.advanced(layer, torch.arange(tokens)[None])
        return work.operations

    def _count(self, number: int, layers: int, share: float, tokens: int) -> int:
        """Tokens chosen in this layer for the next: fewer with every layer, `share` on average."""
        if share == 1:
            return tokens
        last = max(1, layers - 2)
        factor = FIRST_FACTOR - (FIRST_FACTOR - 1) * 2 * (number - 1) / max(1, last - 1) if last > 1 else 1.0
        return max(1, min(tokens, round(share * factor * tokens)))

    def _keys_values(self, layer: Any, normed: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        """(batch, 2, chosen, channels), keys at their positions."""
        keys = self._turned(self._normed(layer.self_attn, "k", normed), chosen)
        return torch.stack((keys, layer.self_attn.v_proj(normed)), dim=1)

    def _attend(
        self, layer: Any, normed: torch.Tensor, kv: torch.Tensor, chosen: torch.Tensor
    ) -> torch.Tensor:
        """The attention of the chosen tokens over the blended KV of all tokens up to theirs."""
        batch, count = chosen.shape
        dim = self._layout.head_dim
        queries = self._turned(self._normed(layer.self_attn, "q", normed), chosen)
        queries = queries.reshape(batch, count, self._heads, dim).transpose(1, 2)
        keys, values = (
            kind.reshape(batch, kv.shape[2], self._layout.kv_heads, dim).transpose(1, 2)
            for kind in kv.unbind(1)
        )
        seen = torch.arange(kv.shape[2]) <= chosen[:, None, :, None]
        attended = torch.nn.functional.scaled_dot_product_attention(
            queries, keys, values, attn_mask=seen, enable_gqa=True
        )
        joined = attended.transpose(1, 2).reshape(batch, count, -1)
        return torch.as_tensor(layer.self_attn.o_proj(joined))

    def _normed(self, attention: Any, kind: str, normed: torch.Tensor) -> torch.Tensor:
        """Queries or keys before they are turned; Qwen3 normalises those of each head."""
        vectors = torch.as_tensor(getattr(attention, f"{kind}_proj")(normed))
        norm = getattr(attention, f"{kind}_norm", None)
        if norm is None:
            return vectors
        heads = vectors.reshape(*vectors.shape[:2], -1, self._layout.head_dim)
        return torch.as_tensor(norm(heads)).reshape(vectors.shape)

    def _turned(self, vectors: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """As `rotary.turn`, with positions of each sample's own."""
        half = self._layout.head_dim // 2
        heads = vectors.reshape(*vectors.shape[:2], -1, self._layout.head_dim)
        angles = positions[..., None].double() * self._theta ** (-torch.arange(half).double() / half)
        cosine, sine = angles.cos().float()[:, :, None], angles.sin().float()[:, :, None]
        first, second = heads[..., :half], heads[..., half:]
        turned = torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)
        return turned.reshape(vectors.shape)


class _Work:
    """Floating-point operations for one sample: a multiplication and an addition are two."""

    def __init__(self) -> None:
        self.operations = 0.0

    def projected(self, layer: Any, tokens: int) -> None:
        """Keys and values of so many tokens, of one sample."""
        attention = layer.self_attn
        self.operations += 2 * tokens * (attention.k_proj.weight.numel() + attention.v_proj.weight.numel())

    def advanced(self, layer: Any, chosen: torch.Tensor) -> None:
        """Attention and what follows it in the layer."""
        attention, mlp = layer.self_attn, layer.mlp
        weights = attention.q_proj.weight.numel() + attention.o_proj.weight.numel()
        weights += sum(one.weight.numel() for one in (mlp.gate_proj, mlp.up_proj, mlp.down_proj))
        width = attention.q_proj.weight.shape[0]
        seen = float((chosen.double() + 1).sum(1).mean())
        self.operations += 2 * chosen.shape[1] * weights + 4 * width * seen


def _put(kv: torch.Tensor, fresh: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """Write fresh KV of the chosen tokens over the reused; how far each was off, squared."""
    at = chosen[:, None, :, None].expand_as(fresh)
    deviation = (kv.gather(2, at) - fresh).square().sum(dim=(1, 3))
    kv.scatter_(2, at, fresh)
    return deviation


def _take(of: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    return of.gather(1, kept if of.ndim == 2 else kept[..., None].expand(-1, -1, of.shape[2]))
