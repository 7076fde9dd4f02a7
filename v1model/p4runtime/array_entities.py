"""Counter, meter and register entries: arrays by index; without an index the whole array."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from v1model.dataplane import DataPlaneError
from v1model.p4runtime.entity import (
    decode_counter,
    decode_meter,
    decode_meter_counts,
    encode_counter,
    encode_meter,
    encode_meter_counts,
    invalid,
    require_modify,
)
from v1model.protos.p4.v1 import p4runtime_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from v1model.dataplane import DataPlane
    from v1model.p4runtime.entity import Answer
    from v1model.p4runtime.schema import ArrayInfo, Schema

    IndexedMessage: TypeAlias = (
        p4runtime_pb2.CounterEntry | p4runtime_pb2.MeterEntry | p4runtime_pb2.RegisterEntry
    )


COUNTERS_AT_ONCE = 256
MAX_ELEMENTS_OF_UPDATE = 1 << 18  # some 0.3 s


def _chosen_arrays(
    schema: Schema, arrays: dict[int, ArrayInfo], array_id: int, kind: str
) -> Iterable[ArrayInfo]:
    return [schema.array(arrays, array_id, kind)] if array_id else arrays.values()


def _chosen_indices(array: ArrayInfo, message: IndexedMessage) -> range:
    if not message.HasField("index"):
        return range(array.size)
    index = message.index.index
    if index < 0:
        raise invalid(f"{array.name}: index {index} is negative")
    if index >= array.size:
        raise DataPlaneError("OUT_OF_RANGE", f"{array.name}: index {index} of {array.size} elements")
    return range(index, index + 1)


def _indices_to_write(array: ArrayInfo, message: IndexedMessage) -> range:
    """Return the indices that a write means.

    An update is done without a pause, so the number of elements is limited.
    """
    indices = _chosen_indices(array, message)
    if len(indices) > MAX_ELEMENTS_OF_UPDATE:
        raise DataPlaneError(
            "RESOURCE_EXHAUSTED",
            f"{array.name} has {array.size} elements: write them by index, an update has at most "
            f"{MAX_ELEMENTS_OF_UPDATE}",
        )
    return indices


class CounterHandler:
    """Handler of p4.v1.CounterEntry."""

    def __init__(self, schema: Schema, data_plane: DataPlane) -> None:
        self._schema, self._data_plane = schema, data_plane

    def write(self, update_type: int, message: p4runtime_pb2.CounterEntry) -> None:
        require_modify(update_type, "counter")
        array = self._schema.array(self._schema.counters, message.counter_id, "counter")
        indices = _indices_to_write(array, message)
        if not message.HasField("data"):
            return
        value = decode_counter(message.data)
        for index in indices:
            self._data_plane.set_counter(array.name, index, value)

    def read(self, message: p4runtime_pb2.CounterEntry, answer: Answer) -> Iterator[None]:
        for array in _chosen_arrays(self._schema, self._schema.counters, message.counter_id, "counter"):
            chosen = _chosen_indices(array, message)
            for first in range(chosen.start, chosen.stop, COUNTERS_AT_ONCE):
                indices = range(first, min(first + COUNTERS_AT_ONCE, chosen.stop))
                values = self._data_plane.counters(array.name, first, len(indices))
                for index, value in zip(indices, values, strict=True):
                    entity = answer.add()
                    entity.counter_entry.counter_id = array.id
                    entity.counter_entry.index.SetInParent()
                    entity.counter_entry.index.index = index
                    encode_counter(value, entity.counter_entry.data)
                    yield


class MeterHandler:
    """Handler of p4.v1.MeterEntry. An unset config is the default, which lets every packet be green."""

    def __init__(self, schema: Schema, data_plane: DataPlane) -> None:
        self._schema, self._data_plane = schema, data_plane

    def write(self, update_type: int, message: p4runtime_pb2.MeterEntry) -> None:
        require_modify(update_type, "meter")
        array = self._schema.array(self._schema.meters, message.meter_id, "meter")
        config = decode_meter(message.config) if message.HasField("config") else None
        for index in _indices_to_write(array, message):
            self._data_plane.set_meter(array.name, index, config)
            if message.HasField("counter_data"):
                self._data_plane.set_meter_counts(
                    array.name, index, decode_meter_counts(message.counter_data)
                )

    def read(self, message: p4runtime_pb2.MeterEntry, answer: Answer) -> Iterator[None]:
        for array in _chosen_arrays(self._schema, self._schema.meters, message.meter_id, "meter"):
            for index in _chosen_indices(array, message):
                entity = answer.add()
                entity.meter_entry.meter_id = array.id
                entity.meter_entry.index.SetInParent()
                entity.meter_entry.index.index = index
                config = self._data_plane.meter(array.name, index)
                if config is not None:
                    encode_meter(config, entity.meter_entry.config)
                if message.HasField("counter_data"):
                    counts = self._data_plane.meter_counts(array.name, index)
                    encode_meter_counts(counts, entity.meter_entry.counter_data)
                yield


class RegisterHandler:
    """Handler of p4.v1.RegisterEntry. Not portable: BMv2 answers UNIMPLEMENTED."""

    def __init__(self, schema: Schema, data_plane: DataPlane) -> None:
        self._schema, self._data_plane = schema, data_plane

    def write(self, update_type: int, message: p4runtime_pb2.RegisterEntry) -> None:
        require_modify(update_type, "register")
        array = self._schema.array(self._schema.registers, message.register_id, "register")
        assert array.data
        values = array.data.decode(message.data)
        if len(values) != 1:
            raise _not_a_number(array)
        for index in _indices_to_write(array, message):
            self._data_plane.set_register(array.name, index, values[0])

    def read(self, message: p4runtime_pb2.RegisterEntry, answer: Answer) -> Iterator[None]:
        for array in _chosen_arrays(self._schema, self._schema.registers, message.register_id, "register"):
            assert array.data
            for index in _chosen_indices(array, message):
                entity = answer.add()
                entity.register_entry.register_id = array.id
                entity.register_entry.index.SetInParent()
                entity.register_entry.index.index = index
                array.data.encode([self._data_plane.register(array.name, index)], entity.register_entry.data)
                yield


def _not_a_number(array: ArrayInfo) -> DataPlaneError:
    return DataPlaneError(
        "UNIMPLEMENTED", f"{array.name} holds structs: only registers of numbers can be accessed"
    )
