"""A program's P4Info: IDs by name, and table entries in P4Runtime's form and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from google.protobuf import text_format

from controller.errors import P4InfoError
from v1model.protos.p4.config.v1 import p4info_pb2
from v1model.protos.p4.v1 import p4runtime_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path


_CELL = ".slot_cell_"
"""Part of the names of registers that hold values."""


class Prefix(NamedTuple):
    """A longest-prefix match."""

    value: int
    length: int


Match = int | Prefix


def canonical(value: int) -> bytes:
    """Return P4Runtime's shortest bytestring of an unsigned number."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def load_p4info(path: Path) -> Any:
    """Return the P4Info in a text file; raises P4InfoError."""
    p4info = p4info_pb2.P4Info()
    try:
        text_format.Parse(path.read_text(), p4info, allow_unknown_field=True)
    except OSError as error:
        raise P4InfoError(f"{path}: {error.strerror}") from None
    except (UnicodeDecodeError, text_format.ParseError) as error:
        raise P4InfoError(f"{path}: not a P4Info text file: {error}") from None
    return p4info


class EntryForm:
    """Entries of one table that differ in their exact matches' and parameters' values alone.

    A copy of a whole entry whose values are set costs a quarter of putting one together.
    """

    def __init__(self, entry: p4runtime_pb2.TableEntry) -> None:
        self._update = p4runtime_pb2.Update(entity=p4runtime_pb2.Entity(table_entry=entry))

    def update(
        self, kind: p4runtime_pb2.Update.Type, matches: Sequence[bytes], *parameters: int
    ) -> p4runtime_pb2.Update:
        """Return an update with these canonical values of its matches and these parameters, in the form's
        order."""
        update = p4runtime_pb2.Update()
        update.CopyFrom(self._update)
        update.type = kind
        entry = update.entity.table_entry
        for field, match in zip(entry.match, matches, strict=True):
            field.exact.value = match
        for place, value in zip(entry.action.action.params, parameters, strict=True):
            place.value = canonical(value)
        return update


class Program:
    """Look-ups in a P4Info by name; all raise P4InfoError with the names that exist."""

    def __init__(self, p4info: Any) -> None:
        self.p4info = p4info
        # An entry is built for every block that is admitted.
        self._found: dict[tuple[str, str], Any] = {}
        self._table_fields: dict[str, dict[str, int]] = {}
        self._actions: dict[tuple[str, str], tuple[int, dict[str, int]]] = {}

    def table_id(self, name: str) -> int:
        """Return the ID of a table."""
        return int(self._one("tables", name).preamble.id)

    def table_size(self, name: str) -> int:
        """Return the number of entries that a table was declared with."""
        return int(self._one("tables", name).size)

    def counter_id(self, name: str) -> int:
        """Return the ID of an indirect counter."""
        return int(self._one("counters", name).preamble.id)

    def counter_size(self, name: str) -> int:
        """Return the cells of an indirect counter."""
        return int(self._one("counters", name).size)

    def meter_id(self, name: str) -> int:
        """Return the ID of an indirect meter."""
        return int(self._one("meters", name).preamble.id)

    def value_bytes(self) -> int:
        """Return the bytes of a value: of all its cells (p4/include/cells.p4), each of which has a register
        array."""
        cells = (one for one in self.p4info.registers if _CELL in one.preamble.name)
        return sum(int(one.type_spec.bitstring.bit.bitwidth) for one in cells) // 8

    def register_size(self, name: str) -> int:
        """Return the number of cells of a register array."""
        return int(self._one("registers", name).size)

    def digest_id(self, name: str) -> int:
        """Return the ID of a digest."""
        return int(self._one("digests", name).preamble.id)

    def digest_fields(self, name: str) -> tuple[str, ...]:
        """Return members of a digest's struct, in order."""
        structs = self.p4info.type_info.structs
        struct = self._one("digests", name).type_spec.struct.name
        if struct not in structs:
            raise P4InfoError(f"digest {name} is not a struct")
        return tuple(member.name for member in structs[struct].members)

    def entry(
        self, table: str, match: Mapping[str, Match], action: str | None = None, **parameters: int
    ) -> p4runtime_pb2.TableEntry:
        """Return a TableEntry. Without a match it is the default entry; without an action it is good for a
        deletion."""
        fields = self._fields(table)
        entry = p4runtime_pb2.TableEntry(table_id=self.table_id(table), is_default_action=not match)
        for name, value in match.items():
            if name not in fields:
                raise _missing(f"{table}: match field", name, fields)
            if not isinstance(value, Prefix):
                entry.match.add(field_id=fields[name]).exact.value = canonical(value)
            elif value.length:  # P4Runtime writes one of length 0, which matches everything, as no match
                lpm = entry.match.add(field_id=fields[name]).lpm
                lpm.value, lpm.prefix_len = canonical(value.value), value.length
        if action is not None:
            called = entry.action.action
            called.action_id, ids = self._action(table, action)
            for name, number in parameters.items():
                if name not in ids:
                    raise _missing(f"{action}: parameter", name, ids)
                called.params.add(param_id=ids[name], value=canonical(number))
        return entry

    def parameters(self, entry: Any) -> dict[str, int]:
        """Return the action parameters of a TableEntry that was read, by name."""
        called = entry.action.action
        for action in self.p4info.actions:
            if action.preamble.id == called.action_id:
                names = {parameter.id: parameter.name for parameter in action.params}
                return {names[p.param_id]: int.from_bytes(p.value, "big") for p in called.params}
        raise P4InfoError(f"no action with ID {called.action_id}")

    def _fields(self, table: str) -> dict[str, int]:
        """Return IDs of a table's match fields."""
        if table not in self._table_fields:
            fields = self._one("tables", table).match_fields
            self._table_fields[table] = {field.name: field.id for field in fields}
        return self._table_fields[table]

    def _action(self, table: str, name: str) -> tuple[int, dict[str, int]]:
        """Return ID of one of a table's actions, and those of its parameters."""
        if (table, name) not in self._actions:
            ids = {reference.id for reference in self._one("tables", table).action_refs}
            actions = {
                action.preamble.name.rpartition(".")[2]: action
                for action in self.p4info.actions
                if action.preamble.id in ids
            }
            if name not in actions:
                raise _missing(f"{table}: action", name, actions)
            called = actions[name]
            self._actions[table, name] = called.preamble.id, {param.name: param.id for param in called.params}
        return self._actions[table, name]

    def _one(self, kind: str, name: str) -> Any:
        if (kind, name) not in self._found:
            objects = {one.preamble.name: one for one in getattr(self.p4info, kind)}
            if name not in objects:
                raise _missing(f"P4Info {kind}:", name, objects)
            self._found[kind, name] = objects[name]
        return self._found[kind, name]


def _missing(what: str, name: str, present: Iterable[str]) -> P4InfoError:
    return P4InfoError(f"{what} {name!r} does not exist: there are {', '.join(present) or 'none'}")
