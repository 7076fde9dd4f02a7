"""Blocks to encode: channels of differing widths and centres, as KV has, and odd ones."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from kvcodec import CODECS, Layout
from kvcodec.layout import Floats

GivenBlock = tuple[Layout, Floats]
CHOICES = [(name, level) for name, codec in CODECS.items() for level in codec.levels]


def layout(layers: int = 3, kv_heads: int = 2, head_dim: int = 8) -> Layout:
    return Layout("a test's model", layers, kv_heads, head_dim)


def block(of: Layout, tokens: int, seed: int = 0, size: float = 1.0) -> Floats:
    random = np.random.default_rng(seed)
    shape = of.shape(tokens)
    widths = np.exp(random.standard_normal((*shape[:2], 1, shape[3])))
    centres = 2 * random.standard_normal((*shape[:2], 1, shape[3]))
    return (size * (random.standard_normal(shape) * widths + centres)).astype(np.float32)


@st.composite
def layouts_and_blocks(draw: st.DrawFn) -> GivenBlock:
    of = layout(draw(st.integers(1, 4)), draw(st.integers(1, 2)), draw(st.integers(1, 40)))
    tokens = draw(st.integers(1, 40))
    kv = block(of, tokens, draw(st.integers(0, 99)), draw(st.sampled_from([1e-20, 1e-3, 1.0, 1e6])))
    oddity = draw(st.sampled_from(["none", "zeros", "constant", "outlier", "a layer of zeros"]))
    if oddity == "zeros":
        kv[:] = 0
    elif oddity == "constant":
        kv[:] = 3.25
    elif oddity == "outlier":
        kv[0, 0, -1, 0] = 1e4 * np.abs(kv).max()
    elif oddity == "a layer of zeros":
        kv[-1] = 0
    return of, kv
