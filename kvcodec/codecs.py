"""Codecs by name, and the two functions that callers need: `encode` and `decode`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kvcodec.bins import decode_bins, encode_bins
from kvcodec.cachegen import STEPS, decode_cachegen, encode_cachegen
from kvcodec.errors import CodecError, StreamError
from kvcodec.fp8 import decode_fp8, encode_fp8
from kvcodec.frame import Frame, open_frame, seal
from kvcodec.kivi import decode_kivi, encode_kivi
from kvcodec.layout import Floats, Layout
from kvcodec.lossless import decode_plain, decode_zstd, encode_plain, encode_zstd


@dataclass(frozen=True, slots=True)
class Codec:
    """One way to write a block as bytes."""

    number: int
    """Number of the codec in a stream's header."""
    levels: tuple[int, ...]
    """Levels, best quality first."""
    default: int
    encode: Callable[[Floats, int], bytes]
    decode: Callable[[bytes, Layout, int, int], Floats]
    what: str


CODECS: Final = {
    "plain": Codec(0, (0,), 0, encode_plain, decode_plain, "bfloat16"),
    "zstd": Codec(1, (19, 3), 3, encode_zstd, decode_zstd, "bfloat16 in zstd; the level is zstd's"),
    "fp8": Codec(2, (0,), 0, encode_fp8, decode_fp8, "8-bit floats (e4m3), a scale a layer"),
    "kivi": Codec(
        3, (8, 4, 2), 4, encode_kivi, decode_kivi, "uniform by channel and token; the level is bits"
    ),
    "bins": Codec(5, (0, 1), 0, encode_bins, decode_bins, "CacheGen's bins as LMCache has them"),
    "cachegen": Codec(
        4,
        tuple(range(len(STEPS))),
        3,
        encode_cachegen,
        decode_cachegen,
        "deltas, arithmetic code; 0 is finest",
    ),
}
_BY_NUMBER: Final = {codec.number: (name, codec) for name, codec in CODECS.items()}


def find_codec(name: str, level: int | None = None) -> tuple[Codec, int]:
    """Return a codec and a level, the codec's default if None; raises CodecError if either does not exist."""
    if name not in CODECS:
        raise CodecError(f"there is no codec {name!r}: choose one of {', '.join(CODECS)}")
    codec = CODECS[name]
    if level is None:
        return codec, codec.default
    if type(level) is not int or level not in codec.levels:
        levels = ", ".join(map(str, codec.levels))
        raise CodecError(f"{name} has no level {level!r}: choose one of {levels}")
    return codec, level


def encode(kv: Floats, layout: Layout, name: str = "cachegen", level: int | None = None) -> bytes:
    """Return a block's tensor as a stream.

    Raises CodecError if `kv` is not a block of `layout`, or if the codec or the level does not exist.
    """
    codec, chosen = find_codec(name, level)
    layout.check(kv)
    return seal(Frame(codec.number, chosen, kv.shape[2], codec.encode(kv, chosen)), layout)


def decode(stream: bytes, layout: Layout) -> Floats:
    """Return the tensor of a stream, with its codec's loss.

    Raises StreamError unless the stream is whole and of `layout`.
    """
    frame = open_frame(stream, layout)
    if frame.codec not in _BY_NUMBER:
        raise StreamError(f"the stream is of codec {frame.codec}, which this version does not have")
    name, codec = _BY_NUMBER[frame.codec]
    if frame.level not in codec.levels:
        raise StreamError(f"the stream is of {name}'s level {frame.level}, which does not exist")
    return codec.decode(frame.payload, layout, frame.tokens, frame.level)
