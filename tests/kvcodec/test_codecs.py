"""What every codec keeps: shape, nearness, determinism; and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvcodec import CODECS, CodecError, Layout, StreamError, decode, encode, find_codec
from kvcodec.bfloat16 import from_bits, to_bits
from kvcodec.cachegen import LAYER_GROUPS, STEPS
from kvcodec.frame import HEADER_BYTES
from tests.kvcodec.blocks import CHOICES, GivenBlock, block, layout, layouts_and_blocks
from tests.slow import rest_slow

EVERY_CODEC = rest_slow([(name, codec.levels[0]) for name, codec in CODECS.items()], CHOICES)
"""Levels of a codec differ in how many steps a value has."""


@pytest.mark.parametrize(("name", "level"), EVERY_CODEC)
@given(layouts_and_blocks())
def test_a_block_comes_back_with_its_shape_and_the_stream_is_always_the_same(
    name: str, level: int, given_block: GivenBlock
) -> None:
    of, kv = given_block
    stream = encode(kv, of, name, level)
    decoded = decode(stream, of)
    assert decoded.shape == kv.shape
    assert decoded.dtype == np.float32
    assert np.isfinite(decoded).all()
    assert encode(kv, of, name, level) == stream


@pytest.mark.parametrize("name", ["plain", "zstd"])
@given(layouts_and_blocks())
def test_lossless_means_equal_to_bfloat16(name: str, given_block: GivenBlock) -> None:
    of, kv = given_block
    assert np.array_equal(decode(encode(kv, of, name), of), from_bits(to_bits(kv)))


@given(layouts_and_blocks(), st.sampled_from(CODECS["cachegen"].levels))
def test_cachegen_is_off_by_half_a_step_at_most(given_block: GivenBlock, level: int) -> None:
    of, kv = given_block
    decoded = decode(encode(kv, of, "cachegen", level), of)
    magnitude = np.abs(kv).mean(axis=(2, 3), dtype=np.float64)
    largest = np.abs(kv).max(axis=(2, 3)).astype(np.float64)
    step = np.maximum(STEPS[level] * max(LAYER_GROUPS) * magnitude, largest / 127)
    assert (np.abs(decoded - kv).max(axis=(2, 3)) <= 0.5001 * step).all()


@given(layouts_and_blocks(), st.sampled_from([8, 4, 2]))
def test_kivi_is_off_by_half_a_step_of_the_layer_at_most(given_block: GivenBlock, bits: int) -> None:
    of, kv = given_block
    decoded = decode(encode(kv, of, "kivi", bits), of)
    span = (kv.max(axis=(2, 3)) - kv.min(axis=(2, 3))).astype(np.float64)
    rounding = np.abs(kv).max(axis=(2, 3)) / 64
    assert (np.abs(decoded - kv).max(axis=(2, 3)) <= 0.51 * span / (2**bits - 1) + rounding).all()


def test_fp8_keeps_three_bits_of_mantissa() -> None:
    of = layout()
    kv = block(of, 20)
    decoded = decode(encode(kv, of, "fp8"), of)
    near_zero = np.abs(kv).max(axis=(2, 3), keepdims=True) / 448 * 2.0**-6
    assert (np.abs(decoded - kv) <= np.maximum(np.abs(kv) / 16, near_zero / 8)).all()


def test_finer_levels_lose_less_and_send_more() -> None:
    of = layout(head_dim=16)
    kv = block(of, 64)
    streams = [encode(kv, of, "cachegen", level) for level in CODECS["cachegen"].levels]
    errors = [float(np.square(decode(stream, of) - kv).mean()) for stream in streams]
    assert errors == sorted(errors)
    assert [len(stream) for stream in streams] == sorted((len(s) for s in streams), reverse=True)


def test_neighbouring_tokens_that_are_alike_make_a_stream_shorter() -> None:
    of = layout(head_dim=32)
    random = np.random.default_rng(1)
    apart = random.standard_normal(of.shape(60)).astype(np.float32)
    alike = np.repeat(apart[:, :, ::10], 10, axis=2) + 0.05 * apart
    assert len(encode(alike, of)) < 0.5 * len(encode(apart, of))


@pytest.mark.parametrize(("name", "level"), EVERY_CODEC)
@given(st.data())
def test_a_damaged_or_truncated_stream_is_refused(name: str, level: int, data: st.DataObject) -> None:
    of = layout()
    stream = encode(block(of, 12), of, name, level)
    at = data.draw(st.integers(0, len(stream) - 1))
    if data.draw(st.booleans()):
        damaged = bytearray(stream[:at])
    else:
        damaged = bytearray(stream)
        damaged[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(StreamError):
        decode(bytes(damaged), of)


@pytest.mark.parametrize(("name", "level"), EVERY_CODEC)
@given(st.data())
def test_a_hostile_stream_with_a_right_digest_gives_a_tensor_of_the_shape_or_is_refused(
    name: str, level: int, data: st.DataObject
) -> None:
    """Whoever can compute the digest can still not make the decoder fail in another way."""
    from kvcodec.frame import Frame, seal

    of = layout(layers=2, head_dim=4)
    payload = bytearray(encode(block(of, 5), of, name, level)[HEADER_BYTES:])
    for _ in range(data.draw(st.integers(0, 4))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(payload)))
    tokens = data.draw(st.sampled_from([5, 5, 1, 6, 4096]))
    body = (
        bytes(payload[:cut])
        if data.draw(st.booleans())
        else bytes(payload) + data.draw(st.binary(max_size=9))
    )
    try:
        decoded = decode(seal(Frame(CODECS[name].number, level, tokens, body), of), of)
    except StreamError:
        return
    assert decoded.shape == of.shape(tokens)


def test_streams_of_another_model_shape_version_codec_or_level_are_refused() -> None:
    from kvcodec.frame import Frame, seal

    of = layout()
    stream = encode(block(of, 4), of)
    for other in (Layout("another", 3, 2, 8), Layout(of.model, 3, 1, 16), Layout(of.model, 2, 2, 8)):
        with pytest.raises(StreamError, match=r"another model or shape; expected"):
            decode(stream, other)
    with pytest.raises(StreamError, match="version 2; this is version 1"):
        decode(stream[:3] + b"\x02" + stream[4:], of)
    with pytest.raises(StreamError, match="no stream of KV"):
        decode(b"GET" + stream[3:], of)
    with pytest.raises(StreamError, match="codec 99"):
        decode(seal(Frame(99, 0, 4, b""), of), of)
    with pytest.raises(StreamError, match="cachegen's level 77"):
        decode(seal(Frame(CODECS["cachegen"].number, 77, 4, b""), of), of)
    with pytest.raises(StreamError, match="from 1 to 4096 tokens"):
        decode(seal(Frame(0, 0, 0, b""), of), of)


def test_unknown_codecs_levels_and_tensors_are_refused_with_what_was_expected() -> None:
    of = layout()
    kv = block(of, 4)
    with pytest.raises(CodecError, match="no codec 'jpeg': choose one of plain, zstd, fp8, kivi, bins,"):
        encode(kv, of, "jpeg")
    with pytest.raises(CodecError, match=r"kivi has no level 3: choose one of 8, 4, 2"):
        find_codec("kivi", 3)
    unsound: Any
    for unsound in ("3", 3.0, True):
        with pytest.raises(CodecError, match=r"cachegen has no level .*: choose one of 0, 1, 2"):
            encode(kv, of, "cachegen", unsound)
    with pytest.raises(CodecError, match="a block is a numpy array, not list"):
        encode(kv.tolist(), of)
    text: Any = "WKV" * 20
    with pytest.raises(StreamError, match="a stream is bytes, not str"):
        decode(text, of)
    for sizes in ((2.5, 1, 4), (2, "1", 4), (2, 1, 0)):
        with pytest.raises(CodecError, match="must be a whole number from 1 to 65535"):
            Layout("m", *sizes)
    wrong: Any
    for wrong in (kv[:2], kv[0], kv.astype(np.float64), kv[:, :, :0]):
        with pytest.raises(CodecError, match=r"float32 \(3, 2, tokens, 16\)|from 1 to 4096 tokens"):
            encode(wrong, of)
    for bad in (np.nan, np.inf, 1e38):
        broken = kv.copy()
        broken[0, 0, 0, 0] = bad
        with pytest.raises(CodecError, match="holds"):
            encode(broken, of)


def test_streams_are_those_of_other_machines_and_earlier_days() -> None:
    """Digests of streams of fixed tensors: a change of them is a change of the stream's version."""
    from hashlib import blake2b

    of = layout()
    grid = np.arange(np.prod(of.shape(25)), dtype=np.int64) * 7919 % 1009
    kv = ((grid - 504).astype(np.float32) / np.float32(64)).reshape(of.shape(25))
    digests = {
        name: blake2b(encode(kv, of, name), digest_size=4).hexdigest()
        for name in CODECS
        if name != "zstd"  # zstd's own versions may compress differently; what comes out is the same
    }
    assert digests == {
        "plain": "6b9cc8ce",
        "fp8": "57364131",
        "kivi": "68915959",
        "bins": "ad10eeca",
        "cachegen": "b8bfb767",
    }
