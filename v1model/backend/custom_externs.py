"""Calls of externs that the user has written in C, and each switch's objects of them.

A P4 value of up to 64 bits is a uint64_t in C, of up to 128 bits a u128, a wider one its big-endian bytes;
`out` and `inout` arguments are pointers. An int<W> is its W bits. Functions are `p4_NAME`. An object of type
T is a `void *` from `p4_T_new`, passed to `p4_T_METHOD` and at the end to `p4_T_free`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.backend.layout import NARROW_BITS, is_wide, value_width
from v1model.errors import located

if TYPE_CHECKING:
    from collections.abc import Iterator

    from v1model import ir
    from v1model.backend.unit import Unit
    from v1model.backend.writer import Writer


def _c_type(value_type: ir.Type) -> str:
    return "uint64_t" if value_width(value_type) <= NARROW_BITS else "u128"


def call(writer: Writer, statement: ir.CustomCall) -> None:
    function, given, after = writer.function, [], []
    with located(statement.span), function.block(""):
        if statement.instance:
            given.append(f"sw->custom[{writer.unit.custom_objects[statement.instance]}]")
        for value, written in statement.arguments:
            if is_wide(value.type):
                expressions = writer.expressions
                given.append(expressions.place(value) if written else expressions.value(value))
            elif written:
                name = function.name("argument")
                function.emit(f"{_c_type(value.type)} {name} = {writer.expressions.value(value)};")
                given.append(f"&{name}")
                after.append((value, name))
            else:
                given.append(writer.expressions.value(value))
        code = f"p4_{statement.function}({', '.join(given)})"
        if statement.result is None:
            function.emit(f"{code};")
        else:
            writer.assign_integer(statement.result, code)
        for value, name in after:
            writer.assign_integer(value, name)


def objects(unit: Unit) -> Iterator[str]:
    """Yield C that makes each object, and the runtime's table of functions that make and free them."""
    for number, made in enumerate(unit.program.custom_objects):
        arguments = ", ".join(f"UINT64_C({argument.value})" for argument in made.arguments)
        yield f"static void *custom_new_{number}(void) {{ return p4_{made.type}_new({arguments}); }}"
    if unit.program.custom_objects:
        yield "static const struct custom_spec custom_specs[] = {"
        for number, made in enumerate(unit.program.custom_objects):
            yield f"    {{custom_new_{number}, p4_{made.type}_free}},"
        yield "};"
