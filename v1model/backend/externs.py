"""C for v1model's extern functions and methods, with simple_switch's behaviour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.backend import fieldlist, messages
from v1model.backend.arithmetic import as_count
from v1model.backend.expressions import SHARED
from v1model.backend.hashes import hash_of, integer
from v1model.backend.layout import is_wide, value_width
from v1model.backend.types import integer_type
from v1model.backend.unit import LogMessage
from v1model.errors import UnsupportedError, located

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from v1model.backend.writer import Writer


def call(writer: Writer, statement: ir.ExternCall) -> None:
    if statement.instance and statement.name != "digest":
        instance, number = writer.unit.externs[statement.instance]
        handler = METHODS.get((instance.kind, statement.name))
        if handler is not None:
            with writer.function.block(""):
                handler(writer, instance, number, statement.arguments)
        return
    function = CALLS.get(statement.name)
    if function is None:
        raise UnsupportedError(f"extern function {statement.name}", statement.span)
    with located(statement.span), writer.function.block(""):
        function(writer, statement)


# --- stateful externs -----------------------------------------------------------------------------


def _register_cell(writer: Writer, instance: ir.ExternInstance, number: int) -> str:
    width = value_width(_value_type(instance))
    if is_wide(_value_type(instance)):
        return f"(sw->registers[{number}] + index * {writer.unit.registers[number].stride_bytes})"
    return f"(({integer_type(width)} *)(void *)sw->registers[{number}])[index]"


def _value_type(instance: ir.ExternInstance) -> ir.Type:
    if not isinstance(instance.value_type, ir.Bits | ir.Bool):
        raise UnsupportedError(f"register {instance.name}: only bit<W>, int<W> and bool cells", instance.span)
    return instance.value_type


def _index(writer: Writer, index: ir.Expr) -> None:
    count = as_count(writer.expressions.value(index), index.type)
    writer.function.emit(f"uint64_t index = {count};")


def _register_read(
    writer: Writer, instance: ir.ExternInstance, number: int, arguments: Sequence[ir.Expr]
) -> None:
    """Emit a register's read; with an index out of range the destination keeps its value."""
    result, index = arguments
    _index(writer, index)
    cell = _register_cell(writer, instance, number)
    with writer.function.block(f"if (index < {instance.size})"):
        if is_wide(_value_type(instance)):
            place = writer.expressions.place(result)
            writer.function.emit(f"wide_copy({place}, {cell}, {value_width(result.type)});")
        else:
            writer.assign_integer(result, cell)


def _register_write(
    writer: Writer, instance: ir.ExternInstance, number: int, arguments: Sequence[ir.Expr]
) -> None:
    index, value = arguments
    _index(writer, index)
    cell = _register_cell(writer, instance, number)
    writer.function.emit(f"if (index < {instance.size}) {writer.expressions.store(cell, value)}")


def _count(writer: Writer, instance: ir.ExternInstance, number: int, arguments: Sequence[ir.Expr]) -> None:
    _index(writer, arguments[0])
    with writer.function.block(f"if (index < {instance.size})"):
        counter = f"sw->counters[{number}][index]"
        writer.function.emit(f"{counter}.packets++;", f"{counter}.bytes += job->ingress_length;")


def _execute_meter(
    writer: Writer, instance: ir.ExternInstance, number: int, arguments: Sequence[ir.Expr]
) -> None:
    index, result = arguments
    units = "job->ingress_length" if instance.unit == "bytes" else "1"
    _index(writer, index)
    with writer.function.block(f"if (index < {instance.size})"):
        meter = f"&sw->meters[{number}][index]"
        colour = f"meter_execute({meter}, {units}, job->ingress_length, sw->now_us)"
        writer.assign_integer(result, colour)


# The direct forms' methods emit nothing: a hit counts and meters by itself (tables.py).
METHODS: dict[tuple[str, str], Callable[[Writer, ir.ExternInstance, int, Sequence[ir.Expr]], None]] = {
    ("register", "read"): _register_read,
    ("register", "write"): _register_write,
    ("counter", "count"): _count,
    ("meter", "execute_meter"): _execute_meter,
}


# --- hashes and checksums -------------------------------------------------------------------------


def _hash(writer: Writer, statement: ir.ExternCall) -> None:
    """Emit result = base + hash % max in 64 bits; a max of 0 counts as 1."""
    result, algorithm, base, data, maximum = statement.arguments
    value = hash_of(writer, writer.unit.algorithm(algorithm), data)
    emit = writer.function.emit
    emit(
        f"uint64_t maximum = {integer(writer, maximum)};",
        f"uint64_t base = {integer(writer, base)};",
    )
    emit(f"uint64_t hash = {value} % (maximum ? maximum : 1) + base;")
    writer.assign_integer(result, "hash")


