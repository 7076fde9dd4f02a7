"""What a command reports and ends with, instead of a traceback."""

from __future__ import annotations


class ExperimentError(Exception):
    """Why an experiment can't go on; the message says what, where, and what to do. Not for bugs."""
