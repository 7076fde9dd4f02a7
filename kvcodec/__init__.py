"""Codecs that turn KV tensors into byte streams: CacheGen's coder and plain ones to compare it with.

    stream = encode(kv, layout)          # float32 (layers, 2, tokens, kv_heads * head_dim)
    kv = decode(stream, layout)          # or StreamError: never a wrong tensor

The same tensor gives the same stream on any machine. `frame` describes the stream's format; `CODECS` lists
the codecs.
"""

from kvcodec.codecs import CODECS, Codec, decode, encode, find_codec
from kvcodec.errors import CodecError, StreamError
from kvcodec.layout import Layout

__all__ = ["CODECS", "Codec", "CodecError", "Layout", "StreamError", "decode", "encode", "find_codec"]
