"""Tables: keys, actions and properties are lowered at the first application, then each apply is emitted."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from v1model import ir
from v1model.errors import CompileError, UnsupportedError
from v1model.frontend import ast
from v1model.frontend import types as t
from v1model.midend.entries import action_arguments, table_entries
from v1model.midend.fold import FALSE, unary
from v1model.midend.frame import Frame, leaves
from v1model.midend.inline import bind_arguments, inline_body, named_object
from v1model.midend.instances import applied_instance, instantiate
from v1model.midend.scope import ActionClosure, Binding, ExternObject, Scope, TableInstance, name_annotation
from v1model.midend.shapes import INDEX
from v1model.midend.table_names import key_name

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)

PIPELINE = ("ingress", "egress")
ATTACHED_KINDS: dict[str, tuple[str, ...]] = {
    "counters": ("direct_counter",),
    "meters": ("direct_meter",),
    "implementation": ("action_profile", "action_selector"),
}
MATCH_KINDS = ("exact", "lpm", "ternary", "range", "optional", "selector")


def apply_table(
    frame: Frame, instance: TableInstance, hit: ir.Var | None = None, action: ir.Var | None = None
) -> None:
    """Emit the apply of a table, and the handling of `exit` in one of its actions."""
    if frame.builder.name not in PIPELINE:
        raise UnsupportedError(f"a table applied in {frame.builder.name}", instance.declaration.span)
    keys = _keys(frame, instance)
    if not instance.lowered:
        _lower(frame, instance, keys)
    frame.emit(ir.ApplyTable(instance.name, hit, action))
    if instance.may_exit:
        with frame.builder.collect() as leave:
            frame.exit()
        frame.emit(ir.If(frame.builder.exit_flag(), tuple(leave)))


def apply_result(frame: Frame, call: ast.Call, member: str) -> ir.Expr:
    """Emit t.apply() and return its .hit or .miss."""
    instance = applied_instance(frame, call)
    if not isinstance(instance, TableInstance) or member not in ("hit", "miss"):
        raise UnsupportedError(f"{member} of an apply", call.span)
    hit = frame.builder.temporary(ir.Bool(), "hit")
    apply_table(frame, instance, hit=hit)
    return hit if member == "hit" else unary("!", hit, ir.Bool())


def switch_subject(frame: Frame, node: ast.Expression) -> tuple[ir.Var, Callable[[ast.Expression], ir.Const]]:
    """Emit `t.apply().action_run`; returns its variable, and a function that returns a label's value."""
    assert isinstance(node, ast.Member), node
    assert isinstance(node.base, ast.Call), node
    instance = applied_instance(frame, node.base)
    assert isinstance(instance, TableInstance), node
    ran = frame.builder.temporary(INDEX, "action_run")
    apply_table(frame, instance, action=ran)

    def label_value(label: ast.Expression) -> ir.Const:
        assert isinstance(label, ast.Name)
        assert label.declaration is not None
        closure = Frame(frame.unit, frame.builder, instance.scope).find(label.declaration)
        assert isinstance(closure, ActionClosure)
        if closure.name not in instance.actions:
            raise CompileError(f"{label.name} is no action of this table", label.span)
        return ir.Const(instance.actions.index(closure.name), INDEX)

    return ran, label_value


def _inside(frame: Frame, instance: TableInstance) -> Frame:
    """Return a frame in the control that the table belongs to."""
    return Frame(frame.unit, frame.builder, instance.scope, depth=frame.depth)


def _keys(frame: Frame, instance: TableInstance) -> list[ir.Expr]:
    """Return the key expressions.

    Keys with side effects are computed before each apply, into variables of the table.
    """
    before = len(frame.builder.out)
    nodes = [element.expression for element in instance.declaration.keys]
    values = _inside(frame, instance).in_order(nodes)
    if len(frame.builder.out) == before:
        return values
    for position, value in enumerate(values):
        variable = instance.hoisted_keys.get(position)
        if variable is None:
            variable = frame.builder.local("key", value.type)
            instance.hoisted_keys[position] = variable
        frame.emit(ir.Assign(variable, value))
    return [instance.hoisted_keys[position] for position in range(len(values))]


