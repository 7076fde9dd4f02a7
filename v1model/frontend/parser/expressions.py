"""Expressions by precedence climbing, argument lists, and key sets of select cases and entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend.lexer import INTEGER, RIGHT_SHIFT_HALF, STRING, Token
from v1model.frontend.parser import types
from v1model.frontend.parser.cursor import CLOSING_ANGLES, Cursor, join
from v1model.frontend.parser.rules import parses
from v1model.frontend.types import MAX_INT_BITS, MAX_WIDTH_BITS

if TYPE_CHECKING:
    from collections.abc import Callable

# Binary operators by precedence (spec section 8), all left-associative.
PRECEDENCE = {
    "||": 1, "&&": 2, "==": 3, "!=": 3, "<": 4, ">": 4, "<=": 4, ">=": 4, "|": 5, "^": 6, "&": 7,
    "<<": 8, ">>": 8, "++": 9, "+": 9, "-": 9, "|+|": 9, "|-|": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
_CLOSING_OPERATORS = frozenset({">", ">=", ">>"})
PREFIX_OPERATORS = frozenset("!~-+")
_MAX_WIDTH_DIGITS = 9


@parses
def expression(p: Cursor) -> ast.Expression:
    """Parse `binary ["?" expression ":" expression]`."""
    condition = _binary(p, 1)
    return _ternary(p, condition) if p.kind == "?" else condition


@parses
def width_expression(p: Cursor) -> ast.Expression:
    """Parse an expression between `<` and `>`: operators that begin with `>` need parentheses."""
    condition = _binary(p, 1, _CLOSING_OPERATORS)
    if not p.accept("?"):
        return condition
    then = expression(p)
    p.expect(":")
    otherwise = width_expression(p)
    return ast.Ternary(join(condition.span, otherwise.span), condition, then, otherwise)


def _ternary(p: Cursor, condition: ast.Expression) -> ast.Expression:
    p.expect("?")
    then = expression(p)
    p.expect(":")
    otherwise = expression(p)
    return ast.Ternary(join(condition.span, otherwise.span), condition, then, otherwise)


def _binary(p: Cursor, minimum: int, excluded: frozenset[str] = frozenset()) -> ast.Expression:
    """Parse operators that bind at least as tightly as `minimum`."""
    left = _prefix(p)
    while (
        (operator := _operator(p))
        and operator not in excluded
        and (precedence := PRECEDENCE[operator]) >= minimum
    ):
        p.advance()
        if operator == ">>":
            p.advance()
        right = _binary(p, precedence + 1, excluded)
        left = ast.Binary(join(left.span, right.span), operator, left, right)
    return left


def _operator(p: Cursor) -> str:
    """Return the binary operator here, or ""; `>>` is two tokens because of type arguments."""
    if p.kind == RIGHT_SHIFT_HALF:
        return ">>" if p.peek().kind in CLOSING_ANGLES else ""
    return p.kind if p.kind in PRECEDENCE else ""


def _prefix(p: Cursor) -> ast.Expression:
    """Parse `{prefix operator | "(" type ")"} postfix`."""
    start = p.span
    if p.kind in PREFIX_OPERATORS:
        operator, operand = p.advance().kind, _prefix(p)
        return ast.Unary(join(start, operand.span), operator, operand)
    if p.kind == "(" and (target := p.attempt(_cast_target)):
        operand = _prefix(p)
        return ast.Cast(join(start, operand.span), target, operand)
    return postfix(p)


def _cast_target(p: Cursor) -> ast.TypeRef:
    """Parse `"(" typeRef ")"`, and fail for `(T.member)` and `(T(...))`."""
    p.expect("(")
    if not types.at_type(p):
        p.fail("expected a type")
    target = types.type_ref(p)
    p.expect(")")
    return target


def postfix(p: Cursor) -> ast.Expression:
    """Parse a primary and its postfixes: `.member`, `[index]`, `[high:low]`, `[low+:width]`, `(arguments)`.

    A call may have type arguments, as in `f<T>(...)`.
    """
    found = _primary(p)
    while True:
        if p.kind == ".":
            p.advance()
            name = p.name("the name of a member")
            found = ast.Member(join(found.span, name.span), found, name.text)
        elif p.kind == "[":
            found = _index_or_slice(p, found)
        elif p.kind == "(":
            found = ast.Call(found.span, found, argument_list(p))
        elif (
            p.kind == "<"
            and isinstance(found, ast.Name | ast.Member)
            and (type_arguments := p.attempt(_call_type_arguments))
        ):
            found = ast.Call(found.span, found, argument_list(p), type_arguments)
        else:
            return found


def _call_type_arguments(p: Cursor) -> list[ast.TypeRef]:
    """Parse the type arguments of a call; fails if `<` means less than."""
    p.expect("<")
    if not (types.at_type(p) or p.kind in ("_", "void")):
        p.fail("expected a type")
    found = types.type_argument_list(p)
    if p.kind != "(":
        p.fail("expected the arguments of a call")
    return found


def _index_or_slice(p: Cursor, base: ast.Expression) -> ast.Expression:
    p.expect("[")
    first = expression(p)
    if p.accept(":"):
        low = expression(p)
        p.expect("]")
        return ast.Slice(p.span_from(base.span), base, first, low)
    if p.accept("+:"):
        width = expression(p)
        p.expect("]")
        return ast.Slice(p.span_from(base.span), base, width, first, is_indexed=True)
    p.expect("]")
    return ast.Index(p.span_from(base.span), base, first)


def _primary(p: Cursor) -> ast.Expression:
    if rule := _PRIMARIES.get(p.kind):
        return rule(p)
    if types.at_type(p):
        return _type_prefix(p)
    if p.kind != "." and not p.at_name():
        p.fail("expected an expression")
    start, absolute = p.span, p.accept(".")
    token = p.name()
    return ast.Name(join(start, token.span), token.text, absolute)


def _parenthesised(p: Cursor) -> ast.Expression:
    p.expect("(")
    found = expression(p)
    p.expect(")")
    return found


def _type_prefix(p: Cursor) -> ast.Expression:
    """Parse a type that is followed by a member, constructor arguments or a struct's fields."""
    if p.kind == "error":
        token = p.advance()
        ref: ast.TypeRef = ast.BaseTypeRef(token.span, "error")
    elif p.at_type_name():
        ref = types.named_type(p)
    else:
        ref = types.type_ref(p)
    if p.kind not in (".", "("):
        p.fail(f"expected '.' or '(' after the type {p.tokens[p.position - 1].text!r}")
    return ast.TypeName(ref.span, ref)