def _checksum(writer: Writer, statement: ir.ExternCall) -> None:
    condition, data, checksum, algorithm = statement.arguments
    name = writer.unit.algorithm(algorithm)
    function = writer.function
    with function.block(f"if ({writer.expressions.condition(condition)})"):
        value = hash_of(writer, name, data, with_payload=statement.name.endswith("_with_payload"))
        function.emit(f"uint64_t sum = {value};")
        if statement.name.startswith("update"):
            writer.assign_integer(checksum, "sum")
            return
        header = fieldlist.owner(checksum)
        valid = f"{writer.expressions.value(header)}.valid && " if header is not None else ""
        wrong = f"{valid}sum != {integer(writer, checksum)}"
        function.emit(f"if ({wrong}) p->standard_metadata.f_checksum_error = 1;")


def _random(writer: Writer, statement: ir.ExternCall) -> None:
    """Emit a uniform random number in low..high; nothing happens if low > high."""
    result, low, high = statement.arguments
    emit = writer.function.emit
    emit(f"uint64_t low = {integer(writer, low)}, high = {integer(writer, high)};")
    with writer.function.block("if (low <= high)"):
        emit("uint64_t range = high - low + 1, number = next_random(sw);")
        writer.assign_integer(result, "low + (range ? number % range : number)")


# --- what happens to the packet -------------------------------------------------------------------


def _mark_to_drop(writer: Writer, statement: ir.ExternCall) -> None:
    place = (
        writer.expressions.place(statement.arguments[0]) if statement.arguments else "p->standard_metadata"
    )
    writer.function.emit(f"{place}.f_egress_spec = DROP_PORT;", f"{place}.f_mcast_grp = 0;")


def _keep(writer: Writer, statement: ir.ExternCall) -> int:
    return writer.unit.keep_site(tuple(kept for kept in statement.kept if root(kept) in SHARED))


def root(expression: ir.Expr) -> str:
    """Return the name of the variable that an l-value is part of, "" if there is none."""
    while not isinstance(expression, ir.Var):
        if not isinstance(expression, ir.Member | ir.Index | ir.Slice):
            return ""
        expression = expression.base
    return expression.name


def _clone(writer: Writer, statement: ir.ExternCall) -> None:
    session = integer(writer, statement.arguments[1])
    writer.function.emit(f"job->clone_site = {_keep(writer, statement)};")
    writer.function.emit(f"job->clone_session = {session} % CLONE_SESSIONS;")


def _resubmit(writer: Writer, statement: ir.ExternCall) -> None:
    writer.function.emit(f"job->resubmit_site = {_keep(writer, statement)};")


def _recirculate(writer: Writer, statement: ir.ExternCall) -> None:
    writer.function.emit(f"job->recirculate_site = {_keep(writer, statement)};")


def _truncate(writer: Writer, statement: ir.ExternCall) -> None:
    function = writer.function
    function.emit(f"uint64_t length = {integer(writer, statement.arguments[0])};")
    function.emit("if (length < job->truncate_bytes) job->truncate_bytes = (uint32_t)length;")


def _digest(writer: Writer, statement: ir.ExternCall) -> None:
    """Emit a digest call: it stores the values of now, as p4c does; the sample leaves after ingress."""
    leaves = [_capture(writer, leaf) for leaf in fieldlist.fields(statement.arguments[1])]
    writer.unit.digest_calls.append((writer.unit.digest_number(statement.instance), tuple(leaves)))
    writer.function.emit(f"job->digest_site = {len(writer.unit.digest_calls)};")


def _capture(writer: Writer, leaf: ir.Expr) -> ir.Expr:
    unit = writer.unit
    name = f"capture_{len(unit.captures)}"
    unit.captures.append(unit.types.declaration(leaf.type, name))
    writer.function.emit(writer.expressions.store(f"p->{name}", leaf))
    return ir.Var(f"p->{name}", leaf.type)


# --- assertions -----------------------------------------------------------------------------------


def _assert(writer: Writer, statement: ir.ExternCall) -> None:
    """Emit an assertion: it drops the packet and logs the failure, where simple_switch ends the process."""
    where = f" at {statement.span.file}:{statement.span.line}" if statement.span else ""
    message = LogMessage(f"{statement.name} failed{where}", is_failure=True)
    with writer.function.block(f"if (!{writer.expressions.condition(statement.arguments[0])})"):
        messages.emit(writer, message)
        writer.abort("DROPPED_ASSERTION")


CALLS: dict[str, Callable[[Writer, ir.ExternCall], None]] = {
    "mark_to_drop": _mark_to_drop,
    "hash": _hash,
    "random": _random,
    "digest": _digest,
    "truncate": _truncate,
    "log_msg": messages.log_msg,
    "assert": _assert,
    "assume": _assert,
}
CALLS |= dict.fromkeys(("clone", "clone3", "clone_preserving_field_list"), _clone)
CALLS |= dict.fromkeys(("resubmit", "resubmit_preserving_field_list"), _resubmit)
CALLS |= dict.fromkeys(("recirculate", "recirculate_preserving_field_list"), _recirculate)
CALLS |= {
    f"{verb}_checksum{suffix}": _checksum for verb in ("verify", "update") for suffix in ("", "_with_payload")
}
