"""P4Info's ids and aliases, as p4c computes them (control-plane/p4RuntimeSymbolTable.cpp)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from v1model.errors import CompileError

_HASH_BITS = 24
_HASH_MASK = (1 << _HASH_BITS) - 1


def jenkins_one_at_a_time(data: bytes) -> int:
    """Return Bob Jenkins' one-at-a-time hash, 32 bits."""
    value = 0
    for byte in data:
        value = (value + byte) & 0xFFFFFFFF
        value = (value + (value << 10)) & 0xFFFFFFFF
        value ^= value >> 6
    value = (value + (value << 3)) & 0xFFFFFFFF
    value ^= value >> 11
    return (value + (value << 15)) & 0xFFFFFFFF


@dataclass(slots=True)
class SymbolTable:
    """Control plane's objects: maps kind (the id's first byte) and name to the id.

    @id wins. The others get the prefix and a hash of the name, on a collision the next free one, in the order
    of their names.
    """

    _given: dict[tuple[int, str], int | None] = field(default_factory=dict)
    _ids: dict[tuple[int, str], int] = field(default_factory=dict)
    _suffixes: Counter[tuple[str, ...]] = field(default_factory=Counter)

    def add(self, kind: int, name: str, given_id: int | None = None) -> None:
        """Announce an object; `given_id` is its @id, with or without the kind's prefix."""
        if (kind, name) in self._given:
            return
        if given_id is not None:
            given_id = self._with_prefix(kind, name, given_id)
        if all(known != name for _, known in self._given):
            parts = name.split(".")
            self._suffixes.update(tuple(parts[start:]) for start in range(len(parts)))
        self._given[kind, name] = given_id

    def _with_prefix(self, kind: int, name: str, given_id: int) -> int:
        prefix = given_id >> _HASH_BITS
        if prefix not in (0, kind):
            raise CompileError(f"@id({given_id:#x}) of {name}: the first byte must be {kind:#04x} or 0")
        full = given_id | kind << _HASH_BITS
        if full in self._given.values():
            raise CompileError(f"@id({given_id:#x}) of {name} is given to another object too")
        return full

    def assign(self) -> None:
        """Compute every id; call it when all objects are announced."""
        self._ids = {key: given for key, given in self._given.items() if given is not None}
        taken = set(self._ids.values())
        for kind, name in sorted(self._given.keys() - self._ids.keys()):
            value = jenkins_one_at_a_time(name.encode())
            while (kind << _HASH_BITS | value & _HASH_MASK) in taken:
                value += 1
            taken.add(kind << _HASH_BITS | value & _HASH_MASK)
            self._ids[kind, name] = kind << _HASH_BITS | value & _HASH_MASK

    def id(self, kind: int, name: str) -> int:
        return self._ids[kind, name]

    def alias(self, name: str) -> str:
        """Return the shortest suffix of the name's parts that no other object has."""
        parts = name.split(".")
        for start in range(len(parts) - 1, 0, -1):
            if self._suffixes[tuple(parts[start:])] < 2:
                return ".".join(parts[start:])
        return name
