"""Packing of an entry's matches into the key and mask of runtime/table.h."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from v1model.backend.layout import value_width, wire_bytes
from v1model.backend.tables import match_keys, match_kind
from v1model.dataplane import DataPlaneError
from v1model.ir import KeyMatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from v1model.ir import Table


class PackedKey(NamedTuple):
    """Packed key of an entry. A higher `priority` wins.

    In tables with a range, the mask of that field is the range's upper end.
    """

    key: bytes
    mask: bytes | None
    priority: int


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    kind: str
    width: int


class KeyPacker:
    """Checker and packer of one table's matches."""

    def __init__(self, table: Table, what: str = "table") -> None:
        self._name = f"{what} {table.name}"
        self._fields = [
            Field(key.name, key.match_kind, value_width(key.expression.type)) for key in match_keys(table)
        ]
        # Selector keys take no match, but have an empty place among an entry's matches.
        self._places = [i for i, key in enumerate(table.keys) if key.match_kind != "selector"]
        self._entry_length = len(table.keys)
        self.is_exact = match_kind(table) == "MATCH_EXACT"
        kinds = {field.kind for field in self._fields}
        self.is_lpm = "lpm" in kinds and not kinds & {"ternary", "range", "optional"}
        self.has_priority = not self.is_exact and not self.is_lpm
        self.bytes = sum(wire_bytes(field.width) for field in self._fields)

    def pack(self, matches: Sequence[KeyMatch | None], priority: int) -> PackedKey:
        if len(matches) == self._entry_length:
            matches = [matches[i] for i in self._places]
        if len(matches) != len(self._fields):
            raise self._error(f"needs {len(self._fields)} matches, not {len(matches)}")
        if not self._fields:
            raise self._error("has no key: only its default action can be set")
        if self.is_exact:
            return PackedKey(self._pack_exact(matches), None, 0)
        return self._pack_masked(matches, priority)

    def _pack_exact(self, matches: Sequence[KeyMatch | None]) -> bytes:
        packed = []
        for field, match in zip(self._fields, matches, strict=True):
            if match is None:
                raise self._error(f"key {field.name} needs a value")
            packed.append(self._to_bytes(field, match.value))
        return b"".join(packed)

    def _pack_masked(self, matches: Sequence[KeyMatch | None], priority: int) -> PackedKey:
        key, mask = [], []
        for field, match in zip(self._fields, matches, strict=True):
            low, high = self._bounds(field, match)
            key.append(self._to_bytes(field, low))
            mask.append(self._to_bytes(field, high))
            if self.is_lpm and field.kind == "lpm":
                priority = high.bit_count()
        return PackedKey(b"".join(key), b"".join(mask), priority)

    def unpack(self, key: bytes, mask: bytes) -> tuple[KeyMatch | None, ...]:
        """Return the matches of an entry, one for each key of the table."""
        matches: list[KeyMatch | None] = [None] * self._entry_length
        at = 0
        for place, field in zip(self._places, self._fields, strict=True):
            end = at + wire_bytes(field.width)
            low, high = int.from_bytes(key[at:end], "big"), int.from_bytes(mask[at:end], "big")
            matches[place] = KeyMatch(low) if self.is_exact else _match(field, low, high)
            at = end
        return tuple(matches)

    def _bounds(self, field: Field, match: KeyMatch | None) -> tuple[int, int]:
        """Return (value, mask), or the ends of a range."""
        full = (1 << field.width) - 1
        if match is None:
            if field.kind == "exact":
                raise self._error(f"key {field.name} needs a value")
            return (0, full) if field.kind == "range" else (0, 0)
        if field.kind == "range":
            high = match.value if match.high is None else match.high
            if match.value > high:
                raise self._error(f"key {field.name}: the range's low end is above its high end")
            return match.value, high
        if field.kind == "lpm":
            length = field.width if match.prefix_length is None else match.prefix_length
            if not 0 <= length <= field.width:
                raise self._error(f"key {field.name}: prefix length {length} is not within 0..{field.width}")
            mask = full ^ (full >> length)
        else:
            mask = full if match.mask is None else match.mask
        self._to_bytes(field, match.value)
        return match.value & mask, mask

    def _to_bytes(self, field: Field, value: int) -> bytes:
        if value < 0 or value.bit_length() > field.width:
            raise self._error(f"key {field.name}: {value:#x} does not fit in {field.width} bits")
        return value.to_bytes(wire_bytes(field.width), "big")

    def _error(self, message: str) -> DataPlaneError:
        return DataPlaneError("INVALID_ARGUMENT", f"{self._name}: {message}")


def _match(field: Field, value: int, mask: int) -> KeyMatch | None:
    """Return a packed field with its mask (for a range its ends) in P4Runtime's canonical form."""
    full = (1 << field.width) - 1
    if field.kind == "range":
        return None if (value, mask) == (0, full) else KeyMatch(value, high=mask)
    if field.kind == "exact":
        return KeyMatch(value)
    if not mask:
        return None
    if field.kind == "lpm":
        return KeyMatch(value, prefix_length=mask.bit_count())
    return KeyMatch(value) if field.kind == "optional" else KeyMatch(value, mask=mask)
