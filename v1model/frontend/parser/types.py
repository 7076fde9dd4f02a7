"""Types as written: typeRef, typeArguments, typeParameters."""

from __future__ import annotations

from v1model.frontend import ast
from v1model.frontend.lexer import IDENTIFIER
from v1model.frontend.parser import rules
from v1model.frontend.parser.cursor import CLOSING_ANGLES, Cursor

SIZED_TYPES = frozenset({"bit", "int", "varbit"})
BASE_TYPES = SIZED_TYPES | {"bool", "error", "string", "match_kind"}
TYPE_KEYWORDS = BASE_TYPES | {"tuple", "list"}


def at_type(p: Cursor) -> bool:
    """Return whether a type starts here. `list` is a type only with arguments; `error.` is an expression."""
    if p.kind == "list":
        return p.peek().kind == "<"
    return p.kind in TYPE_KEYWORDS or p.at_type_name()


def type_ref(p: Cursor) -> ast.TypeRef:
    """Parse `baseType | typeName [typeArguments] | tuple<...> | list<T>`, then `{"[" size "]"}`."""
    start = p.span
    if p.kind in BASE_TYPES:
        found: ast.TypeRef = _base_type(p)
    elif p.kind in ("tuple", "list"):
        is_list = p.advance().kind == "list"
        found = ast.TupleTypeRef(start, type_arguments(p), is_list)
    elif p.at_type_name():
        found = named_type(p)
    elif p.kind == IDENTIFIER:
        p.fail("expected a type", "a type must be declared before it is used", missing=p.token.text)
    else:
        p.fail("expected a type")
    found.span = p.span_from(start)
    return array_type(p, found)


def array_type(p: Cursor, element: ast.TypeRef) -> ast.TypeRef:
    """Parse `{"[" size "]"}` after a type or a declared name; returns the type with these sizes."""
    while p.accept("["):
        size = rules.size(p)
        p.expect("]")
        element = ast.StackTypeRef(p.span_from(element.span), element, size)
    return element


def named_type(p: Cursor) -> ast.NamedTypeRef:
    """Parse `[.] name [typeArguments]`."""
    start, absolute = p.span, p.accept(".")
    found = ast.NamedTypeRef(start, p.name("the name of a type").text, absolute=absolute)
    if p.kind == "<":
        found.arguments = type_arguments(p)
    found.span = p.span_from(start)
    return found


def type_or_void(p: Cursor) -> ast.TypeRef:
    """Parse a return type; it may be a type parameter that is declared after it (`T f<T>()`)."""
    if p.kind == "void":
        return ast.BaseTypeRef(p.advance().span, "void")
    if p.kind == IDENTIFIER and not p.is_type(p.token.text):
        return array_type(p, ast.NamedTypeRef(p.span, p.advance().text))
    return type_ref(p)


def type_arguments(p: Cursor) -> list[ast.TypeRef]:
    """Parse `"<" [typeArg {"," typeArg}] ">"`."""
    p.expect("<")
    return type_argument_list(p)


def type_argument_list(p: Cursor) -> list[ast.TypeRef]:
    """Parse `[typeArg {"," typeArg}] ">"`."""
    found: list[ast.TypeRef] = []
    while p.kind not in CLOSING_ANGLES:
        found.append(type_argument(p))
        if not p.accept(","):
            break
    p.expect_close_angle()
    return found


def type_argument(p: Cursor) -> ast.TypeRef:
    if p.kind == "_":
        return ast.NamedTypeRef(p.advance().span, "_")
    return type_or_void(p)


def type_parameters(p: Cursor) -> list[str]:
    """Parse `["<" name {"," name} ">"]`, and declare the names as types in the present scope."""
    found: list[str] = []
    if not p.accept("<"):
        return found
    while True:
        found.append(p.name("a type parameter").text)
        p.declare(found[-1], is_type=True)
        if not p.accept(","):
            break
    p.expect_close_angle()
    return found


def _base_type(p: Cursor) -> ast.BaseTypeRef:
    token = p.advance()
    found = ast.BaseTypeRef(token.span, token.kind)
    if token.kind in SIZED_TYPES and p.accept("<"):
        found.width = rules.width(p)
        p.expect_close_angle()
    elif token.kind == "varbit":
        p.fail("expected '<' and the largest width of the varbit")
    return found
