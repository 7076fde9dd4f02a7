"""Statements of the IR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from v1model.frontend.ast import Span
    from v1model.ir.expressions import Const, Expr, Var
    from v1model.ir.types import Header


@dataclass(frozen=True, slots=True)
class Assign:
    """Assignment by value; structs, headers, unions and stacks are assigned as a whole.

    Headers include their validity and stacks nextIndex. `target` is Var, Member, Index, StackNext, StackLast,
    or Slice of one.
    """

    target: Expr
    value: Expr


@dataclass(frozen=True, slots=True)
class SetValid:
    """setValid or setInvalid of a header; setValid of a union's member invalidates the others."""

    header: Expr
    valid: bool


@dataclass(frozen=True, slots=True)
class If:
    condition: Expr
    then: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...] = ()


@dataclass(frozen=True, slots=True)
class Switch:
    """Switch; `cases` are (values, body) without fall-through. `default` comes last, possibly empty."""

    subject: Expr
    cases: tuple[tuple[tuple[Const, ...], tuple[Stmt, ...]], ...]
    default: tuple[Stmt, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """Block of statements; `Leave(label)` inside jumps behind it. Labels are unique in a program block."""

    label: str
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Leave:
    label: str


@dataclass(frozen=True, slots=True)
class Loop:
    """Loop that ends with a Leave of an enclosing Block; the back end bounds it against hostile input."""

    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Extract:
    """packet.extract; `target` may be StackNext (advances nextIndex).

    `varbit_bits` is for the two-argument form. A target of None skips a header of type `header`
    (`extract(_)`).
    """

    target: Expr | None
    header: Header
    varbit_bits: Expr | None = None


@dataclass(frozen=True, slots=True)
class Advance:
    bits: Expr


@dataclass(frozen=True, slots=True)
class Verify:
    """verify(condition, error): if false, parser_error = error and the parser rejects."""

    condition: Expr
    error: Expr


@dataclass(frozen=True, slots=True)
class Emit:
    """packet.emit of a header, stack, union or struct: valid headers are appended."""

    value: Expr


@dataclass(frozen=True, slots=True)
class Shift:
    """push_front (count > 0) or pop_front (count < 0) of a stack."""

    stack: Expr
    count: int


@dataclass(frozen=True, slots=True)
class ApplyTable:
    """Application of a table.

    `hit` (Bool) and `action` (Bits(32): index into table.actions) are variables to set, or None.
    """

    table: str
    hit: Var | None = None
    action: Var | None = None


@dataclass(frozen=True, slots=True)
class ExternCall:
    """Call of a v1model extern.

    `instance` names an ExternInstance, for digest the Digest, or is "" for any other function.

    `name` is the method or function as in v1model.p4: read write count execute_meter mark_to_drop
    hash random digest clone clone3 clone_preserving_field_list resubmit
    resubmit_preserving_field_list recirculate recirculate_preserving_field_list truncate
    verify_checksum update_checksum verify_checksum_with_payload update_checksum_with_payload
    log_msg assert assume. Arguments in the order of v1model.p4; `out` arguments are l-values.
    resubmit<T>(data), clone3 and recirculate<T>(data) keep the l-values listed in data (structs are
    given as they are), which is no longer among `arguments`. The *_preserving_field_list forms have
    arguments (..., Const index), and in `kept` the l-values of metadata annotated @field_list(index).
    """

    instance: str
    name: str
    arguments: tuple[Expr, ...]
    kept: tuple[Expr, ...] = ()
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class CustomCall:
    """Call of an extern that the user has written in C.

    It calls `function`, or the method `function` of the object `instance`. Arguments are Bits or Bool, each
    with whether it is written; `result` is a variable or None.
    """

    function: str
    arguments: tuple[tuple[Expr, bool], ...]
    result: Var | None = None
    instance: str = ""
    span: Span | None = None


Stmt = (
    Assign
    | SetValid
    | If
    | Switch
    | Block
    | Leave
    | Loop
    | Extract
    | Advance
    | Verify
    | Emit
    | Shift
    | ApplyTable
    | ExternCall
    | CustomCall
)
