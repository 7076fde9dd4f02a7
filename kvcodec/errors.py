"""Everything that kvcodec raises: CodecError, and under it StreamError for a stream that is not decoded."""

from __future__ import annotations


class CodecError(ValueError):
    """A codec, level or tensor that can't be used; the message says what was expected."""


class StreamError(CodecError):
    """A stream that is damaged, truncated, foreign or of another version; no tensor comes of it."""
