"""Errors of the benchmark."""

from __future__ import annotations

from commands.errors import ExperimentError


class BenchError(ExperimentError):
    """The benchmark can't go on; the message says why and what to do."""