def _braces(p: Cursor) -> ast.Expression:
    """Parse `{a, b}`, `{f = a}` or `{#}`; the first two may end with `...` or a comma."""
    start = p.expect("{").span
    if p.accept("#"):
        p.expect("}")
        return ast.InvalidExpression(p.span_from(start))
    if p.at_name() and p.peek().kind == "=":
        return _struct_fields(p, start)
    elements = p.separated(expression, "}", trailing_comma=True)
    has_rest = bool(elements) and _is_dots(elements[-1])
    found = ast.ListExpression(p.span_from(start), elements[:-1] if has_rest else elements, has_rest)
    _refuse_inner_dots(found.elements)
    return found


def _struct_fields(p: Cursor, start: ast.Span) -> ast.StructExpression:
    fields: dict[str, ast.Expression] = {}
    has_rest = False
    while p.kind != "}" and not has_rest:
        if p.accept("..."):
            has_rest = True
        else:
            name = p.name("the name of a field")
            if name.text in fields:
                raise CompileError(f"field {name.text!r} is given twice", name.span)
            p.expect("=")
            fields[name.text] = expression(p)
        if not p.accept(","):
            break
    p.expect("}")
    return ast.StructExpression(p.span_from(start), fields, has_rest=has_rest)


def _is_dots(found: ast.Expression) -> bool:
    return isinstance(found, ast.DefaultExpression)


def _refuse_inner_dots(elements: list[ast.Expression]) -> None:
    for element in elements:
        if _is_dots(element):
            raise CompileError("'...' must be the last element", element.span)


