"""CacheGen's coder (Liu et al., SIGCOMM 2024, arXiv 2310.07240), section 5.2: deltas, layer groups,
arithmetic coding.

    values of a layer's keys (or values)  -- divided by the layer group's step, rounded -->  whole numbers
    whole numbers                         -- less their anchor's -->                        deltas
    anchors and deltas                    -- a model for each channel -->                   arithmetic code

An anchor is the first of `GROUP_TOKENS` tokens, as in the paper, or the channel's mean over the block. Each
layer's keys, and its values, use the kind that leaves smaller deltas: neighbouring tokens are alike in large
models, but not in every model. Deltas are taken after rounding, so errors do not add up. The paper uses
tables profiled for each model. Here the models of channels adapt as they go, so nothing is shared or sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from kvcodec.entropy import MAX_REACH, Symbols, decode_rows, encode_rows
from kvcodec.errors import StreamError
from kvcodec.fields import Fields, scales
from kvcodec.layout import Floats, Layout

GROUP_TOKENS: Final = 10
STEPS: Final = (0.1, 0.2, 0.35, 0.5, 0.75, 1.1)
"""Step of the middle layers as a share of the mean magnitude of the values, by level."""
LAYER_GROUPS: Final = (0.7, 1.0, 1.4)
"""Factors of the step in the first, the second and the last third of the layers: early layers lose least."""
LARGEST_SYMBOL: Final = MAX_REACH // 2

_MEAN, _TOKEN = 0, 1
_FIRST_SPREAD: Final = 2


def encode_cachegen(kv: Floats, level: int) -> bytes:
    """Return steps and kinds of anchors, both of shape (layers, 2), then the code of each kind of anchor.

    The code of a kind has anchors and then deltas, each with its reach and its length in bytes.
    """
    steps = _steps(kv, level)
    numbers = np.rint(kv / steps[:, :, None, None]).astype(np.int32)
    anchoring = _choose_anchoring(numbers)
    parts = [steps.astype("<f4").tobytes(), anchoring.astype(np.uint8).tobytes()]
    for kind in (_MEAN, _TOKEN):
        rows = _rows(numbers, anchoring == kind)
        if rows.shape[1]:
            parts += _encode_group(rows, kind)
    return b"".join(parts)


def decode_cachegen(payload: bytes, layout: Layout, tokens: int, level: int) -> Floats:
    """Return what was encoded, each value off by half a step at most."""
    fields = Fields(payload)
    steps = scales(fields, (layout.layers, 2))
    anchoring = fields.array("u1", (layout.layers, 2))
    if not np.isin(anchoring, (_MEAN, _TOKEN)).all():
        raise StreamError("the payload names a kind of anchor that does not exist")
    numbers = np.empty(layout.shape(tokens), np.int32)
    for kind in (_MEAN, _TOKEN):
        chosen = anchoring == kind
        if chosen.any():
            rows = _decode_group(fields, tokens, int(chosen.sum()) * layout.channels, kind)
            numbers[chosen] = rows.reshape(tokens, -1, layout.channels).transpose(1, 0, 2)
    fields.end()
    return numbers.astype(np.float32) * steps[:, :, None, None]


def _steps(kv: Floats, level: int) -> npt.NDArray[np.float32]:
    """Return the quantisation steps, of shape (layers, 2).

    Sums are of whole numbers: a sum of floats would depend on the machine's order of adding.
    """
    layers = kv.shape[0]
    largest = np.abs(kv).max(axis=(2, 3)).astype(np.float64)
    safe = np.where(largest > 0, largest, 1)
    whole = (np.abs(kv) / safe[:, :, None, None] * (1 << 24)).astype(np.int64)
    mean = whole.sum(axis=(2, 3)) / whole[0, 0].size / (1 << 24) * safe
    factors = np.array([LAYER_GROUPS[3 * layer // layers] for layer in range(layers)])[:, None]
    steps: Floats = np.maximum(mean * STEPS[level] * factors, safe / LARGEST_SYMBOL).astype(np.float32)
    return steps


def _choose_anchoring(numbers: Symbols) -> npt.NDArray[np.int64]:
    """Return _MEAN or _TOKEN, whichever leaves the smaller sum of magnitudes, of shape (layers, 2)."""
    tokens = numbers.shape[2]
    by_token = np.abs(numbers - numbers[:, :, _token_anchors(tokens)])
    by_mean = np.abs(numbers - _means(numbers, axis=2))
    return np.where(by_token.sum(axis=(2, 3)) < by_mean.sum(axis=(2, 3)), _TOKEN, _MEAN)


def _encode_group(rows: Symbols, kind: int) -> Iterator[bytes]:
    anchors, deltas = _split(rows, kind)
    for part in (anchors, deltas):
        reach = max(1, int(np.abs(part).max(initial=0)))
        code = encode_rows(part, reach, _spread(part.shape[1]))
        yield np.array([reach], "<u1").tobytes() + np.array([len(code)], "<u4").tobytes()
        yield code


def _decode_group(fields: Fields, tokens: int, channels: int, kind: int) -> Symbols:
    anchor_rows = 1 if kind == _MEAN else -(-tokens // GROUP_TOKENS)
    delta_rows = tokens if kind == _MEAN else tokens - anchor_rows
    parts = []
    for rows in (anchor_rows, delta_rows):
        reach = int(fields.array("u1", (1,))[0])
        length = int(fields.array("<u4", (1,))[0])
        if not reach:
            raise StreamError("the payload has symbols without a range")
        parts.append(decode_rows(bytes(fields.take(length)), (rows, channels), reach, _spread(channels)))
    return _join(parts[0], parts[1], tokens, kind)


def _split(rows: Symbols, kind: int) -> tuple[Symbols, Symbols]:
    """Return anchors and deltas of rows (tokens, channels)."""
    if kind == _MEAN:
        anchors = _means(rows, axis=0)
        return anchors, rows - anchors
    at = _token_anchors(len(rows))
    is_delta = at != np.arange(len(rows))
    return rows[::GROUP_TOKENS], (rows - rows[at])[is_delta]


def _join(anchors: Symbols, deltas: Symbols, tokens: int, kind: int) -> Symbols:
    if kind == _MEAN:
        return anchors + deltas
    at = _token_anchors(tokens)
    rows = anchors[at // GROUP_TOKENS]
    rows[at != np.arange(tokens)] += deltas
    return rows


def _rows(numbers: Symbols, chosen: npt.NDArray[np.bool_]) -> Symbols:
    """Return the numbers of the chosen layers as (tokens, channels of all of them)."""
    picked = numbers[chosen]
    return np.ascontiguousarray(picked.transpose(1, 0, 2)).reshape(numbers.shape[2], -1)


def _means(numbers: Symbols, axis: int) -> Symbols:
    """Return the means along an axis, rounded half up in whole numbers."""
    count = numbers.shape[axis]
    means: Symbols = ((2 * numbers.sum(axis=axis, keepdims=True) + count) // (2 * count)).astype(np.int32)
    return means


def _token_anchors(tokens: int) -> npt.NDArray[np.int64]:
    """Return for each token the index of its anchor."""
    return np.arange(tokens) // GROUP_TOKENS * GROUP_TOKENS


def _spread(channels: int) -> npt.NDArray[np.int64]:
    return np.full(channels, _FIRST_SPREAD, np.int64)
