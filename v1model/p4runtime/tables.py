"""Translation of table entries on the wire (p4.v1.TableEntry) to `dataplane.TableEntry` and back.

There is one translator for each table, built once when a pipeline is set, so that a write costs no look-ups
in the P4Info.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.dataplane import DataPlaneError, TableEntry, WireTable, matched
from v1model.p4runtime import constraints
from v1model.p4runtime.matches import KeyTranslator
from v1model.protos.p4.config.v1 import p4info_pb2
from v1model.protos.p4.v1 import p4runtime_pb2

if TYPE_CHECKING:
    from collections.abc import Sequence

    from v1model.dataplane import Matches
    from v1model.p4runtime.actions import ActionTranslator
    from v1model.p4runtime.references import References
    from v1model.p4runtime.schema import ProfileInfo
    from v1model.p4runtime.values import CodecFactory

_ENTRY_SCOPES = (p4info_pb2.ActionRef.TABLE_AND_DEFAULT, p4info_pb2.ActionRef.TABLE_ONLY)
_DEFAULT_SCOPES = (p4info_pb2.ActionRef.TABLE_AND_DEFAULT, p4info_pb2.ActionRef.DEFAULT_ONLY)


class TableTranslator:
    """Translator of one table's entries."""

    def __init__(
        self,
        info: p4info_pb2.Table,
        table: ir.Table,
        actions: dict[int, ActionTranslator],
        codecs: CodecFactory,
    ) -> None:
        self.id: int = info.preamble.id
        self.name: str = info.preamble.name
        self.is_const: bool = info.is_const_table
        self.is_indirect = bool(info.implementation_id)
        self.has_idle_timeout = info.idle_timeout_behavior == p4info_pb2.Table.NOTIFY_CONTROL
        self.default_is_const = bool(info.const_default_action_id)
        self.has_direct_counter = self.has_direct_meter = False  # set by the schema when it is complete
        self.profile: ProfileInfo | None = None
        self.references: References | None = None  # set if its entries refer to others, or others to them
        self._keys = KeyTranslator(f"table {self.name}", info.match_fields, table.keys, codecs)
        self.fields = self._keys.fields
        self.needs_priority = any(field.needs_priority for field in self.fields)
        self._actions = {ref.id: actions[ref.id] for ref in info.action_refs if ref.id in actions}
        self._actions_by_name = {action.name: action for action in self._actions.values()}
        if missing := {action.action for action in table.actions} - set(self._actions_by_name):
            raise self._invalid(f"the P4Info leaves out its actions {', '.join(sorted(missing))}")
        self._table = table
        names = [key.name for key in table.keys if key.match_kind != "selector"]
        self._restriction = constraints.restriction_of(info.preamble, "entry_restriction", names)
        self._entry_actions = {ref.id for ref in info.action_refs if ref.scope in _ENTRY_SCOPES}
        self._default_actions = {ref.id for ref in info.action_refs if ref.scope in _DEFAULT_SCOPES}

    def as_wire(self) -> WireTable | None:
        """Return the table for the data plane's writer, without actions whose arguments are translated.

        It is None if a key is translated or if entries need other checks.
        """
        if (
            self.is_const
            or self.is_indirect
            or not self._keys.is_plain
            or self._restriction
            or self.references
        ):
            return None
        actions = [
            self._actions[action_id] for action_id in self._actions if action_id in self._entry_actions
        ]
        fields = sorted(self.fields, key=lambda field: field.position)
        return WireTable(
            self.id,
            self.name,
            tuple((field.id, field.wire_kind) for field in fields),
            tuple(
                (action.id, action.name, action.param_ids)
                for action in actions
                if action.is_plain and not action.restriction
            ),
            may_modify=not self.has_direct_meter,
        )

    def check_restriction(self, entry: TableEntry) -> None:
        """Raise INVALID_ARGUMENT if an entry violates its @entry_restriction or a key's @refers_to."""
        if self.references is not None:
            self.references.check_keys(entry)
        if self._restriction is None:
            return
        values: dict[str, int | constraints.Matched] = {constraints.PRIORITY: entry.priority}
        for key, match in matched(self._table, entry.matches):
            width = key.expression.type.width if isinstance(key.expression.type, ir.Bits) else 1
            values[key.name] = constraints.matched(key.match_kind, width, match)
        self._restriction.require(values)

    # --- wire to data plane

    def decode_key(self, message: p4runtime_pb2.TableEntry) -> tuple[Matches, int]:
        """Return matches and priority, which identify an entry, after checking them."""
        priority = message.priority
        if self.needs_priority != (priority > 0):
            rule = (
                "must be positive (a key is ternary, range or optional)"
                if self.needs_priority
                else "must be 0"
            )
            raise self._invalid(f"priority is {priority} and {rule}")
        return self.decode_matches(message.match), priority

    def decode_matches(self, messages: Sequence[p4runtime_pb2.FieldMatch]) -> Matches:
        """Return a match for each key of the table, None where it is left out."""
        return self._keys.decode(messages)

    def decode_action(self, message: p4runtime_pb2.Action, *, as_default: bool = False) -> ir.ActionCall:
        """Return an action of this table, if it is allowed in an entry or (`as_default`) as the default."""
        action = self._actions.get(message.action_id)
        if action is None:
            raise self._invalid(f"action id 0x{message.action_id:08x} is none of its actions")
        if message.action_id not in (self._default_actions if as_default else self._entry_actions):
            where = "as the default action" if as_default else "in an entry"
            raise DataPlaneError("PERMISSION_DENIED", f"{action.name} is not allowed {where} of {self.name}")
        call = action.decode(message)
        if self.references is not None:
            self.references.check_action(call)
        return call

    # --- data plane to wire

    def encode_key(self, entry: TableEntry, message: p4runtime_pb2.TableEntry) -> None:
        """Write table id, matches and priority into `message`."""
        message.table_id = self.id
        self._keys.encode(entry.matches, message.match)
        if entry.priority:
            message.priority = entry.priority

    def encode_action(self, call: ir.ActionCall, message: p4runtime_pb2.Action) -> None:
        self._actions_by_name[call.action].encode(call, message)

    def action_id(self, call: ir.ActionCall | None) -> int:
        """Return the id of an action, 0 for None."""
        return self._actions_by_name[call.action].id if call else 0

    def _invalid(self, reason: str) -> DataPlaneError:
        return DataPlaneError("INVALID_ARGUMENT", f"table {self.name}: {reason}")
