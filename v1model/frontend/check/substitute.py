"""Type variables: replacing them, and inferring what they stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.frontend import ast
from v1model.frontend.check.show import show
from v1model.frontend.types import (
    BitType,
    DeclaredType,
    EnumType,
    IntegerType,
    ListType,
    NewType,
    RecordType,
    SetType,
    StackType,
    TupleType,
    Type,
    TypeVariable,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

Bindings = dict[str, Type]
DONT_CARE = TypeVariable("_")


def substitute(found: Type, bindings: Mapping[str, Type]) -> Type:
    """Return `found` with its type variables replaced, as far as `bindings` has them."""
    if not bindings:
        return found
    match found:
        case TypeVariable(name):
            return bindings.get(name, found)
        case TupleType(elements):
            return TupleType(tuple(substitute(element, bindings) for element in elements))
        case ListType(element):
            return ListType(substitute(element, bindings))
        case SetType(element):
            return SetType(substitute(element, bindings))
        case StackType(element, size):
            return StackType(substitute(element, bindings), size)
        case RecordType() if found.arguments:
            arguments = tuple(substitute(argument, bindings) for argument in found.arguments)
            return instantiate(found, arguments, bindings)
        case DeclaredType(declaration, declared_arguments) if declared_arguments:
            return DeclaredType(declaration, tuple(substitute(a, bindings) for a in declared_arguments))
    return found


def instantiate(generic: RecordType, arguments: tuple[Type, ...], bindings: Mapping[str, Type]) -> RecordType:
    """Return a generic struct or header with its type variables replaced; its name has the arguments."""
    name = f"{generic.declaration.name}<{', '.join(show(argument) for argument in arguments)}>"
    fields = tuple((field, substitute(kind, bindings)) for field, kind in generic.fields)
    return RecordType(generic.kind, name, fields, generic.declaration, arguments)


def has_variables(found: Type) -> bool:
    """Return whether a type variable occurs in the type."""
    match found:
        case TypeVariable():
            return True
        case TupleType(types) | DeclaredType(_, types):
            return any(has_variables(element) for element in types)
        case RecordType():
            return any(has_variables(argument) for argument in found.arguments)
        case ListType(element) | SetType(element) | StackType(element, _):
            return has_variables(element)
    return False


def unify(parameter: Type, argument: Type, bindings: Bindings) -> bool:
    """Return whether `argument` fits `parameter`, and add inferred type variables to `bindings`.

    A variable is inferred if it is a key of `bindings`; unknown ones are bound to DONT_CARE. An `int` adapts
    to any type with a width, and a list or untyped struct to a struct, since these can be converted.
    """
    if isinstance(parameter, TypeVariable) and parameter.name in bindings:
        bound = bindings[parameter.name]
        if bound == DONT_CARE or _gives_way(bound, argument):
            bindings[parameter.name] = argument
            return True
        return bound == argument or _gives_way(argument, bound)
    if parameter in (argument, DONT_CARE) or argument == DONT_CARE:
        return True
    return _unify_structure(parameter, argument, bindings)


def _gives_way(weak: Type, strong: Type) -> bool:
    if isinstance(weak, IntegerType):
        return isinstance(strong, BitType | EnumType | NewType)
    if isinstance(weak, TupleType) or (isinstance(weak, RecordType) and not weak.name):
        return isinstance(strong, RecordType | TupleType | StackType) and weak != strong
    return False


def _unify_structure(parameter: Type, argument: Type, bindings: Bindings) -> bool:
    match parameter, argument:
        case (BitType() | NewType(), IntegerType()) | (BitType(), EnumType()):
            return True
        case TupleType(left), TupleType(right):
            return _unify_all(left, right, bindings)
        case ListType(left_element), ListType(right_element):
            return unify(left_element, right_element, bindings)
        case ListType(element), TupleType(elements):
            return all(unify(element, each, bindings) for each in elements)
        case SetType(left_element), SetType(right_element):
            return unify(left_element, right_element, bindings)
        case StackType(left_element, left_size), StackType(right_element, right_size):
            return left_size == right_size and unify(left_element, right_element, bindings)
        case RecordType(), TupleType(elements):
            return _unify_all(tuple(kind for _, kind in parameter.fields), elements, bindings)
        case RecordType(), RecordType():
            return _unify_records(parameter, argument, bindings)
        case DeclaredType(), DeclaredType():
            return _unify_declared(parameter, argument, bindings)
    return False


def _unify_all(parameters: tuple[Type, ...], arguments: tuple[Type, ...], bindings: Bindings) -> bool:
    return len(parameters) == len(arguments) and all(
        unify(parameter, argument, bindings)
        for parameter, argument in zip(parameters, arguments, strict=True)
    )


def _unify_records(parameter: RecordType, argument: RecordType, bindings: Bindings) -> bool:
    if argument.name:
        return parameter.declaration is argument.declaration and _unify_all(
            parameter.arguments, argument.arguments, bindings
        )
    fields = dict(argument.fields)
    return all(name in fields and unify(kind, fields[name], bindings) for name, kind in parameter.fields)


def _unify_declared(parameter: DeclaredType, argument: DeclaredType, bindings: Bindings) -> bool:
    """Unify declared types; a parser or control also with a parser or control type, by its parameters."""
    if parameter.declaration is argument.declaration:
        return _unify_all(parameter.arguments, argument.arguments, bindings)
    wanted, given = parameter.declaration, argument.declaration
    blocks = ast.ParserDeclaration | ast.ControlDeclaration
    if not (isinstance(wanted, blocks) and isinstance(given, blocks) and type(wanted) is type(given)):
        return False
    if len(wanted.parameters) != len(given.parameters):
        return False
    arguments = dict(zip(wanted.type_parameters, parameter.arguments, strict=False))
    return all(
        left.direction == right.direction
        and left.type_ref.resolved is not None
        and right.type_ref.resolved is not None
        and unify(substitute(left.type_ref.resolved, arguments), right.type_ref.resolved, bindings)
        for left, right in zip(wanted.parameters, given.parameters, strict=True)
    )
