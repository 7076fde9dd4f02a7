"""Control-plane names of keys without @name, made from the expression as in p4c."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend import types as t
from v1model.midend.scope import name_annotation

if TYPE_CHECKING:
    from v1model.midend.frame import Frame


def key_name(frame: Frame, node: ast.Expression) -> str:
    """Return the name of a key, such as `hdr.ipv4.dst`, `hdr.ipv4.$valid$` or `meta.x[7:0]`."""
    match node:
        case ast.Name(name=name):
            return name
        case ast.Member(base=base, member=member):
            return _member_name(frame, base, member)
        case ast.Index(base=base, index=index):
            return f"{key_name(frame, base)}[{key_name(frame, index)}]"
        case ast.Slice(base=base, high=high, low=low):
            return f"{key_name(frame, base)}[{key_name(frame, high)}:{key_name(frame, low)}]"
        case ast.Binary(operator="&", left=left, right=right):
            return f"{key_name(frame, left)} & {key_name(frame, right)}"
        case ast.Call(callee=ast.Member(base=base, member="isValid")):
            return f"{key_name(frame, base)}.$valid$"
        case ast.Cast(operand=operand):
            return key_name(frame, operand)
        case ast.IntLiteral(value=value, base=base):
            return format(value, {16: "#x", 8: "#o", 2: "#b"}.get(base, "d"))
        case _:
            raise CompileError("a key this complex needs a @name annotation", node.span)


def _member_name(frame: Frame, base: ast.Expression, member: str) -> str:
    """Return base.member with the member's own @name, which replaces all of it if it is absolute."""
    own = member
    if base.type is not None:
        type_ = frame.type_of(base)
        if isinstance(type_, t.RecordType):
            field = next((f for f in type_.declaration.fields if f.name == member), None)
            own = (name_annotation(field.annotations) if field else "") or member
    if own.startswith("."):
        return own[1:]
    return f"{key_name(frame, base)}.{own}"
