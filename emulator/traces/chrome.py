"""Spans in the Trace Event Format, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

Each host and switch is a process. Spans that overlap can't share a track ("thread"), so each kind of span has
as many tracks as it needs, and the parts of a request are on the tracks below it. Arrows lead from a node's
fragment to the work of the switch and the store for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from emulator.traces.spans import Span

_KINDS = ("request", "fetch", "block", "fragment")
"""Spans with tracks of their own; the others are drawn on the track of their parent."""
_TRACKS_EACH = 1_000_000
"""More tracks than a kind of span needs in any process: numbers of tracks follow the order of the kinds."""


def to_chrome(spans: Sequence[Span], about: dict[str, str]) -> dict[str, Any]:
    """Return the JSON object form; times are in microseconds since the first span."""
    start_ns = min((span.start_ns for span in spans), default=0)
    pids = {service: number for number, service in enumerate(sorted({s.service for s in spans}), 1)}
    tracks = _Tracks()
    events: list[dict[str, Any]] = []
    places: dict[bytes, tuple[int, int]] = {}
    for span in sorted(spans, key=lambda one: (one.start_ns, -one.end_ns)):
        pid = pids[span.service]
        track = tracks.of(pid, span, places)
        places[span.span_id] = pid, track
        events.append(
            {
                "ph": "X",
                "name": span.name,
                "cat": "weir",
                "pid": pid,
                "tid": track,
                "ts": (span.start_ns - start_ns) / 1000,
                "dur": (span.end_ns - span.start_ns) / 1000,
                "args": {"trace": span.trace_id.hex(), **span.attributes},
            }
        )
        if span.parent is not None and span.parent.service != span.service:
            events += _arrow(span, places, start_ns)
    return {
        "displayTimeUnit": "ms",
        "otherData": about,
        "traceEvents": [*_names(pids, tracks), *events],
    }


class _Tracks:
    """Assignment of spans to tracks."""

    def __init__(self) -> None:
        self._busy_until_ns: dict[tuple[int, str], list[int]] = {}
        self.names: dict[tuple[int, int], str] = {}

    def of(self, pid: int, span: Span, places: dict[bytes, tuple[int, int]]) -> int:
        if span.name not in _KINDS and span.parent is not None and span.parent.service == span.service:
            return places[span.parent.span_id][1]
        kind = span.name if span.name in _KINDS else "work"
        lanes = self._busy_until_ns.setdefault((pid, kind), [])
        for lane, until_ns in enumerate(lanes):
            if until_ns <= span.start_ns:
                lanes[lane] = span.end_ns
                break
        else:
            lane = len(lanes)
            lanes.append(span.end_ns)
        order = (*_KINDS, "work").index(kind)
        track = order * _TRACKS_EACH + lane + 1
        self.names[pid, track] = f"{kind} {lane + 1}"
        return track


def _arrow(span: Span, places: dict[bytes, tuple[int, int]], start_ns: int) -> list[dict[str, Any]]:
    assert span.parent is not None
    common = {"name": "for", "cat": "weir", "id": int.from_bytes(span.span_id, "big")}
    at = (span.start_ns - start_ns) / 1000
    from_pid, from_track = places[span.parent.span_id]
    to_pid, to_track = places[span.span_id]
    return [
        {**common, "ph": "s", "pid": from_pid, "tid": from_track, "ts": at},
        {**common, "ph": "f", "bp": "e", "pid": to_pid, "tid": to_track, "ts": at},
    ]


def _names(pids: dict[str, int], tracks: _Tracks) -> list[dict[str, Any]]:
    named = [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": service}}
        for service, pid in pids.items()
    ]
    for (pid, track), name in sorted(tracks.names.items()):
        named.append({"ph": "M", "name": "thread_name", "pid": pid, "tid": track, "args": {"name": name}})
        named.append(
            {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": track, "args": {"sort_index": track}}
        )
    return named
