"""Coder that calls LMCache's own CacheGen (0.5.6, its CPU kernels), to compare `cachegen` with it."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import numpy as np
import torch

from experiments.blocks.model.load import Floats
from kvcodec import Layout


class LmCacheCoder:
    """Coder of blocks that does what LMCache's serializer does, bins and pickled tables included.

    `key_bins` and `value_bins` are LMCache's numbers of bins for each layer.
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
        """Return the stream of a block with shape (layers, 2, tokens, channels)."""
        layers, _, tokens, _ = kv.shape
        heads = torch.from_numpy(kv.reshape(layers, 2, tokens, self._layout.kv_heads, self._layout.head_dim))
        heads = heads.to(torch.bfloat16)  # as in an engine's cache
        output = self._encoder.encode_function(heads, None, self._key_bins, self._value_bins, tokens)
        return bytes(output.to_bytes())

    def decode(self, stream: bytes) -> Floats:
        """Return the block that LMCache's deserializer makes of a stream, as float32."""
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
    """Return the bins of keys and of values that LMCache 0.5.6 uses for a model of unknown name."""
    if layers < 10:
        return [32] * layers, [32] * layers
    return [32] * 10 + [16] * (layers - 10), [32] * 2 + [16] * (layers - 2)


def large_model_bins(layers: int) -> tuple[list[int], list[int]]:
    """Return the bins of keys and of values that LMCache uses for the first layers of a large model."""
    return [32] * min(10, layers) + [16] * max(0, layers - 10), [32] * 2 + [16] * (layers - 2)
