"""Decoder of the runtime's trace events."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from v1model.backend.layout import from_storage, storage_bytes, value_width, wire_bytes
from v1model.backend.tables import key_bytes, match_keys
from v1model.ir import KeyMatch
from v1model.trace.events import TraceEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from v1model.backend.tracing import TraceSite
    from v1model.dataplane import TableEntry
    from v1model.ir import Program, Table

NO_ENTRY = 0xFFFFFFFF
_COPY, _NUMBERS, _PORT = struct.Struct("=I"), struct.Struct("=2I"), struct.Struct("=I")
_FOUND = struct.Struct(">IH")  # an entry's handle, the index of the action

# enum trace_step and enum trace_cause in runtime/trace.h
RECEIVED, COPIED, QUEUED, DROPPED, SENT = range(0x40000000, 0x40000005)
COPY_CAUSES = ("clone of ingress", "clone of egress", "replica", "resubmit", "recirculate")
ABORTED = "stopped by the program"


class Decoder:
    """Decoder for a program's trace sites.

    `entry_of(table number, handle)` returns the entry, if it still exists.
    """

    def __init__(
        self,
        program: Program,
        sites: Sequence[TraceSite],
        drop_causes: Sequence[str],
        entry_of: Callable[[int, int], TableEntry | None],
    ) -> None:
        self._program, self._sites, self._drop_causes = program, sites, drop_causes
        self._entry_of = entry_of
        self._params = {action.name: action.params for action in program.actions}

    def decode(self, site: int, packet: int, time_us: int, data: bytes) -> TraceEvent:
        (copy,) = _COPY.unpack_from(data)
        kind, name, values = self._step(site, data[_COPY.size :])
        return TraceEvent(packet, copy, time_us, kind, name, values)

    def _step(self, site: int, data: bytes) -> tuple[str, str, dict[str, object]]:
        if site in (RECEIVED, SENT):
            (port,) = _PORT.unpack_from(data)
            return "received" if site == RECEIVED else "sent", "", {"port": port, "frame": data[_PORT.size :]}
        if site in (COPIED, QUEUED, DROPPED):
            return self._outside(site, *_NUMBERS.unpack(data))
        found = self._sites[site]
        if found.table >= 0:
            return "table", found.name, self._lookup(self._program.tables[found.table], found.table, data)
        values: dict[str, object] = dict(_numbers(found.values, data))
        if found.kind == "parsed":
            values["error"] = self._program.errors[int(str(values["error"]))]
        return found.kind, found.name, values

    def _outside(self, site: int, a: int, b: int) -> tuple[str, str, dict[str, object]]:
        if site == COPIED:
            return "copied", "", {"cause": COPY_CAUSES[a], "of": b}
        if site == QUEUED:
            return "queued", "", {"port": a, "instance": b}
        cause = self._drop_causes[a] if a < len(self._drop_causes) else ABORTED
        return "dropped", "", {"cause": cause, "port": b - 1} if b else {"cause": cause}

    def _lookup(self, table: Table, number: int, data: bytes) -> dict[str, object]:
        keys = [(key.name, value_width(key.expression.type)) for key in match_keys(table)]
        length = key_bytes(table)
        handle, action_index = _FOUND.unpack_from(data, length)
        action = table.actions[action_index].action
        values: dict[str, object] = {
            "key": dict(_numbers(keys, data)),
            "hit": handle != NO_ENTRY,
            "action": action,
            "arguments": self._arguments(action, data[length + _FOUND.size :]),
        }
        entry = self._entry_of(number, handle) if handle != NO_ENTRY else None
        if entry is not None:
            values["matches"] = [str_match(match) for match in entry.matches]
            given = {"priority": entry.priority or None, "member": entry.member, "group": entry.group}
            values |= {name: value for name, value in given.items() if value is not None}
        return values

    def _arguments(self, action: str, data: bytes) -> dict[str, int]:
        arguments, at = {}, 0
        for param in self._params[action]:
            size = storage_bytes(param.type.width)
            arguments[param.name] = from_storage(data[at : at + size], param.type.width)
            at += size
        return arguments


def _numbers(values: Sequence[tuple[str, int]], data: bytes) -> list[tuple[str, int]]:
    """Return values that lie in consecutive whole big-endian bytes, with their names."""
    found, at = [], 0
    for name, width in values:
        size = wire_bytes(width)
        found.append((name, int.from_bytes(data[at : at + size], "big")))
        at += size
    return found


def str_match(match: object) -> str:
    """Return an entry's match in the notation of STF and simple_switch_CLI."""
    if not isinstance(match, KeyMatch):
        return "*"
    if match.prefix_length is not None:
        return f"{match.value:#x}/{match.prefix_length}"
    if match.high is not None:
        return f"{match.value:#x}..{match.high:#x}"
    return f"{match.value:#x}" if match.mask is None else f"{match.value:#x}&&&{match.mask:#x}"
