"""CacheBlend (Yao et al., EuroSys 2025, arXiv 2405.16444): reuse of a chunk's KV at any place of a prompt.

    layer 0         all tokens are computed (their KV depends only on token and position)
    layer 1         KV of all tokens is computed; the tokens that deviate most from the reused KV are chosen
    layers 2 ...    only the chosen tokens are computed; those of them that deviate most stay chosen

A layer's KV is the reused KV, with keys rotated to their new positions, in which the chosen tokens' own KV
replaces theirs. A layer needs only its own reused KV, which can arrive while the layer before is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch

from experiments.blocks.measure import rotary_theta
from experiments.blocks.model.load import Floats, ModelError, Transformer, kv_of
from experiments.blocks.rotary import rotate

RECOMPUTED_SHARES: Final = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)
"""Shares of tokens to compute anew, as means over the layers from layer 2 on."""
FIRST_FACTOR: Final = 1.25
"""Factor on the share for the choice in layer 1; it falls linearly to 2 - FIRST_FACTOR in the last choice."""
COVERED: Final = ("llama", "mistral", "qwen2", "qwen3")
FEWEST_LAYERS: Final = 3
"""Least number of layers: one is computed wholly, one chooses tokens, one leaves tokens out."""


@dataclass(frozen=True, slots=True)
class Blended:
    """KV of a batch of contexts, and the work that it took."""

    kv: Floats
    """KV with shape (batch, layers, 2, tokens, channels)."""
    recomputed: float
    """Share of tokens whose KV was computed anew, as a mean over the layers from layer 2 on."""
    flops_saved: float
    """Share of the operations for the whole context that blending saves."""


def chunk_kv(of: Transformer, contexts: np.ndarray, chunk_tokens: int) -> Floats:
    """Return each chunk's KV, computed without the chunks before it, with keys rotated to the chunk's place.

    `contexts` has shape (batch, tokens); tokens is a multiple of `chunk_tokens`. The result has the shape of
    `Blended.kv`.
    """
    batch, tokens = contexts.shape
    with torch.inference_mode():
        alone = of.model(torch.from_numpy(contexts.reshape(-1, chunk_tokens)), use_cache=True)
    kv = kv_of(alone.past_key_values)
    places = (batch, tokens // chunk_tokens, of.layout.layers, 2, chunk_tokens, of.layout.channels)
    joined = kv.reshape(places).transpose(0, 2, 3, 1, 4, 5).reshape(batch, *of.layout.shape(tokens))
    starts = np.arange(tokens) // chunk_tokens * chunk_tokens
    joined[:, :, 0] = rotate(joined[:, :, 0], starts, of.layout.head_dim, rotary_theta(of))
    return joined


class Blender:
    """Runner of a model, layer by layer, over the tokens that are chosen.

    Raises ModelError if the model's type is not covered or it has too few layers.
    """

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
        """Compute a share of the tokens anew; 0 is full reuse, 1 full recomputation.

        `wait(layer)` is called before that layer's part of `reused` is read, and returns when the part is
        there. With `wait`, `reused` is overwritten. Raises ValueError if the share is not from 0 to 1.
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
                    selected = (
                        deviation.topk(self._count(number, layers, share, tokens), dim=1)
                        .indices.sort(1)
                        .values
                    )
                    chosen, hidden, normed = (_take(one, selected) for one in (chosen, hidden, normed))
                hidden = hidden + self._attend(layer, normed, kv[:, number], chosen)
                hidden = hidden + layer.mlp(layer.post_attention_layernorm(hidden))
                work.advanced(layer, chosen)
        saved = 1 - work.operations / self._computing(tokens)
        return Blended(kv.numpy(), float(np.mean(recomputed[2:])), saved)

    def prefix_saves(self, tokens: int, held: int) -> float:
        """Return the share of operations that holding the KV of the first `held` of `tokens` saves."""
        return self._computing(held) / self._computing(tokens)

    def _computing(self, tokens: int) -> float:
        """Return the operations for the KV of the first `tokens` tokens of one sample."""
        work = _Work()
        for number, layer in enumerate(self._model.layers):
            work.projected(layer, tokens)
            if number < self._layout.layers - 1:
                work.advanced(layer, torch.arange(tokens)[None])
        return work.operations

    def _count(self, number: int, layers: int, share: float, tokens: int) -> int:
        """Return how many tokens this layer chooses: fewer with every layer, `share` of all in the mean."""
        if share == 1:
            return tokens
        last = max(1, layers - 2)
        factor = FIRST_FACTOR - (FIRST_FACTOR - 1) * 2 * (number - 1) / max(1, last - 1) if last > 1 else 1.0
        return max(1, min(tokens, round(share * factor * tokens)))

    def _keys_values(self, layer: Any, normed: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        """Return KV with shape (batch, 2, chosen, channels), keys rotated to their positions."""
        keys = self._rotate(self._normed(layer.self_attn, "k", normed), chosen)
        return torch.stack((keys, layer.self_attn.v_proj(normed)), dim=1)

    def _attend(
        self, layer: Any, normed: torch.Tensor, kv: torch.Tensor, chosen: torch.Tensor
    ) -> torch.Tensor:
        """Return the attention output of the chosen tokens over the blended KV of all tokens up to each."""
        batch, count = chosen.shape
        dim = self._layout.head_dim
        queries = self._rotate(self._normed(layer.self_attn, "q", normed), chosen)
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
        """Return queries ("q") or keys ("k") before they are rotated; Qwen3 normalises those of each head."""
        vectors = torch.as_tensor(getattr(attention, f"{kind}_proj")(normed))
        norm = getattr(attention, f"{kind}_norm", None)
        if norm is None:
            return vectors
        heads = vectors.reshape(*vectors.shape[:2], -1, self._layout.head_dim)
        return torch.as_tensor(norm(heads)).reshape(vectors.shape)

    def _rotate(self, vectors: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Rotate vectors as `rotary.rotate` does, with different positions for each sample."""
        half = self._layout.head_dim // 2
        heads = vectors.reshape(*vectors.shape[:2], -1, self._layout.head_dim)
        angles = positions[..., None].double() * self._theta ** (-torch.arange(half).double() / half)
        cosine, sine = angles.cos().float()[:, :, None], angles.sin().float()[:, :, None]
        first, second = heads[..., :half], heads[..., half:]
        rotated = torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)
        return rotated.reshape(vectors.shape)


class _Work:
    """Count of floating-point operations for one sample: a multiplication and an addition are two."""

    def __init__(self) -> None:
        self.operations = 0.0

    def projected(self, layer: Any, tokens: int) -> None:
        """Add the projection of keys and values of `tokens` tokens."""
        attention = layer.self_attn
        self.operations += 2 * tokens * (attention.k_proj.weight.numel() + attention.v_proj.weight.numel())

    def advanced(self, layer: Any, chosen: torch.Tensor) -> None:
        """Add the chosen tokens' attention, and the part of the layer behind it."""
        attention, mlp = layer.self_attn, layer.mlp
        weights = attention.q_proj.weight.numel() + attention.o_proj.weight.numel()
        weights += sum(one.weight.numel() for one in (mlp.gate_proj, mlp.up_proj, mlp.down_proj))
        width = attention.q_proj.weight.shape[0]
        seen = float((chosen.double() + 1).sum(1).mean())
        self.operations += 2 * chosen.shape[1] * weights + 4 * width * seen


def _put(kv: torch.Tensor, fresh: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """Write the chosen tokens' fresh KV over the reused; returns each token's squared deviation."""
    at = chosen[:, None, :, None].expand_as(fresh)
    deviation = (kv.gather(2, at) - fresh).square().sum(dim=(1, 3))
    kv.scatter_(2, at, fresh)
    return deviation


def _take(of: torch.Tensor, selected: torch.Tensor) -> torch.Tensor:
    return of.gather(1, selected if of.ndim == 2 else selected[..., None].expand(-1, -1, of.shape[2]))
