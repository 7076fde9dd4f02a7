"""Spans as OTLP/JSON: the TracesData message of opentelemetry-proto in its JSON form, without protobuf.

By the OTLP specification ("JSON Protobuf Encoding"), ids are hexadecimal, 64-bit numbers are strings and
enums are numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from emulator.traces.spans import Span

_SPAN_KIND_INTERNAL = 1
_SCOPE = {"name": "weir"}


def to_otlp(spans: Iterable[Span], about: dict[str, str]) -> dict[str, Any]:
    """Return the spans as one resource for each service; `about` has attributes of all of them."""
    by_service: dict[str, list[dict[str, Any]]] = {}
    for span in spans:
        by_service.setdefault(span.service, []).append(_span(span))
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes({"service.name": service, **about})},
                "scopeSpans": [{"scope": _SCOPE, "spans": part}],
            }
            for service, part in by_service.items()
        ]
    }


def _span(span: Span) -> dict[str, Any]:
    record: dict[str, Any] = {
        "traceId": span.trace_id.hex(),
        "spanId": span.span_id.hex(),
        "name": span.name,
        "kind": _SPAN_KIND_INTERNAL,
        "startTimeUnixNano": str(span.start_ns),
        "endTimeUnixNano": str(span.end_ns),
    }
    if span.parent is not None:
        record["parentSpanId"] = span.parent.span_id.hex()
    if span.attributes:
        record["attributes"] = _attributes(span.attributes)
    if span.links:
        record["links"] = [{"traceId": trace.hex(), "spanId": one.hex()} for trace, one in span.links]
    return record


def _attributes(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _value(value: str | int | float) -> dict[str, Any]:
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}
