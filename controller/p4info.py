"""A program's P4Info: IDs by name, and table entries in P4Runtime's form and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from google.protobuf import text_format
from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2

from controller.errors import P4InfoError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Prefix(NamedTuple):
    """A longest-prefix match."""

    value: int
    length: int


Match = int | Prefix


def canonical(value: int) -> bytes:
    """P4Runtime's shortest bytestring of an unsigned number."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def load_p4info(path: Path) -> Any:
    """The P4Info in a text file; raises P4InfoError."""
    p4info = p4info_pb2.P4Info()
    try:
        text_format.Parse(path.read_text(), p4info, allow_unknown_field=True)
    except (OSError, UnicodeDecodeError, text_format.ParseError) as error:
        raise P4InfoError(f"{path}: not a P4Info text file: {error}") from None
    return p4info


class Program:
    """Look-ups in a P4Info by name; all raise P4InfoError with the names that exist."""

    def __init__(self, p4info: Any) -> None:
        self.p4info = p4info
        self._found: dict[tuple[str, str], Any] = {}

    def table_id(self, name: str) -> int:
        """The ID of a table."""
        return int(self._one("tables", name).preamble.id)

    def table_size(self, name: str) -> int:
        """Entries that a table was declared with."""
        return int(self._one("tables", name).size)

    def counter_id(self, name: str) -> int:
        """The ID of an indirect counter."""
        return int(self._one("counters", name).preamble.id)

    def register_size(self, name: str) -> int:
        """Cells of a register array."""
        return int(self._one("registers", name).size)

    def digest_id(self, name: str) -> int:
        """The ID of a digest."""
        return int(self._one("digests", name).preamble.id)

    def digest_fields(self, name: str) -> tuple[str, ...]:
        """Members of a digest's struct, in order."""
        structs = self.p4info.type_info.structs
        struct = self._one("digests", name).type_spec.struct.name
        if struct not in structs:
            raise P4InfoError(f"digest {name} is not a struct")
        return tuple(member.name for member in structs[struct].members)

    def entry(
        self, table: str, match: Mapping[str, Match], action: str | None = None, **parameters: int
    ) -> Any:
        """A TableEntry; without a match it is the default entry, without an action good for a deletion."""
        definition = self._one("tables", table)
        entry = p4runtime_pb2.TableEntry(table_id=definition.preamble.id, is_default_action=not match)
        for name, value in match.items():
            field = _named(definition.match_fields, name, lambda field: field.name, f"{table}: match field")
            if isinstance(value, Prefix):
                # A prefix of length 0 matches everything, which P4Runtime writes as no match at all.
                if value.length:
                    lpm = entry.match.add(field_id=field.id).lpm
                    lpm.value, lpm.prefix_len = canonical(value.value), value.length
            else:
                entry.match.add(field_id=field.id).exact.value = canonical(value)
        if action is None:
            return entry
        called = self._action(definition, action)
        entry.action.action.action_id = called.preamble.id
        for name, number in parameters.items():
            parameter = _named(called.params, name, lambda param: param.name, f"{action}: parameter")
            entry.action.action.params.add(param_id=parameter.id, value=canonical(number))
        return entry

    def parameters(self, entry: Any) -> dict[str, int]:
        """The action parameters of a TableEntry that was read, by name."""
        called = entry.action.action
        for action in self.p4info.actions:
            if action.preamble.id == called.action_id:
                names = {parameter.id: parameter.name for parameter in action.params}
                return {names[p.param_id]: int.from_bytes(p.value, "big") for p in called.params}
        raise P4InfoError(f"no action with ID {called.action_id}")

    def _action(self, table: Any, name: str) -> Any:
        ids = {reference.id for reference in table.action_refs}
        actions = [action for action in self.p4info.actions if action.preamble.id in ids]
        return _named(actions, name, _last_name, f"{table.preamble.name}: action")

    def _one(self, kind: str, name: str) -> Any:
        if (kind, name) not in self._found:
            objects = getattr(self.p4info, kind)
            self._found[kind, name] = _named(objects, name, lambda o: o.preamble.name, f"P4Info {kind}:")
        return self._found[kind, name]


def _last_name(action: Any) -> str:
    return str(action.preamble.name.rpartition(".")[2])


def _named(objects: Any, name: str, name_of: Any, what: str) -> Any:
    for one in objects:
        if name_of(one) == name:
            return one
    raise P4InfoError(
        f"{what} {name!r} does not exist: there are {', '.join(map(name_of, objects)) or 'none'}"
    )
