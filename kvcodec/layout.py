"""Shape of KV tensors and the model they are from; sender and receiver of a stream must agree on it."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from numbers import Integral

import numpy as np
import numpy.typing as npt

from kvcodec.errors import CodecError

FINGERPRINT_BYTES = 8
MAX_TOKENS = 4096
MAX_VALUES = 1 << 26
"""Largest number of values of a block; a stream that claims more is refused before memory is allocated."""

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Layout:
    """Shape of a block's tensor: float32 (layers, 2, tokens, kv_heads * head_dim), keys before values."""

    model: str
    """Identity of the weights."""
    layers: int
    kv_heads: int
    head_dim: int

    def __post_init__(self) -> None:
        if not self.model:
            raise CodecError("a layout needs the identity of its model")
        for name in ("layers", "kv_heads", "head_dim"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or not 1 <= int(value) <= 65535:
                raise CodecError(f"{name} must be a whole number from 1 to 65535, not {value!r}")

    @property
    def channels(self) -> int:
        """Return the number of values of one token's key, or of its value, in one layer."""
        return self.kv_heads * self.head_dim

    @property
    def fingerprint(self) -> bytes:
        """Return eight bytes that differ if model or shape differ."""
        described = f"{self.model}\0{self.layers}\0{self.kv_heads}\0{self.head_dim}".encode()
        return blake2b(described, digest_size=FINGERPRINT_BYTES, person=b"weir kv layout").digest()

    def shape(self, tokens: int) -> tuple[int, int, int, int]:
        """Return the shape of a block of `tokens` tokens."""
        return self.layers, 2, tokens, self.channels

    def bf16_bytes(self, tokens: int) -> int:
        """Return the bytes of a block in bfloat16, as engines hold it; compression ratios are relative to
        this."""
        return 2 * self.layers * 2 * tokens * self.channels

    def check(self, kv: Floats) -> None:
        """Raise CodecError unless `kv` is a block of this layout with finite values."""
        if not isinstance(kv, np.ndarray):
            raise CodecError(f"a block is a numpy array, not {type(kv).__name__}")
        tokens = kv.shape[2] if kv.ndim == 4 else 0
        if kv.shape != self.shape(tokens) or kv.dtype != np.float32:
            wanted = f"float32 ({self.layers}, 2, tokens, {self.channels})"
            raise CodecError(f"a block of this model is {wanted}, not {kv.dtype} {kv.shape}")
        self.check_tokens(tokens)
        if not np.isfinite(kv).all():
            raise CodecError("a block holds finite numbers only")
        if np.abs(kv).max() > LARGEST:
            raise CodecError(f"a block holds numbers up to {LARGEST:g}")

    def check_tokens(self, tokens: int) -> None:
        """Raise CodecError unless a block may have so many tokens."""
        if not 1 <= tokens <= MAX_TOKENS or self.bf16_bytes(tokens) > 2 * MAX_VALUES:
            raise CodecError(f"a block has from 1 to {MAX_TOKENS} tokens and at most {MAX_VALUES} values")


LARGEST = 1e30
"""Largest magnitude of a value: far above any KV, and low enough that scales don't overflow float32."""
