"""Event logs as JSON lines: what the live controller saw can be replayed through any policy.

The first line says of which pool they are; a log without one can be read, too."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, get_type_hints

from controller.policies.events import EVENTS, WHOLE_END, Event, Key


class EventLogError(ValueError):
    """A log line that is not an event; the message says which line and why."""


_KEYS = ("key", "parent")
_WHOLE = ("depth", "chain_blocks", "times", "home", "tenant", "fragments")


@dataclass(frozen=True)
class Head:
    """First line of a log: the arguments with which its policy was made."""

    policy: str
    capacity_blocks: int
    capacity_slots: int
    link_bit_s: float
    """Link rate of a storage node at real scale, in bits per second."""
    model: str
    gpu: str
    block_tokens: int
    stored_share: float

    def to_line(self) -> str:
        """Return the first line of a log."""
        return json.dumps({"pool": asdict(self)})


def read_head(lines: Iterable[str], name: str = "event log") -> Head | None:
    """Return what the first line of a log says of its pool, if it does; raises EventLogError."""
    line = next(iter(lines), "")
    if not _is_head(1, line):
        return None
    try:
        head = Head(**json.loads(line)["pool"])
    except (ValueError, TypeError, RecursionError) as error:
        raise EventLogError(f"{name}:1: says nothing of a pool: {error}") from None
    for field, kind in get_type_hints(Head).items():
        value: Any = getattr(head, field)
        fits = type(value) is str if kind is str else type(value) in (int, kind) and 0 < value < math.inf
        if not fits:
            raise EventLogError(f"{name}:1: {field} cannot be {value!r}")
    return head


def _is_head(number: int, line: str) -> bool:
    return number == 1 and line.startswith('{"pool":')


def to_line(event: Event) -> str:
    """Return one event as a JSON line: its name, then its fields, with byte keys in hexadecimal."""
    fields = {
        name: value.hex() if isinstance(value, bytes) else value for name, value in event._asdict().items()
    }
    return json.dumps({"event": type(event).__name__, **fields})


def read_events(lines: Iterable[str], name: str = "event log") -> Iterator[Event]:
    """Yield the events of a log; raises EventLogError with the line's number."""
    for number, line in enumerate(lines, 1):
        if line.strip() and not _is_head(number, line):
            try:
                yield _parse(line)
            except (ValueError, TypeError, AttributeError, RecursionError) as error:
                raise EventLogError(f"{name}:{number}: not an event: {error}") from None


def _parse(line: str) -> Event:
    record = json.loads(line)
    kind = record.pop("event", None)
    if kind not in EVENTS:
        raise ValueError(f"no event {kind!r}: there are {', '.join(EVENTS)}")
    return EVENTS[kind](**{field: _value(field, value) for field, value in record.items()})


def _value(field: str, value: Any) -> Any:
    if field in _KEYS:
        return _key(value)
    least = 1 if field == "times" else 0
    if field in _WHOLE:
        fits = type(value) is int and least <= value < WHOLE_END
    else:
        fits = type(value) in (int, float) and 0 <= value < math.inf
    if not fits:
        raise ValueError(f"{field} cannot be {value!r}")
    return value


def _key(value: Any) -> Key | None:
    if isinstance(value, str):
        return bytes.fromhex(value)
    if value is None or type(value) is int:
        return value
    raise ValueError(f"a key cannot be {value!r}")
