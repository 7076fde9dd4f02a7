"""A small decoder in numpy: random weights from a seed, rotary positions, grouped queries, KV in blocks.

A prompt's blocks are computed one after the other, so that with any of them taken from elsewhere the rest of
the arithmetic is the same to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hostlib.engine import KvSpace

Array = NDArray[np.float32]

VOCABULARY, WIDTH, LAYERS = 97, 32, 2
HEADS, KV_HEADS, HEAD = 4, 2, 8
BLOCK_TOKENS = 8
KV_SHAPE = (LAYERS, 2, BLOCK_TOKENS, KV_HEADS, HEAD)

SPACE = KvSpace(
    name="numpy",
    model="random:7",
    layout="layer, key or value, token, head, dimension",
    dtype="float32",
    block_tokens=BLOCK_TOKENS,
    object_bytes=(4 * int(np.prod(KV_SHAPE)),),
)


@dataclass
class Decoder:
    """Weights, and the KV of what it has read."""

    seed: int = 7
    read: int = 0
    keys: list[list[Array]] = field(default_factory=lambda: [[] for _ in range(LAYERS)])
    values: list[list[Array]] = field(default_factory=lambda: [[] for _ in range(LAYERS)])

    def __post_init__(self) -> None:
        choice = np.random.default_rng(self.seed)

        def weights(*shape: int) -> Array:
            return np.asarray(choice.standard_normal(shape) / np.sqrt(shape[0]), np.float32)

        self.embedding = weights(VOCABULARY, WIDTH) * np.float32(10)
        self.layers = [
            {
                "query": weights(WIDTH, HEADS * HEAD),
                "key": weights(WIDTH, KV_HEADS * HEAD),
                "value": weights(WIDTH, KV_HEADS * HEAD),
                "out": weights(HEADS * HEAD, WIDTH),
                "up": weights(WIDTH, 4 * WIDTH),
                "down": weights(4 * WIDTH, WIDTH),
            }
            for _ in range(LAYERS)
        ]

    def compute(self, tokens: list[int]) -> Array:
        """Read some tokens (a block, or less at the end); logits behind the last, shape (VOCABULARY,)."""
        hidden = self.embedding[tokens]
        positions = np.arange(self.read, self.read + len(tokens))
        for index, layer in enumerate(self.layers):
            hidden = hidden + self._attend(index, layer, _normal(hidden), positions)
            hidden = hidden + np.maximum(_normal(hidden) @ layer["up"], 0) @ layer["down"]
        self.read += len(tokens)
        return np.asarray(_normal(hidden)[-1] @ self.embedding.T, np.float32)

    def block(self, number: int) -> Array:
        """The KV of a whole block, shape KV_SHAPE."""
        pairs = [(self.keys[layer][number], self.values[layer][number]) for layer in range(LAYERS)]
        return np.stack([np.stack(pair) for pair in pairs])

    def adopt(self, block: Array) -> None:
        """Take the KV of the next block from elsewhere instead of computing it."""
        for layer in range(LAYERS):
            self.keys[layer].append(block[layer, 0])
            self.values[layer].append(block[layer, 1])
        self.read += BLOCK_TOKENS

    def _attend(
        self, index: int, layer: dict[str, Array], hidden: Array, positions: NDArray[np.int64]
    ) -> Array:
        query = _rotated((hidden @ layer["query"]).reshape(-1, HEADS, HEAD), positions)
        self.keys[index].append(_rotated((hidden @ layer["key"]).reshape(-1, KV_HEADS, HEAD), positions))
        self.values[index].append((hidden @ layer["value"]).reshape(-1, KV_HEADS, HEAD))
        keys = np.repeat(np.concatenate(self.keys[index]), HEADS // KV_HEADS, axis=1)
        values = np.repeat(np.concatenate(self.values[index]), HEADS // KV_HEADS, axis=1)
        scores = np.einsum("qhd,khd->hqk", query, keys) / np.sqrt(np.float32(HEAD))
        scores = np.where(np.arange(len(keys)) <= positions[:, None], scores, np.float32(-1e9))
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares = scores / scores.sum(axis=-1, keepdims=True)
        return np.asarray(np.einsum("hqk,khd->qhd", shares, values).reshape(-1, HEADS * HEAD) @ layer["out"])


def _normal(hidden: Array) -> Array:
    return np.asarray(hidden / np.sqrt((hidden**2).mean(axis=-1, keepdims=True) + np.float32(1e-6)))


def _rotated(heads: Array, positions: NDArray[np.int64]) -> Array:
    """Rotary position embedding (Su et al., arXiv 2104.09864)."""
    half = HEAD // 2
    angles = positions[:, None, None] * (100.0 ** -(np.arange(half) / half))
    cosine, sine = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    first, second = heads[..., :half], heads[..., half:]
    return np.concatenate([first * cosine - second * sine, second * cosine + first * sine], axis=-1)
