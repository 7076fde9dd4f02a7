"""Table lookups inlined as code: a packed key, a lookup, and a switch over the table's actions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.backend import fieldlist, hashes, tracing, wire
from v1model.backend.layout import arguments_bytes, is_wide, value_width, wire_bytes
from v1model.backend.names import comment, identifier, string
from v1model.errors import located

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from v1model.backend.writer import Writer

    Run = Callable[[Sequence[ir.Stmt]], None]
    from v1model.backend.unit import Unit

MASKED_KINDS = ("lpm", "ternary", "optional")


def match_keys(table: ir.Table) -> list[ir.Key]:
    """Return the keys that entries match on; selector keys only choose among a group's members."""
    return [key for key in table.keys if key.match_kind != "selector"]


def match_kind(table: ir.Table) -> str:
    """Return the name of the runtime's enum match_kind."""
    kinds = {key.match_kind for key in match_keys(table)}
    if not kinds:
        return "MATCH_NONE"
    if "range" in kinds:
        return "MATCH_RANGE"
    return "MATCH_MASKED" if kinds & set(MASKED_KINDS) else "MATCH_EXACT"


def key_bytes(table: ir.Table) -> int:
    return sum(wire_bytes(value_width(key.expression.type)) for key in match_keys(table))


def argument_structs(unit: Unit) -> list[str]:
    """Return the packed struct args_<action> of each action with parameters: the data of its entries."""
    lines = []
    for number, action in enumerate(unit.program.actions):
        if action.params:
            members = " ".join(
                f"{unit.types.declaration(p.type, f'f_{identifier(p.name)}')};" for p in action.params
            )
            lines.append(
                f"struct args_{number} {{ {members} }} __attribute__((packed)); {comment(action.name)}"
            )
    return lines


def apply(writer: Writer, statement: ir.ApplyTable, run: Run) -> None:
    """Emit the application of a table; `run` writes the statements of an action."""
    unit, function = writer.unit, writer.function
    number = unit.tables[statement.table]
    table = unit.program.tables[number]
    with located(table.span), function.block(""):
        function.emit(comment(f"table {table.name}"), f"struct table *table = &sw->tables[{number}];")
        _lookup(writer, table)
        if statement.hit is not None:
            writer.assign_integer(statement.hit, "entry != NULL")
        _before_action(writer, table)
        function.emit("const uint8_t *data = entry->data;", "unsigned action = entry->action;")
        if table.implementation:
            _resolve_member(writer, table)
        tracing.looked_up(writer, table, number, key_bytes(table), data_bytes(unit.program, table))
        if statement.action is not None:
            writer.assign_integer(statement.action, "action")
        with function.block("switch (action)"):
            for index, action in enumerate(table.actions):
                _run_action(writer, index, action, run)
        function.emit("(void)data;")


def _lookup(writer: Writer, table: ir.Table) -> None:
    function = writer.function
    kind = match_kind(table)
    if kind == "MATCH_NONE":
        function.emit("struct entry *entry = NULL;")
        return
    function.emit(f"uint8_t key[{key_bytes(table)}];")
    function.emit(*wire.pack([_key_item(writer, key.expression) for key in match_keys(table)], "key"))
    function.emit(f"struct entry *entry = {lookup(table, 'table', 'key')};")


def lookup(table: ir.Table, place: str, key: str) -> str:
    """Return C for the entry (or NULL) that a packed key finds in the runtime's table at `place`."""
    if match_kind(table) == "MATCH_EXACT":
        return f"table_lookup_exact({place}, {key}, {key_bytes(table)})"
    return f"table_lookup_best_{key_bytes(table)}({place}, {key})"


def lookups(unit: Unit) -> list[str]:
    """Return the definitions of the lookup functions that `lookup` uses."""
    tables = [*unit.program.tables, *(table for table, _ in unit.value_sets.values())]
    sizes = {key_bytes(table) for table in tables if match_kind(table) not in ("MATCH_EXACT", "MATCH_NONE")}
    return [f"LOOKUP_BEST({size})" for size in sorted(sizes)]


def _key_item(writer: Writer, expression: ir.Expr) -> wire.Item:
    """Return a key field in whole bytes; it is 0 if its header is invalid, as in simple_switch."""
    width = value_width(expression.type)
    value = writer.expressions.value(expression)
    header = fieldlist.owner(expression)
    if header is not None:
        valid = f"{writer.expressions.value(header)}.valid"
        zero = writer.unit.wide_constant(0, width) if is_wide(expression.type) else "0"
        value = f"({valid} ? {value} : {zero})"
    return wire.Item(value, wire_bytes(width) * 8)


