"""Extern instances, digests and controller headers in P4Info."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from v1model.errors import CompileError
from v1model.frontend import types as t
from v1model.p4info.annotations import annotate, document, find, number, string
from v1model.p4info.kinds import CONTROLLER_HEADER, DIGEST, RESOURCES, TABLE
from v1model.p4info.preamble import field_ids
from v1model.p4info.type_specs import bit_width, flattened
from v1model.protos.p4.config.v1 import p4info_pb2

if TYPE_CHECKING:
    from v1model import ir
    from v1model.p4info.builder import Builder

_COUNTER_UNITS = {
    "packets": p4info_pb2.CounterSpec.PACKETS,
    "bytes": p4info_pb2.CounterSpec.BYTES,
    "packets_and_bytes": p4info_pb2.CounterSpec.BOTH,
}
_METER_UNITS = {"packets": p4info_pb2.MeterSpec.PACKETS, "bytes": p4info_pb2.MeterSpec.BYTES}
_PROFILE_ANNOTATIONS = frozenset(("max_group_size", "selector_size_semantics", "max_member_weight"))


def add_extern(builder: Builder, extern: ir.ExternInstance) -> None:
    """Add an extern instance that is no table's direct resource."""
    if extern.kind == "register":
        _register(builder, extern)
    elif extern.kind in ("counter", "meter"):
        message = getattr(builder.info, f"{extern.kind}s").add(size=extern.size)
        _counter_like(builder, message, extern)
        _index_type(builder, message, extern.p4_types[:1])
    elif extern.kind in ("action_profile", "action_selector"):
        _action_profile(builder, extern)


def add_direct(builder: Builder, extern: ir.ExternInstance, table: ir.Table) -> int:
    """Add a table's direct counter or meter; return its id."""
    message = getattr(builder.info, f"{extern.kind}s").add()
    _counter_like(builder, message, extern)
    message.direct_table_id = builder.id(TABLE, table.name)
    return builder.id(RESOURCES[extern.kind], extern.name)


def _counter_like(builder: Builder, message: Any, extern: ir.ExternInstance) -> None:
    builder.preamble(message.preamble, RESOURCES[extern.kind], extern.name, extern.annotations)
    units = _COUNTER_UNITS if "counter" in extern.kind else _METER_UNITS
    message.spec.unit = units[extern.unit]


def _register(builder: Builder, extern: ir.ExternInstance) -> None:
    message = builder.info.registers.add(size=extern.size)
    builder.preamble(message.preamble, RESOURCES["register"], extern.name, extern.annotations)
    message.type_spec.CopyFrom(builder.types.spec(extern.p4_types[0]))
    _index_type(builder, message, extern.p4_types[1:])


def _index_type(builder: Builder, message: Any, types: tuple[t.Type, ...]) -> None:
    """Name the type of an index that is a `type`."""
    for type_ in types:
        builder.types.describe(type_)
        if isinstance(type_, t.NewType):
            message.index_type_name.name = type_.name


def _action_profile(builder: Builder, extern: ir.ExternInstance) -> None:
    message = builder.info.action_profiles.add(size=extern.size)
    builder.preamble(
        message.preamble,
        RESOURCES["action_profile"],
        extern.name,
        extern.annotations,
        without=_PROFILE_ANNOTATIONS,
    )
    tables = sorted(t.name for t in builder.program.tables if t.implementation == extern.name)
    message.table_ids.extend(builder.id(TABLE, table) for table in tables)
    if extern.kind == "action_profile":
        return
    message.with_selector = True
    message.max_group_size = number(extern.annotations, "max_group_size") or 0
    semantics = (string(extern.annotations, "selector_size_semantics") or "").lower()
    if semantics == "sum_of_members":
        message.sum_of_members.max_member_weight = number(extern.annotations, "max_member_weight") or 0
    elif semantics == "sum_of_weights":
        message.sum_of_weights.SetInParent()
    elif semantics:
        raise CompileError(
            f"@selector_size_semantics({semantics}): sum_of_weights or sum_of_members", extern.span
        )


def add_digest(builder: Builder, digest: ir.Digest) -> None:
    assert digest.p4_type is not None
    message = builder.info.digests.add()
    builder.preamble(message.preamble, DIGEST, digest.name, ())
    message.type_spec.CopyFrom(builder.types.spec(digest.p4_type))


def add_controller_header(builder: Builder, name: str, type_: t.RecordType) -> None:
    """Add packet_in or packet_out.

    Its id comes from the header type's name, its name from the annotation.
    """
    message = builder.info.controller_packet_metadata.add()
    header = builder.controller_header_name(type_)
    builder.preamble(message.preamble, CONTROLLER_HEADER, header, tuple(type_.declaration.annotations))
    message.preamble.name = message.preamble.alias = name
    annotations = {field.name: tuple(field.annotations) for field in type_.declaration.fields}
    fields = list(flattened(type_))
    ids = field_ids([annotations.get(field, ()) for field, _ in fields])
    for (field, inner), id_ in zip(fields, ids, strict=True):
        own = annotations.get(field, ())
        if find(own, "hidden"):
            continue
        metadata = message.metadata.add(id=id_, name=field, bitwidth=bit_width(inner))
        annotate(metadata, own)
        builder.types.describe(inner)
        if isinstance(inner, t.NewType):
            metadata.type_name.name = inner.name
    document(message.preamble, type_.declaration.annotations)
