"""Event logs as JSON lines: what the live controller saw can be replayed through any policy."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from controller.policies.events import EVENTS, Decision, Event, Key


class EventLogError(ValueError):
    """A log line that is not an event; the message says which line and why."""


_KEYS = ("key", "parent")
_WHOLE = ("depth", "chain_blocks", "times", "home", "tenant", "fragments")


def to_line(event: Event) -> str:
    """One event as a JSON line: its name, then its fields; byte keys in hexadecimal."""
    fields = {
        name: value.hex() if isinstance(value, bytes) else value for name, value in event._asdict().items()
    }
    return json.dumps({"event": type(event).__name__, **fields})


def read_events(lines: Iterable[str], name: str = "event log") -> Iterator[Event]:
    """Events of a log; raises EventLogError with the line's number."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield _parse(line)
            except (ValueError, TypeError, AttributeError, RecursionError) as error:
                raise EventLogError(f"{name}:{number}: not an event: {error}") from None


def decision_line(decision: Decision) -> str:
    """One decision as readable text, for comparing runs."""
    key = decision.key
    return f"{type(decision).__name__} {key.hex() if isinstance(key, bytes) else key}"


def _parse(line: str) -> Event:
    record = json.loads(line)
    kind = record.pop("event", None)
    if kind not in EVENTS:
        raise ValueError(f"no event {kind!r}: there are {', '.join(EVENTS)}")
    return EVENTS[kind](**{field: _value(field, value) for field, value in record.items()})


def _value(field: str, value: Any) -> Any:
    if field in _KEYS:
        return _key(value)
    wanted: tuple[type, ...] = (int,) if field in _WHOLE else (int, float)
    if type(value) not in wanted or value < 0:
        raise ValueError(f"{field} cannot be {value!r}")
    return value


def _key(value: Any) -> Key | None:
    if isinstance(value, str):
        return bytes.fromhex(value)
    if value is None or type(value) is int:
        return value
    raise ValueError(f"a key cannot be {value!r}")
