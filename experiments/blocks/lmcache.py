"""LMCache's own CacheGen coder (0.5.6, its CPU kernels) on our tensors: the rival that `cachegen` is held
against.
"""

from __future__ import annotations

import logging
import warnings
from typing import Any

import numpy as np
import torch

from experiments.blocks.model.load import Floats
from kvcodec import Layout


class LmCacheCoder:
    """Encodes a block as LMCache's serializer does, bins and pickled tables included.

    `bins` are those that LMCache gives the keys and the values of each layer.
    """

    def __init__(self, layout: Layout, key_bins: list[int], value_bins: list[int]) -> None:
        warnings.filterwarnings("ignore", module="requests")
        from lmcache.storage_backend.serde import cachegen_decoder, cachegen_encoder

        logging.getLogger("lmcache").setLevel(logging.ERROR)
        self._layout = layout
        self._encoder: Any = cachegen_encoder
        self._decoder: Any = cachegen_decoder
        self._key_bins = torch.tensor(key_bins, dtype=torch.float32)
        self._value_bins = torch.tensor(value_bins, dtype=torch.float32)

    def encode(self, kv: Floats) -> bytes:
        """`kv` is a block of the layout."""
        layers, _, tokens, _ = kv.shape
        heads = torch.from_numpy(kv.reshape(layers, 2, tokens, self._layout.kv_heads, self._layout.head_dim))
        heads = heads.to(torch.bfloat16)  # as an engine's are
        output = self._encoder.encode_function(heads, None, self._key_bins, self._value_bins, tokens)
        return bytes(output.to_bytes())

    def decode(self, stream: bytes) -> Floats:
        """Return what LMCache's deserializer makes of it."""
        from lmcache.storage_backend.serde.cachegen_basics import CacheGenGPUEncoderOutput

        output = CacheGenGPUEncoderOutput.from_bytes(stream)
        layers, tokens, _ = output.max_tensors_key.shape
        buffer = torch.zeros((tokens, 2 * layers * self._layout.channels), dtype=torch.uint8)
        keys, values = self._decoder.decode_function_gpu(
            output.cdf, output.data_chunks, layers, tokens, buffer
        )
        keys = self._decoder.do_dequantize(keys, self._key_bins, output.max_tensors_key)
        values = self._decoder.do_dequantize(values, self._value_bins, output.max_tensors_value)
        return np.ascontiguousarray(torch.stack((keys, values), dim=1).to(torch.float32).numpy())


def lmcache_bins(layers: int) -> tuple[list[int], list[int]]:
    """As LMCache 0.5.6 chooses them for a model that it does not know by name: keys, values."""
    if layers < 10:
        return [32] * layers, [32] * layers
    return [32] * 10 + [16] * (layers - 10), [32] * 2 + [16] * (layers - 2)


def large_model_bins(layers: int) -> tuple[list[int], list[int]]:
    """Return what it gives the first layers of a large model."""
    return [32] * min(10, layers) + [16] * max(0, layers - 10), [32] * 2 + [16] * (layers - 2)
