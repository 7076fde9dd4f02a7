"""Trace events as lines of text, for people, or of JSON, for programs."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from v1model.trace.events import TraceEvent
    from v1model.trace.outcomes import Choice

_INDENT = {"received": "", "copied": "", "sent": "", "dropped": "", "queued": "  ", "control": "  "}


def as_json(event: TraceEvent, outcome: int | None = None) -> str:
    """Return one JSON object; frames are hex digits. `outcome` numbers those of a packet."""
    record = asdict(event) | ({} if outcome is None else {"outcome": outcome})
    record["values"] = {
        name: value.hex() if isinstance(value, bytes) else value for name, value in event.values.items()
    }
    return json.dumps(record)


def as_text(event: TraceEvent) -> str:
    """Return `packet.copy time event`, indented by its depth in the switch."""
    head = f"{event.packet}.{event.copy:<4} {event.time_us / 1e6:10.6f} s  "
    return head + _INDENT.get(event.kind, "    ") + _what(event)


def choices_text(choices: Sequence[Choice]) -> str:
    """Return as text which member each group chooses."""
    chosen = [f"{profile}: group {group} chooses member {member}" for profile, group, member in choices]
    return "; ".join(chosen) or "no group chooses"


def _what(event: TraceEvent) -> str:
    values = event.values
    match event.kind:
        case "received" | "sent":
            frame = values["frame"]
            assert isinstance(frame, bytes)
            verb = "comes in by" if event.kind == "received" else "goes out by"
            return f"{verb} port {values['port']}, {len(frame)} bytes: {frame.hex()}"
        case "state":
            return f"parser state {event.name}"
        case "extract":
            return f"extract {event.name}: {_pairs(values)}"
        case "parsed":
            return f"parser ends: {values['error']}"
        case "table":
            return _table(event)
        case "call":
            return f"call {event.name}"
        case "assign":
            return f"{event.name} = {_number(values['value'])}"
        case "copied":
            return f"{values['cause']}: a copy of {event.packet}.{values['of']}"
        case "queued":
            instance = f", instance {values['instance']}" if values["instance"] else ""
            return f"to egress port {values['port']}{instance}"
        case "dropped":
            where = f" (port {values['port']})" if "port" in values else ""
            return f"dropped: {values['cause']}{where}"
    return event.name


def _table(event: TraceEvent) -> str:
    values = event.values
    key, arguments = values["key"], values["arguments"]
    assert isinstance(key, dict)
    assert isinstance(arguments, dict)
    looked = f" [{_pairs(key)}]" if key else ""
    found = "hit" if values["hit"] else "miss"
    by = [f"{name} {values[name]}" for name in ("priority", "member", "group") if name in values]
    matches = values.get("matches")
    if isinstance(matches, list):
        by.insert(0, " ".join(matches))
    entry = f" ({', '.join(by)})" if by else ""
    return f"table {event.name}{looked}: {found}{entry}, {values['action']}({_pairs(arguments)})"


def _pairs(values: dict[str, object]) -> str:
    return ", ".join(f"{name}={_number(value)}" for name, value in values.items())


def _number(value: object) -> str:
    return f"{value:#x}" if isinstance(value, int) and value > 9 else str(value)
