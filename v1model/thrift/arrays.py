"""Counters, meters, registers and parser value sets in BMv2's Thrift service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from v1model.dataplane import CounterValue, DataPlaneError
from v1model.ir import Bits, KeyMatch
from v1model.thrift.binary import I64, STRING, ListOf
from v1model.thrift.calls import COUNTER, METER, REGISTER, VALUE_SET, call
from v1model.thrift.tables import COUNTER_VALUE
from v1model.thrift.values import RATES, meter_config, named, rates, width_of

if TYPE_CHECKING:
    from v1model.dataplane import DataPlane
    from v1model.ir import ExternInstance, ValueSet

MAX_ELEMENTS = 1 << 20  # in one call


class Arrays:
    def __init__(self, switch: DataPlane) -> None:
        self._switch = switch

    # --- counters

    @call(3, COUNTER_VALUE, COUNTER)
    def bm_counter_read(self, _context: int, name: bytes, index: int) -> tuple[int, int]:
        value = self._switch.counter(self._extern("counter", name).name, index)
        return value.bytes, value.packets

    @call(4, None, COUNTER)
    def bm_counter_write(self, _context: int, name: bytes, index: int, value: Any) -> None:
        counted = CounterValue(value[2], value[1])
        self._switch.set_counter(self._extern("counter", name).name, index, counted)

    @call(2, None, COUNTER)
    def bm_counter_reset_all(self, _context: int, name: bytes) -> None:
        counter = self._extern("counter", name)
        for index in _indices(0, counter.size):
            self._switch.set_counter(counter.name, index, CounterValue(0, 0))

    # --- meters

    @call(3, None, METER)
    def bm_meter_array_set_rates(self, _context: int, name: bytes, given: Any) -> None:
        meter, config = self._extern("meter", name), meter_config(given)
        for index in _indices(0, meter.size):
            self._switch.set_meter(meter.name, index, config)

    @call(4, None, METER)
    def bm_meter_set_rates(self, _context: int, name: bytes, index: int, given: Any) -> None:
        self._switch.set_meter(self._extern("meter", name).name, index, meter_config(given))

    @call(3, RATES, METER)
    def bm_meter_get_rates(self, _context: int, name: bytes, index: int) -> list[tuple[float, int]]:
        return rates(self._switch.meter(self._extern("meter", name).name, index))

    # --- registers

    @call(3, I64, REGISTER)
    def bm_register_read(self, _context: int, name: bytes, index: int) -> int:
        return _signed(self._switch.register(self._extern("register", name).name, index))

    @call(2, ListOf(I64), REGISTER)
    def bm_register_read_all(self, _context: int, name: bytes) -> list[int]:
        register = self._extern("register", name)
        return [_signed(self._switch.register(register.name, i)) for i in _indices(0, register.size)]

    @call(4, None, REGISTER)
    def bm_register_write(self, _context: int, name: bytes, index: int, value: int) -> None:
        register = self._extern("register", name)
        self._switch.set_register(register.name, index, value & _mask(register))

    @call(5, None, REGISTER)
    def bm_register_write_range(self, _context: int, name: bytes, start: int, end: int, value: int) -> None:
        register = self._extern("register", name)
        for index in _indices(start, end):
            self._switch.set_register(register.name, index, value & _mask(register))

    @call(2, None, REGISTER)
    def bm_register_reset(self, _context: int, name: bytes) -> None:
        register = self._extern("register", name)
        for index in _indices(0, register.size):
            self._switch.set_register(register.name, index, 0)

    # --- parser value sets

    @call(3, None, VALUE_SET)
    def bm_parse_vset_add(self, _context: int, name: bytes, value: bytes) -> None:
        found = self._value_set(name)
        members, member = self._switch.value_set(found.name), _member(found, value)
        if member not in members:
            self._switch.set_value_set(found.name, [*members, member])

    @call(3, None, VALUE_SET)
    def bm_parse_vset_remove(self, _context: int, name: bytes, value: bytes) -> None:
        found = self._value_set(name)
        members, member = self._switch.value_set(found.name), _member(found, value)
        if member not in members:
            raise DataPlaneError("INVALID_ARGUMENT", f"{found.name} has no such member")
        self._switch.set_value_set(found.name, [one for one in members if one != member])

    @call(2, ListOf(STRING), VALUE_SET)
    def bm_parse_vset_get(self, _context: int, name: bytes) -> list[bytes]:
        found = self._value_set(name)
        return [_joined(found, member) for member in self._switch.value_set(found.name)]

    @call(2, None, VALUE_SET)
    def bm_parse_vset_clear(self, _context: int, name: bytes) -> None:
        self._switch.set_value_set(self._value_set(name).name, [])

    # --- what calls name

    def _extern(self, kind: str, name: bytes) -> ExternInstance:
        externs = [extern for extern in self._switch.program.externs if extern.kind == kind]
        if (found := named(externs, name)) is None:
            raise DataPlaneError("NOT_FOUND", f"no {kind} {name!r}")
        return found

    def _value_set(self, name: bytes) -> ValueSet:
        if (found := named(self._switch.program.value_sets, name)) is None:
            raise DataPlaneError("NOT_FOUND", f"no value set {name!r}")
        return found


def _indices(start: int, end: int) -> range:
    if not 0 <= start <= end or end - start > MAX_ELEMENTS:
        raise DataPlaneError("OUT_OF_RANGE", f"elements {start} to {end}: at most {MAX_ELEMENTS} a call")
    return range(start, end)


def _mask(register: ExternInstance) -> int:
    width = register.value_type.width if isinstance(register.value_type, Bits) else 1
    return int((1 << width) - 1)


def _signed(value: int) -> int:
    """Return the low 64 bits as Thrift's i64."""
    low = value & (1 << 64) - 1
    return low - (1 << 64) if low >> 63 else low


def _member(value_set: ValueSet, value: bytes) -> tuple[KeyMatch, ...]:
    """Return the member whose fields are consecutive bits of `value`, each matched exactly."""
    number, widths = int.from_bytes(value, "big"), [width_of(key) for key in value_set.keys]
    if number >> sum(widths):
        raise DataPlaneError("INVALID_ARGUMENT", f"{value_set.name} has {sum(widths)} bits")
    found = []
    for width in reversed(widths):
        found.append(KeyMatch(number & (1 << width) - 1))
        number >>= width
    return tuple(reversed(found))


def _joined(value_set: ValueSet, member: tuple[KeyMatch | None, ...]) -> bytes:
    number, bits = 0, 0
    for key, match in zip(value_set.keys, member, strict=True):
        number, bits = number << width_of(key) | (match.value if match else 0), bits + width_of(key)
    return number.to_bytes((bits + 7) // 8, "big")
