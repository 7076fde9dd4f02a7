"""C file of a program: declarations, the six blocks, and the description for the runtime."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from v1model import ir
from v1model.backend import blocks, custom_externs, tables
from v1model.backend.layout import (
    LOOP_EMIT_BYTES,
    arguments_bytes,
    emit_bytes,
    value_width,
    wire_bytes,
)
from v1model.backend.names import string
from v1model.backend.registers import cell_bytes
from v1model.backend.tracing import TraceSite, Tracing
from v1model.backend.unit import LogMessage, Unit
from v1model.errors import located

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from v1model.backend.extern_source import ExternSource


@dataclass(frozen=True, slots=True)
class Generated:
    """C file, with what the numbers in its messages and traces stand for, and the bits of its custom CRCs."""

    source: str
    messages: tuple[LogMessage, ...]
    trace_sites: tuple[TraceSite, ...]
    custom_crcs: tuple[int, ...] = ()


def generate(
    program: ir.Program, externs: ExternSource | None = None, tracing: Tracing = Tracing.OFF
) -> Generated:
    """Return the C of a program; equal programs give equal text.

    `externs` is the user's C for externs that are not v1model's.
    """
    unit = Unit(program, tracing)
    types = unit.types
    shared = [
        types.declaration(program.headers, "headers"),
        types.declaration(program.metadata, "metadata"),
        types.declaration(program.standard_metadata, "standard_metadata"),
    ]
    with located(program.parser.span):
        functions = blocks.parser(unit, program.parser)
    for name in ("verify_checksum", "ingress", "egress", "compute_checksum"):
        block = getattr(program, name)
        with located(block.span):
            functions += blocks.control(unit, name, block)
    with located(program.deparser.span):
        functions += blocks.deparser(unit, program.deparser)
        functions += [*blocks.keep(unit), *blocks.digest(unit)]
    arguments = tables.argument_structs(unit)
    phv = ["struct phv {", *(f"    {member};" for member in (*shared, *unit.captures)), "};"]
    parts = [
        ["/* Generated from a P4 program; do not edit. */"],
        [] if tracing is Tracing.OFF else ["#define WEIR_TRACE"],
        ['#include "hash.h"', '#include "wide.h"', ""],
        [*unit.types.lines, "", *arguments, *phv, "", '#include "pipeline.h"', ""],
        [externs.text(), ""] if externs else [],
        [*unit.constants, ""],
        tables.lookups(unit),
        functions,
        list(_description(unit)),
    ]
    source = "\n".join(line for part in parts for line in part) + "\n"
    return Generated(source, tuple(unit.messages), tuple(unit.trace_sites), tuple(unit.custom_crcs))


def _emitted_bytes(statements: Sequence[ir.Stmt]) -> int:
    """Return the bytes that a deparser's statements append at most."""
    total = 0
    for statement in statements:
        match statement:
            case ir.Emit(value):
                total += emit_bytes(value.type)
            case ir.If(_, then, otherwise):
                total += max(_emitted_bytes(then), _emitted_bytes(otherwise))
            case ir.Switch(_, cases, default):
                total += max(_emitted_bytes(body) for body in (default, *(case[1] for case in cases)))
            case ir.Block(_, body):
                total += _emitted_bytes(body)
            case ir.Loop(body):
                total += LOOP_EMIT_BYTES if _emitted_bytes(body) else 0
    return total


def _array(kind: str, name: str, values: Sequence[str]) -> Iterator[str]:
    if values:
        yield f"static const struct {kind} {name}[] = {{"
        yield from (f"    {{{value}}}," for value in values)
        yield "};"


def _description(unit: Unit) -> Iterator[str]:
    program = unit.program
    yield from tables.describe(unit)
    registers = [
        f"{string(r.name)}, {r.size}, {cell_bytes(r)}, {at.offset_bytes}, {at.stride_bytes}"
        for r, at in zip(unit.instances("register"), unit.registers, strict=True)
    ]
    counters = [f"{string(c.name)}, {c.size}" for c in unit.instances("counter")]
    meters = [
        f"{string(m.name)}, {m.size}, {str(m.unit == 'bytes').lower()}" for m in unit.instances("meter")
    ]
    profiles = [
        f"{string(p.name)}, {p.size}, {profile_data_bytes(program, p)}" for p in unit.instances("profile")
    ]
    yield from _array("register_spec", "register_specs", registers)
    yield from _array("counter_spec", "counter_specs", counters)
    yield from _array("meter_spec", "meter_specs", meters)
    yield from _array("profile_spec", "profile_specs", profiles)
    sizes = [str(digest_bytes(digest)) for digest in program.digests]
    if sizes:
        yield f"static const uint32_t digest_sizes[] = {{{', '.join(sizes)}}};"
    yield from custom_externs.objects(unit)
    counts = {
        "table": len(program.tables) + len(program.value_sets),
        "register": len(registers),
        "counter": len(counters),
        "meter": len(meters),
        "profile": len(profiles),
        "custom": len(program.custom_objects),
    }
    yield "const struct program weir_program = {"
    yield f"    .phv_bytes = sizeof(struct phv), .headroom_bytes = {_emitted_bytes(program.deparser.body)},"
    yield "    .run = p4_run, .leave = p4_leave,"
    yield f"    .digests = {len(sizes)}, .digest_bytes = {'digest_sizes' if sizes else '0'},"
    for name, count in counts.items():
        pointer = f".{name}{'_' if name == 'register' else ''} = {f'{name}_specs' if count else '0'}"
        yield f"    .{name}s = {count}, {pointer},"
    yield "};"


def digest_bytes(digest: ir.Digest) -> int:
    """Return the bytes of one sample as the runtime passes it."""
    return sum(wire_bytes(value_width(field_type)) for field_type in digest_fields(digest))


def digest_fields(digest: ir.Digest) -> list[ir.Type]:
    """Return the types of a sample's values, with nested structs and headers flattened."""

    def flatten(value_type: ir.Type) -> Iterator[ir.Type]:
        if isinstance(value_type, ir.Struct | ir.Header):
            for _, field_type in value_type.fields:
                yield from flatten(field_type)
        else:
            yield value_type

    return list(flatten(digest.type))


def profile_data_bytes(program: ir.Program, profile: ir.ExternInstance) -> int:
    """Return the bytes that hold the arguments of any member of the profile, a multiple of 8."""
    users = [table for table in program.tables if table.implementation == profile.name]
    names = {action.action for table in users for action in table.actions}
    largest = max(
        (arguments_bytes(action.params) for action in program.actions if action.name in names), default=0
    )
    return (largest + 7) // 8 * 8
