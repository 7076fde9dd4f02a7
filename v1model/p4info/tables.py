"""Tables and actions in P4Info."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from v1model.frontend import types as t
from v1model.midend.scope import name_annotation, plane_name
from v1model.p4info.annotations import annotate, document, find, number
from v1model.p4info.kinds import ACTION, RESOURCES, TABLE, VALUE_SET
from v1model.p4info.preamble import field_ids
from v1model.p4info.type_specs import bit_width, bytestring
from v1model.protos.p4.config.v1 import p4info_pb2

if TYPE_CHECKING:
    from v1model import ir
    from v1model.p4info.builder import Builder

DEFAULT_SIZE = 1024  # p4c's for a table without `size`

_MATCH_TYPES = {
    "exact": p4info_pb2.MatchField.EXACT,
    "lpm": p4info_pb2.MatchField.LPM,
    "ternary": p4info_pb2.MatchField.TERNARY,
    "range": p4info_pb2.MatchField.RANGE,
    "optional": p4info_pb2.MatchField.OPTIONAL,
}


def add_action(builder: Builder, action: ir.Action) -> None:
    if find(action.annotations, "hidden"):
        return
    message = builder.info.actions.add()
    builder.preamble(message.preamble, ACTION, action.name, action.annotations)
    ids = field_ids([parameter.annotations for parameter in action.params])
    for parameter, id_ in zip(action.params, ids, strict=True):
        name = name_annotation(parameter.annotations) or parameter.name
        param = message.params.add(id=id_, name=name, bitwidth=bit_width(_type(parameter)))
        annotate(param, parameter.annotations)
        document(param, parameter.annotations)
        _name_type(builder, param, _type(parameter))


def _type(node: ir.ActionParam | ir.Key) -> t.Type:
    assert node.p4_type is not None, node
    return node.p4_type


def _name_type(builder: Builder, message: Any, type_: t.Type) -> None:
    """Describe a type, and name it if P4Runtime translates it."""
    builder.types.describe(type_)
    if isinstance(type_, t.NewType):
        message.type_name.name = type_.name
    elif isinstance(type_, t.EnumType) and type_.underlying is None:
        message.type_name.name = plane_name(type_.declaration, "")


def add_table(builder: Builder, table: ir.Table) -> None:
    if find(table.annotations, "hidden"):
        return
    for key in table.keys:
        if key.match_kind != "selector":
            builder.types.describe(_type(key))
    message = builder.info.tables.add()
    builder.preamble(message.preamble, TABLE, table.name, table.annotations)
    message.size = table.size or DEFAULT_SIZE
    _default_action(builder, message, table)
    for action in table.actions:
        scope = p4info_pb2.ActionRef.TABLE_AND_DEFAULT
        if action.table_only:
            scope = p4info_pb2.ActionRef.TABLE_ONLY
        elif action.default_only:
            scope = p4info_pb2.ActionRef.DEFAULT_ONLY
        reference = message.action_refs.add(id=builder.id(ACTION, action.action), scope=scope)
        annotate(reference, action.annotations)
    _match_fields(message, table)
    message.is_const_table = table.entries_are_const
    message.has_initial_entries = bool(table.entries)
    if table.implementation:
        message.implementation_id = builder.id(RESOURCES["action_profile"], table.implementation)
    for name in table.direct:
        message.direct_resource_ids.append(builder.direct_resource(table, name))
    if table.idle_timeout:
        message.idle_timeout_behavior = p4info_pb2.Table.NOTIFY_CONTROL


def _default_action(builder: Builder, message: Any, table: ir.Table) -> None:
    default = table.default_action
    id_ = builder.id(ACTION, default.action)
    if table.default_is_const:
        message.const_default_action_id = id_
    message.initial_default_action.action_id = id_
    action = builder.actions[default.action]
    for position, (parameter, value) in enumerate(
        zip(action.params, default.arguments, strict=True), start=1
    ):
        given = number(parameter.annotations, "id")
        argument = message.initial_default_action.arguments.add(param_id=given or position)
        argument.value = bytestring(value, _given_width(parameter, value))


def _given_width(parameter: ir.ActionParam, value: int) -> int:
    """Return the width in which p4c gives an argument: the controller's, if the value fits."""
    width = bit_width(_type(parameter))
    return width if width >= max(1, value.bit_length()) else parameter.type.width


def _match_fields(message: Any, table: ir.Table) -> None:
    ids = field_ids([key.annotations for key in table.keys])
    for key, id_ in zip(table.keys, ids, strict=True):
        if key.match_kind == "selector":
            continue
        field = message.match_fields.add(id=id_, name=key.name, bitwidth=bit_width(_type(key)))
        annotate(field, key.annotations)
        document(field, key.annotations)
        field.match_type = _MATCH_TYPES[key.match_kind]
        if key.type_name:
            field.type_name.name = key.type_name


def add_value_set(builder: Builder, value_set: ir.ValueSet) -> None:
    """Add a parser's value set; a key of a non-struct has no name."""
    message = builder.info.value_sets.add(size=value_set.size)
    builder.preamble(message.preamble, VALUE_SET, value_set.name, value_set.annotations)
    ids = field_ids([key.annotations for key in value_set.keys])
    for key, id_ in zip(value_set.keys, ids, strict=True):
        field = message.match.add(id=id_, name=key.name, bitwidth=bit_width(_type(key)))
        annotate(field, key.annotations, without=frozenset(("match",)))
        document(field, key.annotations)
        field.match_type = _MATCH_TYPES[key.match_kind]
