"""Trace of what each packet does in the switch, step by step: as objects, as text, as JSON lines."""

from v1model.trace.events import TraceEvent, TraceFilter
from v1model.trace.formats import as_json, as_text

__all__ = ["TraceEvent", "TraceFilter", "as_json", "as_text"]
