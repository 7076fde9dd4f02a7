"""A request's way: spans from the worker over switches to the store and back (docs/traces.md).

What hosts record of each block and what is captured at the switches' ports meet here, after the play: nothing
in hosts or switches works for it, but that a worker keeps the times of its blocks.
"""

from emulator.traces.files import write_traces
from emulator.traces.sightings import EXPRESSION, HEADER_BYTES
from emulator.traces.spans import Clock

__all__ = ["EXPRESSION", "HEADER_BYTES", "Clock", "write_traces"]