def _dots(p: Cursor) -> ast.Expression:
    return ast.DefaultExpression(p.advance().span)


def _integer(p: Cursor) -> ast.Expression:
    return integer_literal(p.advance())


def integer_literal(token: Token) -> ast.IntLiteral:
    """Return the literal, whose value wraps to the stated width, as in p4c (which warns)."""
    text = token.text.replace("_", "").lower()
    prefix = next((letter for letter in "ws" if letter in text), None)
    width: int | None = None
    if prefix:
        size, text = text.split(prefix)
        width = int(size[:_MAX_WIDTH_DIGITS])  # more digits are too wide in any case
    base = {"0x": 16, "0d": 10, "0o": 8, "0b": 2}.get(text[:2], 10)
    digits = text[2:] if text[:2] in ("0x", "0d", "0o", "0b") else text
    if not digits:
        raise CompileError("this number has no digits", token.span)
    try:
        value = int(digits, base)
    except ValueError:
        raise CompileError("this number has too many digits", token.span, "write it in hexadecimal") from None
    return _sized_literal(token, value, width, prefix == "s", base)


def _sized_literal(token: Token, value: int, width: int | None, signed: bool, base: int) -> ast.IntLiteral:
    if width is not None:
        if width > MAX_WIDTH_BITS:
            raise CompileError(f"a width of at most {MAX_WIDTH_BITS} bits is supported", token.span)
        value &= (1 << width) - 1
        if signed and width and value >> (width - 1):
            value -= 1 << width
    elif value.bit_length() > MAX_INT_BITS:
        raise CompileError(f"this number has more than {MAX_INT_BITS} bits", token.span)
    return ast.IntLiteral(token.span, value, width, signed, base)


def _string(p: Cursor) -> ast.Expression:
    token = p.advance()
    return ast.StringLiteral(token.span, token.text[1:-1].replace('\\"', '"').replace("\\\\", "\\"))


def _boolean(p: Cursor) -> ast.Expression:
    token = p.advance()
    return ast.BoolLiteral(token.span, token.kind == "true")


def _this(p: Cursor) -> ast.Expression:
    return ast.Name(p.advance().span, "this")


_PRIMARIES: dict[str, Callable[[Cursor], ast.Expression]] = {
    INTEGER: _integer,
    STRING: _string,
    "true": _boolean,
    "false": _boolean,
    "this": _this,
    "...": _dots,
    "{": _braces,
    "(": _parenthesised,
}


# --- arguments ---------------------------------------------------------------------------


def argument_list(p: Cursor) -> list[ast.Argument]:
    """Parse `"(" [argument {"," argument}] ")"`."""
    p.expect("(")
    return p.separated(_argument, ")")


def _argument(p: Cursor) -> ast.Argument:
    start, name = p.span, None
    if p.at_name() and p.peek().kind == "=":
        name = p.name().text
        p.advance()
    if p.accept("_"):
        return ast.Argument(start, None, name)
    value = expression(p)
    return ast.Argument(value.span, value, name)


# --- key sets ----------------------------------------------------------------------------


def keyset(p: Cursor) -> list[ast.Expression]:
    """Parse the keys of a select case or entry: one, or several in parentheses."""
    if p.kind == "(" and (keys := p.attempt(_tuple_keyset)):
        return keys
    return [simple_keyset(p)]


def _tuple_keyset(p: Cursor) -> list[ast.Expression]:
    """Parse `"(" key {"," key} ")"`, and fail at an expression that only begins so, such as `(a) + b`."""
    p.expect("(")
    keys = p.separated(simple_keyset, ")")
    if p.kind != ":" or not keys:
        p.fail("expected ':'")
    return keys


def simple_keyset(p: Cursor) -> ast.Expression:
    """Parse `expression [("&&&" | "..") expression] | default | _`."""
    if p.kind in ("default", "_"):
        return ast.DefaultExpression(p.advance().span)
    left = expression(p)
    if p.kind in ("&&&", ".."):
        operator, right = p.advance().kind, expression(p)
        return ast.Binary(join(left.span, right.span), operator, left, right)
    return left
