"""Members of parsers' value sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.p4runtime.entity import require_modify

if TYPE_CHECKING:
    from collections.abc import Iterator

    from v1model.dataplane import DataPlane
    from v1model.p4runtime.entity import Answer
    from v1model.p4runtime.schema import Schema
    from v1model.protos.p4.v1 import p4runtime_pb2


class ValueSetHandler:
    """Handler of p4.v1.ValueSetEntry, which has all members of a value set at once."""

    def __init__(self, schema: Schema, data_plane: DataPlane) -> None:
        self._schema, self._data_plane = schema, data_plane

    def write(self, update_type: int, message: p4runtime_pb2.ValueSetEntry) -> None:
        require_modify(update_type, "value set")
        value_set = self._schema.value_set(message.value_set_id)
        members = [value_set.keys.decode(member.match) for member in message.members]
        self._data_plane.set_value_set(value_set.name, members)

    def read(self, message: p4runtime_pb2.ValueSetEntry, answer: Answer) -> Iterator[None]:
        own_id = message.value_set_id
        for value_set in [self._schema.value_set(own_id)] if own_id else self._schema.value_sets.values():
            entry = answer.add().value_set_entry
            entry.value_set_id = value_set.id
            for matches in self._data_plane.value_set(value_set.name):
                value_set.keys.encode(matches, entry.members.add().match)
            yield
