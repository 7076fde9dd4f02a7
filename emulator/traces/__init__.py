"""Spans of a request's way from the worker over switches to the store and back (docs/traces.md).

They are made after the run, from the hosts' records of each block and the captures at the switches' ports.
During the run nothing in hosts or switches works for them, except that a worker records the times of its
blocks.
"""

from emulator.traces.files import write_traces
from emulator.traces.sightings import EXPRESSION, HEADER_BYTES
from emulator.traces.spans import Clock

__all__ = ["EXPRESSION", "HEADER_BYTES", "Clock", "write_traces"]