def _lower(frame: Frame, instance: TableInstance, key_values: list[ir.Expr]) -> None:
    """Add the ir.Table of an instance to the program."""
    inside, declaration = _inside(frame, instance), instance.declaration
    keys = tuple(_key(inside, e, v) for e, v in zip(declaration.keys, key_values, strict=True))
    properties = _properties(inside, instance)
    if sum(key.match_kind == "lpm" for key in keys) > 1:
        raise UnsupportedError("a table with more than one lpm key", declaration.span)
    _check_selector(inside, instance, keys, "".join(properties["implementation"]))
    actions = _actions(inside, instance)
    for meter in properties["meters"]:
        if meter not in frame.unit.meter_targets:
            message = f"no action of table {instance.name} reads its direct meter {meter}"
            hint = f"call {meter.rpartition('.')[2]}.read(...) in an action, or leave the meter out"
            raise CompileError(message, declaration.span, hint)
    instance.actions = tuple(action.action for action in actions)
    if len(set(instance.actions)) < len(actions):
        raise CompileError(f"table {instance.name} lists an action twice", declaration.span)
    if any(instance.name == table.name for table in frame.unit.tables):
        raise CompileError(f"two tables are called {instance.name}", declaration.span)
    table = ir.Table(
        name=instance.name,
        keys=keys,
        actions=actions,
        default_action=_default_action(inside, declaration),
        default_is_const=declaration.default_action_const,
        entries=table_entries(inside, declaration, keys),
        entries_are_const=declaration.entries_const,
        size=_number(inside, declaration, "size"),
        direct=properties["counters"] + properties["meters"],
        implementation="".join(properties["implementation"]),
        idle_timeout=bool(_number(inside, declaration, "support_timeout")),
        meter_target=next(
            (frame.unit.meter_targets[m] for m in properties["meters"] if m in frame.unit.meter_targets), None
        ),
        annotations=tuple(declaration.annotations),
        span=declaration.span,
    )
    frame.unit.tables.append(table)
    instance.lowered = True


def _check_selector(
    frame: Frame, instance: TableInstance, keys: tuple[ir.Key, ...], implementation: str
) -> None:
    """Refuse tables that share a selector but select by other keys; warn of selector keys without one."""
    selecting = tuple(key for key in keys if key.match_kind == "selector")
    span = instance.declaration.span
    kinds = {extern.name: extern.kind for extern in frame.unit.externs}
    if selecting and kinds.get(implementation) != "action_selector":
        message = "%s:%d: table %s has a selector key and no action_selector: the key has no effect"
        logger.warning(message, span.file, span.line, instance.name)
    for other in frame.unit.tables:
        if implementation and other.implementation == implementation:
            others = tuple(key for key in other.keys if key.match_kind == "selector")
            same_names = [key.name for key in others] == [key.name for key in selecting]
            if not same_names and [key.expression for key in others] != [key.expression for key in selecting]:
                message = f"{implementation} selects by other keys in table {other.name}"
                raise CompileError(message, span, "tables that share an action_selector have the same ones")


def _key(frame: Frame, element: ast.KeyElement, value: ir.Expr) -> ir.Key:
    if element.match_kind not in MATCH_KINDS:
        message = f"match kind {element.match_kind} is not one of {', '.join(MATCH_KINDS)}"
        raise UnsupportedError(message, element.span)
    if not isinstance(value.type, ir.Bits | ir.Bool):
        raise UnsupportedError("a key that is no bit<>, int<>, bool, enum or error", element.span)
    name = name_annotation(element.annotations) or key_name(frame, element.expression)
    type_ = frame.type_of(element.expression)
    type_name = frame.unit.new_type_name(type_)
    return ir.Key(value, element.match_kind, name, type_name, tuple(element.annotations), type_)


def _actions(frame: Frame, instance: TableInstance) -> tuple[ir.TableAction, ...]:
    """Return the table's actions; NoAction as an unlisted default is default-only."""
    declaration = instance.declaration
    actions = [_table_action(frame, instance, reference) for reference in declaration.actions]
    no_action = frame.unit.no_action
    if declaration.default_action is None and no_action is not None:
        closure = frame.find(no_action)
        assert isinstance(closure, ActionClosure)
        if closure.name not in (action.action for action in actions):
            only_default = ast.Annotation(declaration.span, "defaultonly")
            name = ast.Name(declaration.span, no_action.name, declaration=no_action)
            reference = ast.ActionReference(declaration.span, name, annotations=[only_default])
            actions.append(_table_action(frame, instance, reference))
    return tuple(actions)


