"""The IR: a v1model program after elaboration and inlining. What the back end compiles, P4Info
describes and the P4Runtime server controls.

No generics, no names to resolve, no sub-parsers, sub-controls, functions or instances left: six
blocks (parser, verify checksum, ingress, egress, compute checksum, deparser), each one flat body
over its locals and three shared variables, plus the tables, actions and extern instances that
the control plane sees. `exit` and `return` have become `Leave` of a labelled `Block`;
copy-in/copy-out has become assignments, so an IR statement never has an aliasing surprise.

Values are P4's: bit<N> wraps modulo 2**N, int<N> is two's complement, shifts by N or more give 0
(or the sign), a read of an invalid header yields an unspecified value (we: what was last there, or 0).
`error` and enums without an underlying type are Bits(32): the member's index in order of declaration.
"""

from v1model.ir.control import (
    Action,
    ActionCall,
    ActionParam,
    ConstEntry,
    Digest,
    ExternInstance,
    Key,
    KeyMatch,
    Table,
    TableAction,
    TypeTranslation,
)
from v1model.ir.expressions import (
    Aggregate,
    Binary,
    Cast,
    Const,
    Expr,
    Index,
    IsValid,
    Lookahead,
    Member,
    PacketLength,
    Slice,
    StackLast,
    StackLastIndex,
    StackNext,
    Ternary,
    Unary,
    Var,
)
from v1model.ir.program import Control, Parser, Program, SelectMatch, State, Transition
from v1model.ir.statements import (
    Advance,
    ApplyTable,
    Assign,
    Block,
    Emit,
    ExternCall,
    Extract,
    If,
    Leave,
    Loop,
    SetValid,
    Shift,
    Stmt,
    Switch,
    Verify,
)
from v1model.ir.types import Bits, Bool, Header, Stack, String, Struct, Type, Union, Varbit

__all__ = [
    "Action",
    "ActionCall",
    "ActionParam",
    "Advance",
    "Aggregate",
    "ApplyTable",
    "Assign",
    "Binary",
    "Bits",
    "Block",
    "Bool",
    "Cast",
    "Const",
    "ConstEntry",
    "Control",
    "Digest",
    "Emit",
    "Expr",
    "ExternCall",
    "ExternInstance",
    "Extract",
    "Header",
    "If",
    "Index",
    "IsValid",
    "Key",
    "KeyMatch",
    "Leave",
    "Lookahead",
    "Loop",
    "Member",
    "PacketLength",
    "Parser",
    "Program",
    "SelectMatch",
    "SetValid",
    "Shift",
    "Slice",
    "Stack",
    "StackLast",
    "StackLastIndex",
    "StackNext",
    "State",
    "Stmt",
    "String",
    "Struct",
    "Switch",
    "Table",
    "TableAction",
    "Ternary",
    "Transition",
    "Type",
    "TypeTranslation",
    "Unary",
    "Union",
    "Var",
    "Varbit",
    "Verify",
]
