"""Parser value sets as the control plane sees them; each is a table without actions in the runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.binding.matches import KeyPacker
from v1model.dataplane import DataPlaneError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from v1model.binding.library import Handle
    from v1model.dataplane import Matches
    from v1model.ir import Program


class ValueSets:
    def __init__(self, handle: Handle, program: Program) -> None:
        self._handle = handle
        self._numbers = {
            value_set.name: number
            for number, value_set in enumerate(program.value_sets, start=len(program.tables))
        }
        self._sizes = {value_set.name: value_set.size for value_set in program.value_sets}
        self._packers = {
            value_set.name: KeyPacker(value_set.as_table(), "value set") for value_set in program.value_sets
        }
        self._members: dict[str, tuple[Matches, ...]] = {}
        self.clear()

    def clear(self) -> None:
        """Empty all value sets, as they are until the control plane fills them."""
        self._members = dict.fromkeys(self._numbers, ())

    def _require(self, name: str) -> None:
        if name not in self._numbers:
            known = ", ".join(self._numbers) or "none"
            raise DataPlaneError("NOT_FOUND", f"no value set {name}; there are: {known}")

    def members(self, name: str) -> tuple[Matches, ...]:
        self._require(name)
        return self._members[name]

    def set_members(self, name: str, members: Iterable[Matches]) -> None:
        """Replace the members of a set; a member given twice counts once."""
        self._require(name)
        given = [tuple(member) for member in members]
        packer = self._packers[name]
        packed = [packer.pack(member, priority=1) for member in given]
        by_key = {(one.key, one.mask): member for one, member in zip(packed, given, strict=True)}
        if len(by_key) > self._sizes[name]:
            message = f"value set {name} takes {self._sizes[name]} members, not {len(by_key)}"
            raise DataPlaneError("RESOURCE_EXHAUSTED", message)
        keys = b"".join(key for key, _ in by_key)
        masks = None if packer.is_exact else b"".join(mask or b"" for _, mask in by_key)
        self._members[name] = ()
        if self._handle.call("set_members", self._numbers[name], keys, masks, len(by_key)):
            raise DataPlaneError("RESOURCE_EXHAUSTED", f"value set {name}: no memory")
        self._members[name] = tuple(by_key.values())
