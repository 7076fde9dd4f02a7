"""What checks the files of traces: for small ones made up, and for those of a real run."""

from __future__ import annotations

import base64
from collections import defaultdict
from typing import Any


def as_protobuf_json(otlp: dict[str, Any]) -> dict[str, Any]:
    """OTLP's ids are hexadecimal where protobuf's own JSON has base64; the rest is the same."""

    def convert(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: convert(part, key) for key, part in value.items()}
        if isinstance(value, list):
            return [convert(part) for part in value]
        if name in ("traceId", "spanId", "parentSpanId"):
            return base64.b64encode(bytes.fromhex(value)).decode()
        return value

    converted: dict[str, Any] = convert(otlp)
    return converted


REQUIRED = {
    "X": {"name": str, "cat": str, "pid": int, "tid": int, "ts": float, "dur": float, "args": dict},
    "M": {"name": str, "pid": int, "tid": int, "args": dict},
    "s": {"name": str, "cat": str, "id": int, "pid": int, "tid": int, "ts": float},
    "f": {"name": str, "cat": str, "id": int, "pid": int, "tid": int, "ts": float, "bp": str},
}
"""Fields of the phases used, by the Trace Event Format."""


def check_chrome(trace: dict[str, Any]) -> None:
    """Its fields, that what shares a track is nested, and that arrows have two ends within slices."""
    slices = defaultdict(list)
    arrows: defaultdict[int, dict[str, dict[str, Any]]] = defaultdict(dict)
    for event in trace["traceEvents"]:
        kinds = REQUIRED[event["ph"]]
        assert set(event) == {"ph", *kinds}
        for name, kind in kinds.items():
            assert isinstance(event[name], kind), event
        if event["ph"] == "X":
            assert event["ts"] >= 0
            assert event["dur"] >= 0
            slices[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        if event["ph"] in "sf":
            arrows[event["id"]][event["ph"]] = event
    for track in slices.values():
        open_until: list[float] = []
        for start, end in sorted(track, key=lambda one: (one[0], -one[1])):
            while open_until and open_until[-1] <= start + 0.001:  # they are floats, of microseconds
                open_until.pop()
            assert not open_until or end <= open_until[-1] + 0.001
            open_until.append(end)
    for ends in arrows.values():
        for end in (ends["s"], ends["f"]):
            track = slices[end["pid"], end["tid"]]
            assert any(start <= end["ts"] <= stop for start, stop in track)
