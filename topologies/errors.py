"""Errors of topologies and engines; their messages say what to do."""

from __future__ import annotations


class TopologyError(Exception):
    """Topology that can't be built."""


class EngineError(Exception):
    """Switch engine that is not installed or did not start."""
