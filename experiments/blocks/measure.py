"""Measurement of every codec on the same blocks: bytes, time, and the model's output with decoded KV."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from commands.errors import ExperimentError
from experiments.blocks.kvtc import BLOCK, NORMAL, KvtcCoder
from experiments.blocks.lmcache import LmCacheCoder, large_model_bins, lmcache_bins
from experiments.blocks.model.load import Floats, Transformer
from experiments.blocks.quality import Judge, Quality
from kvcodec import CODECS, Layout, decode, encode

KVTC_BITS: Final = ((3.0, 4.0), (2.0, 4.0), (4.0, 6.0))
"""Bits of keys and values for KVTC: two settings of its open code, and one between."""
KVTC_RANGES: Final = {NORMAL: "", BLOCK: " block"}
"""Suffix of a row's name, by range of KVTC's codes."""


@dataclass(frozen=True, slots=True)
class Coder:
    """Codec at one level; `level` is as its authors call it."""

    name: str
    level: int | str
    encode: Callable[[Floats], bytes]
    decode: Callable[[bytes], Floats]


@dataclass(frozen=True, slots=True)
class Measured:
    """Figures of one coder over all blocks."""

    codec: str
    level: int | str
    ratio: float
    """Bytes in bfloat16 over all bytes of the streams, headers and tables included."""
    relative_error: float
    """Root mean square of the errors over the root mean square of the values."""
    quality: Quality
    encode_mb_s: float
    """Megabytes of bfloat16 a second of CPU time."""
    decode_mb_s: float
    block_bytes: tuple[int, ...]
    """Length of each block's stream."""

    def fields(self, exact: Quality) -> dict[str, Any]:
        """Return the figures that the summary has; `exact` is the quality with the model's own cache."""
        return {
            "codec": self.codec,
            "level": self.level,
            "ratio": self.ratio,
            "perplexity_exact": exact.perplexity,
            "relative_error": self.relative_error,
            "encode_mb_s": self.encode_mb_s,
            "decode_mb_s": self.decode_mb_s,
        } | self.quality.fields()


def project_coders(layout: Layout) -> Iterator[Coder]:
    """Yield all codecs of the project at all levels."""
    for name, codec in CODECS.items():
        for level in codec.levels:
            yield Coder(
                name,
                level,
                lambda kv, name=name, level=level: encode(kv, layout, name, level),  # type: ignore[misc]
                lambda stream: decode(stream, layout),
            )


def published_coders(transformer: Transformer, calibration: Floats) -> Iterator[Coder]:
    """Yield LMCache's own coder and KVTC's method, each at several levels."""
    layout = transformer.layout
    for label, bins in (("its own", lmcache_bins), ("32/16", large_model_bins)):
        coder = LmCacheCoder(layout, *bins(layout.layers))
        yield Coder("lmcache", label, coder.encode, coder.decode)
    theta = rotary_theta(transformer)
    tokens = calibration.shape[3]
    for bits, (ranges, suffix) in itertools.product(KVTC_BITS, KVTC_RANGES.items()):
        kvtc = KvtcCoder(calibration, layout.head_dim, theta, *bits, ranges)
        yield Coder(
            "kvtc",
            f"K{bits[0]:g}V{bits[1]:g}{suffix}",
            kvtc.encode,
            lambda stream, kvtc=kvtc: kvtc.decode(stream, layout.layers, tokens, layout.channels),  # type: ignore[misc]
        )


def rotary_theta(transformer: Transformer) -> float:
    """Return the base of the model's rotary frequencies; raises ExperimentError for other positions."""
    rope = getattr(transformer.model.config, "rope_parameters", None) or {}
    if rope.get("rope_type") != "default" or "rope_theta" not in rope:
        raise ExperimentError(
            f"{transformer.name}: positions of type {rope.get('rope_type')!r} can't be undone; expected "
            "plain rotary ones (rope_type default)"
        )
    return float(rope["rope_theta"])


def measure(coder: Coder, judge: Judge, layout: Layout) -> Measured:
    """Encode and decode the whole context of each sample as one block."""
    coder.decode(coder.encode(judge.kv[0]))  # LMCache compiles its coder at the first call
    began_s = time.process_time()
    streams = [coder.encode(kv) for kv in judge.kv]
    encoded_s = time.process_time()
    decoded = np.stack([coder.decode(stream) for stream in streams])
    decoded_s = time.process_time()
    sizes = tuple(len(stream) for stream in streams)
    plain_bytes = layout.bf16_bytes(judge.kv.shape[3]) * len(streams)
    error = (
        np.square(decoded - judge.kv, dtype=np.float64).mean() / np.square(judge.kv, dtype=np.float64).mean()
    )
    return Measured(
        codec=coder.name,
        level=coder.level,
        ratio=plain_bytes / sum(sizes),
        relative_error=float(np.sqrt(error)),
        quality=judge.judge(decoded),
        encode_mb_s=plain_bytes / 1e6 / max(1e-9, encoded_s - began_s),
        decode_mb_s=plain_bytes / 1e6 / max(1e-9, decoded_s - encoded_s),
        block_bytes=sizes,
    )
