"""RECONCILE_AND_COMMIT: the forwarding state of one pipeline is carried over to its successor.

It is read as P4Runtime entities and written again. So exactly what a controller could have read and written
itself is carried over, wherever names and shapes are still the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.dataplane import CounterValue, DataPlaneError, MeterCounts
from v1model.p4runtime.entity import DELETE, INSERT, MODIFY, invalid
from v1model.protos.p4.v1 import p4runtime_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from v1model.dataplane import DataPlane
    from v1model.p4runtime.pipeline import Pipeline


def carry_over(old: Pipeline, new: Pipeline) -> None:
    """Copy the state of a pipeline to its successor; raises INVALID_ARGUMENT with what can't be preserved."""
    try:
        with new.references.suspended():
            _write(new, DELETE, _entries(new))  # initial entries: the old pipeline's stand for them
            for wildcard in _inserted_kinds():
                _write(new, INSERT, old.read_entities([wildcard]))
            _write(new, INSERT, _entries(old))
            _write(new, MODIFY, _changed_defaults(old, new))
            _write(new, MODIFY, old.read_entities([_value_sets()]))
        _copy_arrays(old.data_plane, new.data_plane)
    except DataPlaneError as error:
        raise invalid(f"the forwarding state can't be preserved: {error}") from error


def _inserted_kinds() -> Iterator[p4runtime_pb2.Entity]:
    for kind in (
        "action_profile_member",
        "action_profile_group",
        "packet_replication_engine_entry",
        "digest_entry",
    ):
        entity = p4runtime_pb2.Entity()
        getattr(entity, kind).SetInParent()
        yield entity


def _value_sets() -> p4runtime_pb2.Entity:
    entity = p4runtime_pb2.Entity()
    entity.value_set_entry.SetInParent()
    return entity


def _entries(pipeline: Pipeline) -> Iterator[p4runtime_pb2.Entity]:
    """Return all entries that are not const, with their direct counters and meters."""
    wildcard = p4runtime_pb2.Entity()
    wildcard.table_entry.counter_data.SetInParent()
    wildcard.table_entry.meter_config.SetInParent()
    wildcard.table_entry.meter_counter_data.SetInParent()
    return (entity for entity in pipeline.read_entities([wildcard]) if not entity.table_entry.is_const)


def _changed_defaults(old: Pipeline, new: Pipeline) -> Iterator[p4runtime_pb2.Entity]:
    wildcard = p4runtime_pb2.Entity()
    wildcard.table_entry.is_default_action = True
    initial = {entity.table_entry.table_id: entity for entity in new.read_entities([wildcard])}
    for entity in old.read_entities([wildcard]):
        if initial.get(entity.table_entry.table_id) != entity and not _has_const_default(old, entity):
            yield entity


def _has_const_default(pipeline: Pipeline, entity: p4runtime_pb2.Entity) -> bool:
    tables = {table.preamble.id: table for table in pipeline.config.p4info.tables}
    table = tables[entity.table_entry.table_id]
    return bool(table.const_default_action_id or table.implementation_id)


def _write(
    pipeline: Pipeline, update_type: p4runtime_pb2.Update.Type, entities: Iterable[p4runtime_pb2.Entity]
) -> None:
    updates = [p4runtime_pb2.Update(type=update_type, entity=entity) for entity in entities]
    for error in pipeline.write(updates):
        if error:
            raise error


def _copy_arrays(old: DataPlane, new: DataPlane) -> None:
    kept = {(extern.kind, extern.name): extern for extern in new.program.externs}
    for extern in old.program.externs:
        if extern.kind not in ("counter", "meter", "register"):
            continue
        if (successor := kept.get((extern.kind, extern.name))) is None:
            raise invalid(f"{extern.kind} {extern.name} is gone")
        if successor.size < extern.size or successor.value_type != extern.value_type:
            raise invalid(f"{extern.kind} {extern.name} has another type or fewer elements")
        _copy_array(old, new, extern.kind, extern.name, extern.size)


def _copy_array(old: DataPlane, new: DataPlane, kind: str, name: str, size: int) -> None:
    """Copy the elements that differ from those after loading, because arrays are large and mostly empty."""
    if kind == "counter":
        for index, count in enumerate(old.counters(name)):
            if count != CounterValue():
                new.set_counter(name, index, count)
        return
    for index in range(size):
        if kind == "meter":
            if config := old.meter(name, index):
                new.set_meter(name, index, config)
            if (counts := old.meter_counts(name, index)) != MeterCounts():
                new.set_meter_counts(name, index, counts)
        elif value := old.register(name, index):
            new.set_register(name, index, value)
