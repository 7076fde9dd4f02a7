"""Batches that are written as a whole or not at all, and the updates that undo each update."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from v1model.dataplane import DataPlaneError
from v1model.p4runtime.entity import DELETE, INSERT, MODIFY, Answer
from v1model.protos.p4.v1 import p4runtime_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from v1model.p4runtime.entity import EntityHandler

    # By a table's id, whether it has direct counters and direct meters.
    DirectResources = Mapping[int, tuple[bool, bool]]

# The fields that name an entity; the others are written.
_NAMES = {
    "table_entry": ("table_id", "match", "priority", "is_default_action"),
    "action_profile_member": ("action_profile_id", "member_id"),
    "action_profile_group": ("action_profile_id", "group_id"),
    "meter_entry": ("meter_id", "index"),
    "direct_meter_entry": ("table_entry",),
    "counter_entry": ("counter_id", "index"),
    "direct_counter_entry": ("table_entry",),
    "register_entry": ("register_id", "index"),
    "value_set_entry": ("value_set_id",),
    "digest_entry": ("digest_id",),
}
MAX_CPU_S = 2.0  # everything else waits meanwhile, and the undoing updates take memory
_TOO_LONG = f"a batch that can be undone takes {MAX_CPU_S:.0f} s of CPU at most: send fewer updates at a time"
_ABORTED = DataPlaneError("ABORTED", "another update of the batch failed, so nothing of it was written")
Inverse = list[tuple[int, p4runtime_pb2.Entity]]


def write_all_or_none(
    updates: Sequence[p4runtime_pb2.Update],
    handler: Callable[[str | None], EntityHandler],
    write: Callable[[p4runtime_pb2.Update], DataPlaneError | None],
    direct: DirectResources,
) -> list[DataPlaneError | None]:
    """Write updates in order; after an error undo those before it.

    Then every update has an error: ABORTED, except for the one that failed or for which there was no time.
    `handler` returns the handler of a kind of entity, `write` does one update, and `direct` has all tables.
    """
    done: list[Inverse] = []
    until_s = time.thread_time() + MAX_CPU_S
    for position, update in enumerate(updates):
        try:
            if time.thread_time() > until_s:
                raise DataPlaneError("RESOURCE_EXHAUSTED", _TOO_LONG)
            inverse = _inverse(update, handler, direct)
            error = write(update)
        except DataPlaneError as raised:
            error = raised
        if error is not None:
            _undo(done, write)
            results: list[DataPlaneError | None] = [_ABORTED] * len(updates)
            results[position] = error
            return results
        done.append(inverse)
    return [None] * len(updates)


def _undo(done: list[Inverse], write: Callable[[p4runtime_pb2.Update], DataPlaneError | None]) -> None:
    for inverse in reversed(done):
        for update_type, entity in inverse:
            update = p4runtime_pb2.Update(entity=entity)
            update.type = update_type  # type: ignore[assignment]  # it is one of the enum's
            if (error := write(update)) is not None:
                raise DataPlaneError("INTERNAL", f"a batch failed and could not be undone: {error}")


def _inverse(
    update: p4runtime_pb2.Update, handler: Callable[[str | None], EntityHandler], direct: DirectResources
) -> Inverse:
    """Return the updates that undo one; call it before that is written."""
    kind = update.entity.WhichOneof("entity")
    if update.type == INSERT:
        return [(DELETE, update.entity)]
    if kind is None or update.type not in (MODIFY, DELETE):
        return []  # the write says what is wrong
    message = getattr(update.entity, kind)
    wanted = _name_of(kind, message)
    if kind == "table_entry" and not message.is_default_action:
        has_counter, has_meter = direct.get(message.table_id, (False, False))
        if has_counter and (update.type == DELETE or message.HasField("counter_data")):
            wanted.counter_data.SetInParent()
        if has_meter:
            wanted.meter_config.SetInParent()
    before = _read(handler(kind), kind, wanted)
    return [(INSERT if update.type == DELETE else MODIFY, entity) for entity in before]


def _name_of(kind: str, message: Any) -> Any:
    """Return the message that reads the entities that a message names."""
    wanted = type(message)()
    wanted.CopyFrom(message)
    for field, _ in message.ListFields():
        if field.name not in _NAMES.get(kind, (field.name,)):
            wanted.ClearField(field.name)
    return wanted


def _read(handler: EntityHandler, kind: str, wanted: Any) -> list[p4runtime_pb2.Entity]:
    """Return the entities that `wanted` names, as they are now and in a form that can be written."""
    answer = Answer()
    for _ in handler.read(wanted, answer):
        pass
    entities = [e for response in (*answer.take_full(), answer.take_rest()) for e in response.entities]
    return [_writable(entity) for entity in entities if kind != "table_entry" or _is_same(entity, wanted)]


def _is_same(entity: p4runtime_pb2.Entity, message: p4runtime_pb2.TableEntry) -> bool:
    """Return whether an entry is the named one: in a read, a name without matches stands for all."""
    return bool(message.match) or not entity.table_entry.match


def _writable(entity: p4runtime_pb2.Entity) -> p4runtime_pb2.Entity:
    """Return a read entity in a form that can be written: only counters and meters of a const entry."""
    if entity.table_entry.is_const:
        for name in ("is_const", "action"):
            entity.table_entry.ClearField(name)
    return entity
