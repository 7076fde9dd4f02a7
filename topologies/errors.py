"""What can be wrong with a topology or an engine; the message says what to do."""

from __future__ import annotations


class TopologyError(Exception):
    """A topology that cannot be built."""


class EngineError(Exception):
    """A switch engine that is not there, or did not start."""
