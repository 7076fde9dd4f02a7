"""Indexed counters, meters and registers."""

from __future__ import annotations

import ctypes
from functools import partial
from typing import TYPE_CHECKING

from v1model.backend.layout import from_storage, storage_bytes, to_storage, value_width
from v1model.backend.unit import ARRAYS
from v1model.binding.tables import pack_rates, read_counts, write_counts
from v1model.dataplane import CounterValue, DataPlaneError, MeterConfig, MeterCounts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from v1model.binding.library import Handle
    from v1model.ir import ExternInstance, Program


class Arrays:
    def __init__(self, handle: Handle, program: Program) -> None:
        self._handle = handle
        self._instances: dict[tuple[str, str], tuple[int, ExternInstance]] = {}
        for kind in ("counter", "meter", "register"):
            instances = [instance for instance in program.externs if ARRAYS[instance.kind] == kind]
            for number, instance in enumerate(instances):
                self._instances[kind, instance.name] = number, instance
        self._meters: dict[tuple[int, int], MeterConfig] = {}

    def clear(self) -> None:
        self._meters.clear()

    def _find(self, kind: str, name: str, index: int | None = None) -> tuple[int, ExternInstance]:
        if (kind, name) not in self._instances:
            known = ", ".join(each for found, each in self._instances if found == kind) or "none"
            raise DataPlaneError("NOT_FOUND", f"no {kind} {name}; there are: {known}")
        number, instance = self._instances[kind, name]
        if index is not None and not 0 <= index < instance.size:
            raise DataPlaneError(
                "OUT_OF_RANGE", f"{kind} {name}: index {index} is not within 0..{instance.size - 1}"
            )
        return number, instance

    # --- counters --------------------------------------------------------------------------------

    def counter(self, name: str, index: int) -> CounterValue:
        number, _ = self._find("counter", name, index)
        return self._read_counters(number, index, 1)[0]

    def counters(self, name: str, first: int, count: int | None) -> Sequence[CounterValue]:
        number, instance = self._find("counter", name)
        most = instance.size - first
        if first < 0 or most < 0 or not 0 <= (count or 0) <= most:
            raise DataPlaneError("OUT_OF_RANGE", f"counter {name} has {instance.size} elements")
        return self._read_counters(number, first, most if count is None else count)

    def _read_counters(self, number: int, first: int, count: int) -> list[CounterValue]:
        values = (ctypes.c_uint64 * (2 * count))()
        self._handle.call("counters", number, first, count, values)
        return [CounterValue(values[2 * i], values[2 * i + 1]) for i in range(count)]

    def set_counter(self, name: str, index: int, value: CounterValue) -> None:
        number, _ = self._find("counter", name, index)
        self._handle.call("set_counter", number, index, value.packets, value.bytes)

    # --- meters ----------------------------------------------------------------------------------

    def meter(self, name: str, index: int) -> MeterConfig | None:
        number, _ = self._find("meter", name, index)
        return self._meters.get((number, index))

    def set_meter(self, name: str, index: int, config: MeterConfig | None) -> None:
        number, _ = self._find("meter", name, index)
        self._handle.call("set_meter", number, index, pack_rates(config))
        if config is None:
            self._meters.pop((number, index), None)
        else:
            self._meters[number, index] = config

    def meter_counts(self, name: str, index: int) -> MeterCounts:
        number, _ = self._find("meter", name, index)
        return read_counts(partial(self._handle.call, "meter_counts", number, index))

    def set_meter_counts(self, name: str, index: int, counts: MeterCounts) -> None:
        number, _ = self._find("meter", name, index)
        write_counts(partial(self._handle.call, "meter_counts", number, index), counts)

    # --- registers -------------------------------------------------------------------------------

    def register(self, name: str, index: int) -> int:
        number, instance = self._find("register", name, index)
        width = _cell_width(instance)
        cell = ctypes.create_string_buffer(storage_bytes(width))
        self._handle.call("register", number, index, cell)
        return from_storage(cell.raw, width)

    def set_register(self, name: str, index: int, value: int) -> None:
        number, instance = self._find("register", name, index)
        width = _cell_width(instance)
        if value < 0 or value.bit_length() > width:
            raise DataPlaneError(
                "INVALID_ARGUMENT", f"register {name}: {value:#x} does not fit in {width} bits"
            )
        self._handle.call("set_register", number, index, to_storage(value, width))


def _cell_width(instance: ExternInstance) -> int:
    assert instance.value_type is not None, instance.name
    return value_width(instance.value_type)