def _before_action(writer: Writer, table: ir.Table) -> None:
    """Emit the effects of a hit before the action: counters, ages, meters."""
    function, unit = writer.function, writer.unit
    kinds = {unit.externs[name][0].kind: unit.externs[name][0] for name in table.direct}
    meter = kinds.get("direct_meter")
    if meter is not None and table.meter_target is not None:
        units = "job->ingress_length" if meter.unit == "bytes" else "1"
        with function.block("if (entry)"):
            colour = f"meter_execute(entry->meter, {units}, job->ingress_length, sw->now_us)"
            writer.assign_integer(table.meter_target, colour)
    function.emit("if (!entry) entry = table->default_entry;")
    if "direct_counter" in kinds:
        function.emit("entry->packets++;", "entry->bytes += job->ingress_length;")
    if table.idle_timeout:
        function.emit("entry->last_hit_us = sw->now_us;")


def _resolve_member(writer: Writer, table: ir.Table) -> None:
    """Emit the step from an entry to its member of the action profile, or the one that its group chooses."""
    function, unit = writer.function, writer.unit
    instance, number = unit.externs[table.implementation]
    with function.block("if (entry->kind != TARGET_ACTION)"):
        function.emit(f"const struct profile *profile = &sw->profiles[{number}];")
        function.emit("const struct member *member = NULL;")
        function.emit("if (entry->kind == TARGET_MEMBER) member = profile_member(profile, entry->target);")
        if instance.kind == "action_selector":
            with function.block("else"):
                choice = _selector_hash(writer, table, instance)
                function.emit(
                    f"member = profile_choose(profile, entry->target, {choice}, sw->ports.link_down);"
                )
        function.emit("action = member ? member->action : table->default_entry->action;")
        function.emit("data = member ? member->data : table->default_entry->data;")


def _selector_hash(writer: Writer, table: ir.Table, selector: ir.ExternInstance) -> str:
    keys = tuple(key.expression for key in table.keys if key.match_kind == "selector")
    names = tuple((f"f{i}", key.type) for i, key in enumerate(keys))
    value = ir.Aggregate(keys, ir.Struct("selector keys", names))
    return hashes.hash_of(writer, selector.algorithm, value)


def _run_action(writer: Writer, index: int, action: ir.TableAction, run: Run) -> None:
    unit, function = writer.unit, writer.function
    number = next(i for i, declared in enumerate(unit.program.actions) if declared.name == action.action)
    params: Sequence[ir.ActionParam] = unit.program.actions[number].params
    with function.block(f"case {index}:"):
        function.emit(comment(action.action))
        if params:
            function.emit(f"const struct args_{number} *arguments = (const void *)data;", "(void)arguments;")
        outer = function.arguments
        function.arguments = {f"${p.name}": f"arguments->f_{identifier(p.name)}" for p in params}
        run(action.body)
        function.arguments = outer
        function.emit("break;")


def describe(unit: Unit) -> list[str]:
    """Return the table_spec of every table, followed by those of the value sets."""
    fields: list[str] = []
    specs: list[str] = []
    for number, table in enumerate([*unit.program.tables, *(table for table, _ in unit.value_sets.values())]):
        if match_kind(table) == "MATCH_RANGE":
            fields.append(f"static const struct key_field fields_{number}[] = {{{_key_fields(table)}}};")
        specs.append(f"    {{{_spec(unit, number, table)}}},")
    if not specs:
        return []
    return [*fields, "static const struct table_spec table_specs[] = {", *specs, "};"]


def _has_direct_meter(unit: Unit, table: ir.Table) -> bool:
    return any(unit.externs[name][0].kind == "direct_meter" for name in table.direct)


def _key_fields(table: ir.Table) -> str:
    result, offset = [], 0
    for key in match_keys(table):
        size = wire_bytes(value_width(key.expression.type))
        result.append(f"{{{offset}, {size}, {str(key.match_kind == 'range').lower()}}}")
        offset += size
    return ", ".join(result)


def _spec(unit: Unit, number: int, table: ir.Table) -> str:
    parts = {
        "name": string(table.name),
        "match": match_kind(table),
        "has_idle_timeout": str(table.idle_timeout).lower(),
        "has_direct_meter": str(_has_direct_meter(unit, table)).lower(),
        "key_bytes": str(key_bytes(table)),
        "data_bytes": str(data_bytes(unit.program, table)),
        "size": str(table_size(table)),
    }
    if match_kind(table) == "MATCH_RANGE":
        parts |= {"fields": f"fields_{number}", "field_count": str(len(match_keys(table)))}
    return ", ".join(f".{name} = {value}" for name, value in parts.items())


def table_size(table: ir.Table) -> int:
    """Return the largest number of entries: as declared, else 1,024; at least the program's own entries."""
    return max(table.size or 1024, len(table.entries))


def data_bytes(program: ir.Program, table: ir.Table) -> int:
    """Return the bytes that hold the arguments of any of the table's actions, a multiple of 8."""
    params = {action.name: action.params for action in program.actions}
    largest = max((arguments_bytes(params[action.action]) for action in table.actions), default=0)
    return (largest + 7) // 8 * 8
