"""What can go wrong in the benchmark."""

from __future__ import annotations


class BenchError(Exception):
    """The benchmark can't go on; the message says why and what to do."""
