"""Errors of kvcodec: CodecError, and its subclass StreamError for a stream that can't be decoded."""

from __future__ import annotations


class CodecError(ValueError):
    """Codec, level or tensor that can't be used; the message says what was expected."""


class StreamError(CodecError):
    """Stream that is damaged, truncated, foreign or of another version; it yields no tensor."""
