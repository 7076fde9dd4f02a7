"""Types as text for messages."""

from __future__ import annotations

from v1model.frontend import ast
from v1model.frontend.types import (
    BitType,
    BoolType,
    DeclaredType,
    EnumType,
    ErrorType,
    IntegerType,
    ListType,
    MatchKindType,
    NewType,
    RecordType,
    SetType,
    StackType,
    StringType,
    TupleType,
    Type,
    TypeVariable,
    VarbitType,
    VoidType,
)

_PLAIN: dict[type[Type], str] = {
    BoolType: "bool",
    StringType: "string",
    VoidType: "void",
    ErrorType: "error",
    MatchKindType: "match_kind",
    IntegerType: "int",
}

_DECLARED: dict[type[ast.Declaration], str] = {
    ast.TableDeclaration: "table ",
    ast.ActionDeclaration: "action ",
    ast.FunctionDeclaration: "function ",
    ast.ParserDeclaration: "parser ",
    ast.ControlDeclaration: "control ",
    ast.PackageDeclaration: "package ",
}


def show(found: Type | None) -> str:
    """Return a type in P4's syntax."""
    match found:
        case None:
            return "nothing"
        case BitType(width, signed):
            return f"{'int' if signed else 'bit'}<{width}>"
        case VarbitType(width):
            return f"varbit<{width}>"
        case TupleType(elements):
            return f"tuple<{_list(elements)}>"
        case ListType(element):
            return f"list<{show(element)}>"
        case SetType(element):
            return f"set<{show(element)}>"
        case RecordType():
            return f"{found.kind} {found.name}" if found.name else _anonymous(found)
        case StackType(element, size):
            return f"{show(element)}[{size}]"
        case EnumType() | NewType() | TypeVariable():
            return found.name.split("#", 1)[0]
        case DeclaredType(declaration, arguments):
            text = _DECLARED.get(type(declaration), "") + declaration.name
            return f"{text}<{_list(arguments)}>" if arguments else text
    return _PLAIN[type(found)]


def _list(types: tuple[Type, ...]) -> str:
    return ", ".join(show(element) for element in types)


def _anonymous(record: RecordType) -> str:
    return "{" + ", ".join(f"{name} = {show(kind)}" for name, kind in record.fields) + "}"
