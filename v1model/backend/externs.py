"""v1model's extern functions and methods, as simple_switch does them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.backend import fieldlist, wire
from v1model.backend.expressions import SHARED
from v1model.backend.layout import is_wide, value_width, wire_bytes
from v1model.backend.types import integer_type
from v1model.backend.unit import LogMessage
from v1model.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from v1model.backend.statements import Statements

# Algorithms over plain bytes: the C call up to the bytes. The custom CRCs have their defaults.
HASHES = {
    "crc32": "hash_crc32(&sw->crc32, ",
    "crc32_custom": "hash_crc32(&sw->crc32, ",
    "crc16": "hash_crc16(",
    "crc16_custom": "hash_crc16(",
    "identity": "hash_identity(",
    "xor16": "hash_xor16(",
}


def call(statements: Statements, statement: ir.ExternCall) -> None:
    if statement.instance and statement.name != "digest":
        instance, number = statements.unit.externs[statement.instance]
        handler = METHODS.get((instance.kind, statement.name))
        if handler is not None:
            with statements.function.block(""):
                handler(statements, instance, number, statement.arguments)
        return
    function = CALLS.get(statement.name)
    if function is None:
        raise UnsupportedError(f"extern function {statement.name}", statement.span)
    with statements.function.block(""):
        function(statements, statement)


# --- stateful externs -----------------------------------------------------------------------------


def _register_cell(statements: Statements, instance: ir.ExternInstance, number: int) -> str:
    width = value_width(_value_type(instance))
    if is_wide(_value_type(instance)):
        return f"(sw->registers[{number}] + index * {wire_bytes(width)})"
    return f"(({integer_type(width)} *)(void *)sw->registers[{number}])[index]"


def _value_type(instance: ir.ExternInstance) -> ir.Type:
    if not isinstance(instance.value_type, ir.Bits | ir.Bool):
        raise UnsupportedError(f"register {instance.name}: only bit<W>, int<W> and bool cells", instance.span)
    return instance.value_type


def _index(statements: Statements, index: ir.Expr) -> None:
    value = statements.expressions.value(index)
    if is_wide(index.type):
        value = f"wide_shift_amount({value}, {value_width(index.type)})"
    statements.function.emit(f"uint64_t index = {value};")


def _register_read(
    statements: Statements, instance: ir.ExternInstance, number: int, arguments: Sequence[ir.Expr]
) -> None:
    """Out of range the destination stays as it is."""
    result, index = arguments
    _index(statements, index)
    cell = _register_cell(statements, instance, number)
    with statements.function.block(f"if (index < {instance.size})"):
        if is_wide(_value_type(instance)):
            place = statements.expressions.place(result)
            statements.function.emit(f"wide_copy({place}, {cell}, {value_width(result.type)});")
        else:
            statements.assign_integer(result, cell)


def _register_write(
    statements: Statements, instance: ir.ExternInstance, number: int, arguments: Sequence[ir.Expr]
) -> None:
    index, value = arguments
    _index(statements, index)
    cell = _register_cell(statements, instance, number)
    statements.function.emit(f"if (index < {instance.size}) {statements.expressions.store(cell, value)}")


def _count(
    statements: Statements, instance: ir.ExternInstance, number: int, arguments: Sequence[ir.Expr]
) -> None:
    _index(statements, arguments[0])
    with statements.function.block(f"if (index < {instance.size})"):
        counter = f"sw->counters[{number}][index]"
        statements.function.emit(f"{counter}.packets++;", f"{counter}.bytes += job->ingress_length;")


def _execute_meter(
    statements: Statements, instance: ir.ExternInstance, number: int, arguments: Sequence[ir.Expr]
) -> None:
    index, result = arguments
    units = "job->ingress_length" if instance.unit == "bytes" else "1"
    _index(statements, index)
    with statements.function.block(f"if (index < {instance.size})"):
        statements.assign_integer(result, f"meter_execute(&sw->meters[{number}][index], {units}, sw->now_us)")


# The direct forms' methods do nothing: a hit counts and meters by itself (tables.py).
METHODS: dict[tuple[str, str], Callable[[Statements, ir.ExternInstance, int, Sequence[ir.Expr]], None]] = {
    ("register", "read"): _register_read,
    ("register", "write"): _register_write,
    ("counter", "count"): _count,
    ("meter", "execute_meter"): _execute_meter,
}


# --- hashes and checksums -------------------------------------------------------------------------


def hash_of(statements: Statements, algorithm: str, value: ir.Expr, *, with_payload: bool = False) -> str:
    """Emits the field list; a C expression for its hash, a uint64_t."""
    function = statements.function
    if algorithm == "random":
        return "next_random(sw)"
    fields = fieldlist.serialize(function, statements.expressions, value, "fields")
    payload = ("job->data + job->payload_offset", "job->length - job->payload_offset")
    if algorithm == "csum16":
        rest = ", ".join(payload) if with_payload else "NULL, 0"
        return f"hash_csum16({fields.data}, {fields.length}, {rest})"
    if algorithm not in HASHES:
        raise UnsupportedError(f"hash algorithm {algorithm}; there are csum16, random, {', '.join(HASHES)}")
    if not with_payload:
        return f"{HASHES[algorithm]}{fields.data}, {fields.length})"
    length = function.name("length")
    function.emit(f"uint32_t {length} = {fields.length};", f"memcpy(sw->scratch, {fields.data}, {length});")
    function.emit(f"memcpy(sw->scratch + {length}, {payload[0]}, {payload[1]});")
    return f"{HASHES[algorithm]}sw->scratch, {length} + {payload[1]})"


def _integer(statements: Statements, value: ir.Expr) -> str:
    """The low 64 bits of any Bits."""
    code = statements.expressions.value(value)
    if is_wide(value.type):
        code = f"wide_low128({code}, {value_width(value.type)})"
    return f"(uint64_t){code}"


def _hash(statements: Statements, statement: ir.ExternCall) -> None:
    """result = base + hash % max, in 64 bits; a max of 0 counts as 1."""
    result, algorithm, base, data, maximum = statement.arguments
    value = hash_of(statements, statements.unit.algorithm(algorithm), data)
    emit = statements.function.emit
    emit(
        f"uint64_t maximum = {_integer(statements, maximum)};",
        f"uint64_t base = {_integer(statements, base)};",
    )
    emit(f"uint64_t hash = {value} % (maximum ? maximum : 1) + base;")
    statements.assign_integer(result, "hash")


def _checksum(statements: Statements, statement: ir.ExternCall) -> None:
    condition, data, checksum, algorithm = statement.arguments
    name = statements.unit.algorithm(algorithm)
    function = statements.function
    with function.block(f"if ({statements.expressions.condition(condition)})"):
        value = hash_of(statements, name, data, with_payload=statement.name.endswith("_with_payload"))
        function.emit(f"uint64_t sum = {value};")
        if statement.name.startswith("update"):
            statements.assign_integer(checksum, "sum")
            return
        header = fieldlist.owner(checksum)
        valid = f"{statements.expressions.value(header)}.valid && " if header is not None else ""
        wrong = f"{valid}sum != {_integer(statements, checksum)}"
        function.emit(f"if ({wrong}) p->standard_metadata.f_checksum_error = 1;")


def _random(statements: Statements, statement: ir.ExternCall) -> None:
    """Uniform in low..high; nothing happens if low > high."""
    result, low, high = statement.arguments
    emit = statements.function.emit
    emit(f"uint64_t low = {_integer(statements, low)}, high = {_integer(statements, high)};")
    with statements.function.block("if (low <= high)"):
        emit("uint64_t range = high - low + 1, number = next_random(sw);")
        statements.assign_integer(result, "low + (range ? number % range : number)")


# --- what happens to the packet -------------------------------------------------------------------


def _mark_to_drop(statements: Statements, statement: ir.ExternCall) -> None:
    place = (
        statements.expressions.place(statement.arguments[0])
        if statement.arguments
        else "p->standard_metadata"
    )
    statements.function.emit(f"{place}.f_egress_spec = DROP_PORT;", f"{place}.f_mcast_grp = 0;")


def _keep(statements: Statements, statement: ir.ExternCall) -> int:
    return statements.unit.keep_site(tuple(kept for kept in statement.kept if root(kept) in SHARED))


def root(expression: ir.Expr) -> str:
    """The variable that an l-value is part of."""
    while not isinstance(expression, ir.Var):
        if not isinstance(expression, ir.Member | ir.Index | ir.Slice):
            return ""
        expression = expression.base
    return expression.name


def _clone(statements: Statements, statement: ir.ExternCall) -> None:
    session = _integer(statements, statement.arguments[1])
    statements.function.emit(f"job->clone_site = {_keep(statements, statement)};")
    statements.function.emit(f"job->clone_session = {session} % CLONE_SESSIONS;")


def _resubmit(statements: Statements, statement: ir.ExternCall) -> None:
    statements.function.emit(f"job->resubmit_site = {_keep(statements, statement)};")


def _recirculate(statements: Statements, statement: ir.ExternCall) -> None:
    statements.function.emit(f"job->recirculate_site = {_keep(statements, statement)};")


def _truncate(statements: Statements, statement: ir.ExternCall) -> None:
    function = statements.function
    function.emit(f"uint64_t length = {_integer(statements, statement.arguments[0])};")
    function.emit("if (length < job->truncate_bytes) job->truncate_bytes = (uint32_t)length;")


def _digest(statements: Statements, statement: ir.ExternCall) -> None:
    """The sample leaves when ingress is over, with the values of now: p4c copies the arguments."""
    leaves = [_capture(statements, leaf) for leaf in fieldlist.fields(statement.arguments[1])]
    statements.unit.digest_calls.append((statements.unit.digest_number(statement.instance), tuple(leaves)))
    statements.function.emit(f"job->digest_site = {len(statements.unit.digest_calls)};")


def _capture(statements: Statements, leaf: ir.Expr) -> ir.Expr:
    unit = statements.unit
    name = f"capture_{len(unit.captures)}"
    unit.captures.append(unit.types.declaration(leaf.type, name))
    statements.function.emit(statements.expressions.store(f"p->{name}", leaf))
    return ir.Var(f"p->{name}", leaf.type)


# --- messages -------------------------------------------------------------------------------------


def _log_msg(statements: Statements, statement: ir.ExternCall) -> None:
    text = statement.arguments[0]
    assert isinstance(text, ir.Const)
    values = [leaf for argument in statement.arguments[1:] for leaf in fieldlist.fields(argument)]
    widths = tuple(value_width(value.type) for value in values)
    signed = tuple(isinstance(value.type, ir.Bits) and value.type.signed for value in values)
    _emit_message(statements, LogMessage(str(text.value), widths, signed), values)


def _emit_message(statements: Statements, message: LogMessage, values: Sequence[ir.Expr] = ()) -> None:
    function = statements.function
    number = statements.unit.message(message)
    size = sum(wire_bytes(width) for width in message.widths)
    with function.block("if (sw->log_enabled)"):
        function.emit(f"uint8_t values[{max(1, size)}];", "values[0] = 0;")
        items = [
            wire.Item(statements.expressions.value(value), wire_bytes(width) * 8)
            for value, width in zip(values, message.widths, strict=True)
        ]
        function.emit(*wire.pack(items, "values"), f"emit_log(sw, {number}, values, {size});")


def _assert(statements: Statements, statement: ir.ExternCall) -> None:
    """Where simple_switch aborts the process, the packet is dropped and the failure logged."""
    where = f" at {statement.span.file}:{statement.span.line}" if statement.span else ""
    message = LogMessage(f"{statement.name} failed{where}", is_failure=True)
    with statements.function.block(f"if (!{statements.expressions.condition(statement.arguments[0])})"):
        _emit_message(statements, message)
        statements.abort("DROPPED_ASSERTION")


CALLS: dict[str, Callable[[Statements, ir.ExternCall], None]] = {
    "mark_to_drop": _mark_to_drop,
    "hash": _hash,
    "random": _random,
    "digest": _digest,
    "truncate": _truncate,
    "log_msg": _log_msg,
    "assert": _assert,
    "assume": _assert,
}
CALLS |= dict.fromkeys(("clone", "clone3", "clone_preserving_field_list"), _clone)
CALLS |= dict.fromkeys(("resubmit", "resubmit_preserving_field_list"), _resubmit)
CALLS |= dict.fromkeys(("recirculate", "recirculate_preserving_field_list"), _recirculate)
CALLS |= {
    f"{verb}_checksum{suffix}": _checksum for verb in ("verify", "update") for suffix in ("", "_with_payload")
}
