"""Rotary positions of keys (Su et al., arXiv 2104.09864), in halves as in Hugging Face's Llama."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


def rotate(keys: Floats, positions: npt.NDArray[np.int64], head_dim: int, theta: float) -> Floats:
    """Return keys, with shape (..., tokens, heads * head_dim), rotated by each token's number of positions.

    Negative numbers rotate back.
    """
    half = head_dim // 2
    heads = keys.reshape(*keys.shape[:-1], -1, head_dim)
    angles = positions[:, None] * theta ** (-np.arange(half) / half)
    cosine = np.cos(angles).astype(np.float32)[:, None]
    sine = np.sin(angles).astype(np.float32)[:, None]
    first, second = heads[..., :half], heads[..., half:]
    rotated = np.concatenate((first * cosine - second * sine, second * cosine + first * sine), axis=-1)
    return rotated.reshape(keys.shape)