def _table_action(frame: Frame, instance: TableInstance, reference: ast.ActionReference) -> ir.TableAction:
    closure, builder = _closure(frame, reference.name), frame.builder
    declaration = closure.declaration
    inner = Frame(frame.unit, builder, Scope(closure.scope), depth=frame.depth + 1)
    inner.exit_label, inner.in_table = builder.fresh_name(f"{declaration.name}_exit"), True
    frame.unit.add_action(closure, inner)
    directional = [p for p in declaration.parameters if p.direction]
    with builder.collect() as statements:
        bind_arguments(frame, inner, directional, reference.arguments, alias=False, constants=True)
        for parameter in declaration.parameters:
            if not parameter.direction:
                inner.scope.bindings[parameter] = _action_data(inner, parameter)
        inline_body(inner, declaration.body, declaration.name)
    instance.may_exit = instance.may_exit or leaves(statements, inner.exit_label)
    with builder.collect() as body:
        builder.emit_block(inner.exit_label, statements)
    marks = {annotation.name for annotation in reference.annotations}
    return ir.TableAction(
        closure.name, tuple(body), "defaultonly" in marks, "tableonly" in marks, tuple(reference.annotations)
    )


def _closure(frame: Frame, name: ast.Name) -> ActionClosure:
    assert name.declaration is not None, name
    closure = frame.find(name.declaration)
    if not isinstance(closure, ActionClosure):
        raise UnsupportedError(f"{name.name} is no action", name.span)
    return closure


def _action_data(frame: Frame, parameter: ast.Parameter) -> ir.Expr:
    """Return a control-plane parameter as an expression in the action's body."""
    shape = frame.shape_of(parameter.type_ref)
    if isinstance(shape, ir.Bool):
        return ir.Cast(ir.Var(f"${parameter.name}", ir.Bits(1)), shape)
    return ir.Var(f"${parameter.name}", shape)


def _default_action(frame: Frame, declaration: ast.TableDeclaration) -> ir.ActionCall:
    node = declaration.default_action
    if node is None:
        assert frame.unit.no_action is not None
        closure = frame.find(frame.unit.no_action)
        assert isinstance(closure, ActionClosure)
        return ir.ActionCall(closure.name)
    if isinstance(node, ast.Name):
        return ir.ActionCall(_closure(frame, node).name)
    assert isinstance(node.callee, ast.Name)
    return ir.ActionCall(_closure(frame, node.callee).name, action_arguments(frame, node))


MAX_SIZE = 1 << 28  # entries; they take memory when they are written


def _number(frame: Frame, declaration: ast.TableDeclaration, name: str) -> int:
    given = declaration.properties.get(name)
    if given is None:
        return 0
    assert isinstance(given.value, ast.Expression)
    value = frame.constant(given.value, f"table property {name}")
    if value > MAX_SIZE:
        raise CompileError(f"table property {name}: {value} is more than {MAX_SIZE}", given.value.span)
    return value


def _properties(frame: Frame, instance: TableInstance) -> dict[str, tuple[str, ...]]:
    """Return the names of the extern instances attached to a table, by property."""
    found: dict[str, tuple[str, ...]] = {}
    for name, kinds in ATTACHED_KINDS.items():
        given = instance.declaration.properties.get(name)
        found[name] = () if given is None else (_attached(frame, instance, given, kinds),)
    for direct in (*found["counters"], *found["meters"]):
        if any(direct in table.direct for table in frame.unit.tables):
            raise CompileError(f"{direct} belongs to another table already", instance.declaration.span)
    return found


def _attached(frame: Frame, instance: TableInstance, given: ast.TableProperty, kinds: tuple[str, ...]) -> str:
    """Return the name of the extern instance in a table property, which may construct it in place."""
    value = given.value
    assert isinstance(value, ast.Expression)
    if isinstance(value, ast.Call) and isinstance(value.type, t.DeclaredType):
        found = _constructed(frame, instance, given, value)
    else:
        found = named_object(frame, value) or FALSE
    if not isinstance(found, ExternObject) or found.resource.kind not in kinds:
        raise CompileError(f"table property {given.name} must be of type {' or '.join(kinds)}", given.span)
    return found.resource.name


def _constructed(frame: Frame, instance: TableInstance, given: ast.TableProperty, call: ast.Call) -> Binding:
    """Return an extern instance made in a table property.

    Its name is that of @name, else it is made of table and property.
    """
    name = name_annotation(given.annotations).removeprefix(".")
    name = name or f"{instance.name}_{given.name}"
    assert isinstance(call.type, t.DeclaredType)
    type_ref = ast.TypeRef(given.span, resolved=call.type)
    node = ast.Instantiation(given.span, name, type_ref, call.arguments, annotations=given.annotations)
    return instantiate(frame, call.type, call.arguments, name, node)
