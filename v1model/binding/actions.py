"""Packing of an ActionCall into the action's number and arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.backend.layout import pack_arguments, unpack_arguments
from v1model.dataplane import DataPlaneError
from v1model.ir import ActionCall

if TYPE_CHECKING:
    from v1model.ir import Action, Program, Table


class ActionPacker:
    """Checker and packer of calls of one table's actions (for an action profile: its tables' actions)."""

    def __init__(self, program: Program, table: Table, data_bytes: int) -> None:
        declared = {action.name: action for action in program.actions}
        self._table, self._data_bytes = table, data_bytes
        self._actions: dict[str, tuple[int, Action]] = {
            action.action: (number, declared[action.action]) for number, action in enumerate(table.actions)
        }

    def pack(self, call: ActionCall, *, is_default: bool = False) -> tuple[int, bytes]:
        number, action = self._find(call, is_default=is_default)
        if len(call.arguments) != len(action.params):
            count = len(action.params)
            raise self._error(f"action {call.action} takes {count} arguments, not {len(call.arguments)}")
        for param, value in zip(action.params, call.arguments, strict=True):
            if value < 0 or value.bit_length() > param.type.width:
                raise self._error(
                    f"action {call.action}: {param.name} = {value:#x} exceeds {param.type.width} bits"
                )
        return number, pack_arguments(action.params, call.arguments).ljust(self._data_bytes, b"\0")

    def unpack(self, number: int, data: bytes) -> ActionCall:
        """Return the call of a packed action."""
        use = self._table.actions[number]
        _, action = self._actions[use.action]
        return ActionCall(use.action, unpack_arguments(action.params, data))

    def _find(self, call: ActionCall, *, is_default: bool) -> tuple[int, Action]:
        if call.action not in self._actions:
            known = ", ".join(self._actions) or "none"
            raise self._error(f"no action {call.action}; there are: {known}")
        number, action = self._actions[call.action]
        use = self._table.actions[number]
        if use.default_only and not is_default:
            raise self._error(f"action {call.action} is only for the default entry")
        if use.table_only and is_default:
            raise self._error(f"action {call.action} is not for the default entry")
        return number, action

    def _error(self, message: str) -> DataPlaneError:
        return DataPlaneError("INVALID_ARGUMENT", f"table {self._table.name}: {message}")
