"""What a measurement of the control plane may fail with."""

from __future__ import annotations

from experiments.errors import ExperimentError


class BenchError(ExperimentError):
    """It could not be measured; the message says why."""
