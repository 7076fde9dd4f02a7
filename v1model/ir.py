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

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from v1model.frontend import types
    from v1model.frontend.ast import Annotation, Span

# --- types -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bits:
    """bit<width> or int<width>; width 0 is allowed and holds only 0."""

    width: int
    signed: bool = False


@dataclass(frozen=True, slots=True)
class Bool:
    pass


@dataclass(frozen=True, slots=True)
class String:
    """Only in the arguments of log_msg and friends."""


@dataclass(frozen=True, slots=True)
class Varbit:
    max_width: int


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct or (with fields f0, f1 ...) a tuple. Names are unique per distinct type in a program."""

    name: str
    fields: tuple[tuple[str, Type], ...]


@dataclass(frozen=True, slots=True)
class Header:
    """Fields are Bits, Bool, Varbit or Struct of those; validity is implicit."""

    name: str
    fields: tuple[tuple[str, Type], ...]


@dataclass(frozen=True, slots=True)
class Union:
    """A header union: at most one member is valid."""

    name: str
    fields: tuple[tuple[str, Header], ...]


@dataclass(frozen=True, slots=True)
class Stack:
    """`size` headers or unions and the implicit nextIndex."""

    element: Header | Union
    size: int


Type = Bits | Bool | String | Varbit | Struct | Header | Union | Stack

# --- expressions (free of side effects) --------------------------------------------------


@dataclass(frozen=True, slots=True)
class Const:
    value: int | str  # Bool: 0 or 1
    type: Type


@dataclass(frozen=True, slots=True)
class Var:
    """A local of the block, a parameter of the running action, or one of the shared variables
    `headers`, `metadata`, `standard_metadata` (as the IR names them, whatever the user did)."""

    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Member:
    base: Expr
    field: str
    type: Type


@dataclass(frozen=True, slots=True)
class Index:
    """stack[index]: a read out of range yields an unspecified element, a write is ignored."""

    base: Expr
    index: Expr
    type: Type


@dataclass(frozen=True, slots=True)
class StackNext:
    """stack.next in a parser: out of range raises error.StackOutOfBounds (parser only)."""

    base: Expr
    type: Type


@dataclass(frozen=True, slots=True)
class StackLast:
    base: Expr
    type: Type


@dataclass(frozen=True, slots=True)
class StackLastIndex:
    base: Expr
    type: Type = Bits(32)


@dataclass(frozen=True, slots=True)
class Slice:
    """base[high:low]; also a target of Assign."""

    base: Expr
    high: int
    low: int
    type: Type


@dataclass(frozen=True, slots=True)
class IsValid:
    """Of a header or a header union."""

    base: Expr
    type: Type = Bool()


@dataclass(frozen=True, slots=True)
class Unary:
    operator: str  # ! ~ -
    operand: Expr
    type: Type


@dataclass(frozen=True, slots=True)
class Binary:
    """+ - * / % |+| |-| & | ^ && || == != < <= > >= << >> ++; && and || short-circuit.

    == and != also compare structs, headers (both invalid, or both valid with equal fields),
    stacks and varbits."""

    operator: str
    left: Expr
    right: Expr
    type: Type


@dataclass(frozen=True, slots=True)
class Ternary:
    condition: Expr
    then: Expr
    otherwise: Expr
    type: Type


@dataclass(frozen=True, slots=True)
class Cast:
    """Between Bits of any widths and signs (truncate, zero- or sign-extend by the operand's sign),
    Bits(1) and Bool."""

    operand: Expr
    type: Type


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A struct, tuple or (then valid) header value from one expression per field, in order;
    for a Stack one per element (the rest invalid). InvalidHeader is Aggregate with valid False."""

    values: tuple[Expr, ...]
    type: Type
    valid: bool = True


@dataclass(frozen=True, slots=True)
class Lookahead:
    """packet.lookahead<T>(): parser only; too short raises error.PacketTooShort."""

    type: Type


@dataclass(frozen=True, slots=True)
class PacketLength:
    """packet.length(), in bytes: parser only."""

    type: Type = Bits(32)


Expr = (
    Const
    | Var
    | Member
    | Index
    | StackNext
    | StackLast
    | StackLastIndex
    | Slice
    | IsValid
    | Unary
    | Binary
    | Ternary
    | Cast
    | Aggregate
    | Lookahead
    | PacketLength
)

# --- statements --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Assign:
    """target is Var, Member, Index, StackNext/StackLast or Slice of one; whole structs, headers
    (with their validity), unions and stacks (with nextIndex) are assigned by value."""

    target: Expr
    value: Expr


@dataclass(frozen=True, slots=True)
class SetValid:
    """setValid / setInvalid of a header; of a union's member it invalidates the others."""

    header: Expr
    valid: bool


@dataclass(frozen=True, slots=True)
class If:
    condition: Expr
    then: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...] = ()


@dataclass(frozen=True, slots=True)
class Switch:
    """cases: (values, body); fall-through has been resolved; default last, possibly empty."""

    subject: Expr
    cases: tuple[tuple[tuple[Const, ...], tuple[Stmt, ...]], ...]
    default: tuple[Stmt, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """`Leave(label)` inside jumps behind it. Labels are unique in a program block."""

    label: str
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Leave:
    label: str


@dataclass(frozen=True, slots=True)
class Loop:
    """Repeats until a Leave of an enclosing Block; the back end bounds it against hostile input."""

    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Extract:
    """packet.extract: target may be StackNext (advances nextIndex); `varbit_bits` for the two-argument
    form. A target of None skips over a header of type `header` (`extract(_)`)."""

    target: Expr | None
    header: Header
    varbit_bits: Expr | None = None


@dataclass(frozen=True, slots=True)
class Advance:
    bits: Expr


@dataclass(frozen=True, slots=True)
class Verify:
    """verify(condition, error): when false, parser_error = error and the parser rejects."""

    condition: Expr
    error: Expr


@dataclass(frozen=True, slots=True)
class Emit:
    """packet.emit of a header, stack, union or struct: what is valid is appended."""

    value: Expr


@dataclass(frozen=True, slots=True)
class Shift:
    """push_front (count > 0) or pop_front (count < 0) of a stack."""

    stack: Expr
    count: int


@dataclass(frozen=True, slots=True)
class ApplyTable:
    """`hit` (Bool) and `action` (Bits(32): index into table.actions) are variables to set, or None."""

    table: str
    hit: Var | None = None
    action: Var | None = None


@dataclass(frozen=True, slots=True)
class ExternCall:
    """A v1model extern. `instance` names an ExternInstance, for digest the Digest, or is "" for any
    other function.

    `name` is the method or function as in v1model.p4: read write count execute_meter mark_to_drop
    hash random digest clone clone3 clone_preserving_field_list resubmit
    resubmit_preserving_field_list recirculate recirculate_preserving_field_list truncate
    verify_checksum update_checksum verify_checksum_with_payload update_checksum_with_payload
    log_msg assert assume. Arguments in the order of v1model.p4; `out` arguments are l-values.
    resubmit<T>(data), clone3 and recirculate<T>(data) keep the l-values listed in data (structs are
    given as they are), which is no longer among `arguments`; the *_preserving_field_list forms have their field list already expanded by
    the middle end: arguments (..., Const index) plus `kept`: the l-values of metadata annotated
    @field_list(index).
    """

    instance: str
    name: str
    arguments: tuple[Expr, ...]
    kept: tuple[Expr, ...] = ()
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
)

# --- what the control plane sees -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ActionParam:
    """A parameter that the control plane gives. `type_name` for P4Info when it is a `type` (NewType);
    `p4_type`, here and below, is the type in the source, for P4Info's type specifications."""

    name: str
    type: Bits
    type_name: str = ""
    annotations: tuple[Annotation, ...] = ()
    p4_type: types.Type | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """`name` is the control plane's fully qualified name (`ingress.forward`, `NoAction`)."""

    name: str
    params: tuple[ActionParam, ...]
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True, slots=True)
class TableAction:
    """An action in a table: its body here, with directional arguments bound and inlined.
    In `body` the action's control-plane parameters are Var("$" + parameter name)."""

    action: str
    body: tuple[Stmt, ...]
    default_only: bool = False
    table_only: bool = False
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True, slots=True)
class Key:
    """match_kind: exact lpm ternary range optional selector. `name` as P4Info has it.
    `type_name` for P4Info when the expression has a `type` (NewType)."""

    expression: Expr
    match_kind: str
    name: str
    type_name: str = ""
    annotations: tuple[Annotation, ...] = ()
    p4_type: types.Type | None = None


@dataclass(frozen=True, slots=True)
class KeyMatch:
    """One field of an entry: exact value; lpm value/prefix_length; ternary value/mask; range low/high.
    None in an entry's tuple stands for "don't care". Numbers are unsigned bit patterns."""

    value: int
    mask: int | None = None
    prefix_length: int | None = None
    high: int | None = None


@dataclass(frozen=True, slots=True)
class ActionCall:
    """Arguments in the order of the action's parameters, as unsigned bit patterns."""

    action: str
    arguments: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ConstEntry:
    """An entry in the source. priority: bigger wins, as in P4Runtime; None where keys need none."""

    matches: tuple[KeyMatch | None, ...]
    action: ActionCall
    priority: int | None
    is_const: bool


@dataclass(frozen=True, slots=True)
class Table:
    """`direct`: names of the direct counters and meters attached. `implementation`: an action
    profile's or selector's name. size 0: none given (P4Info then says 1024)."""

    name: str
    keys: tuple[Key, ...]
    actions: tuple[TableAction, ...]
    default_action: ActionCall
    default_is_const: bool
    entries: tuple[ConstEntry, ...] = ()
    entries_are_const: bool = False
    size: int = 0
    direct: tuple[str, ...] = ()
    implementation: str = ""
    idle_timeout: bool = False
    meter_target: Expr | None = None  # direct_meter.read(result) target, set before the action runs
    annotations: tuple[Annotation, ...] = ()
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class ExternInstance:
    """kind: register counter direct_counter meter direct_meter action_profile action_selector.

    register: `value_type`, `size`. counter, meter: `size`, `unit` (packets bytes packets_and_bytes).
    action_profile: `size`. action_selector: `size`, `algorithm`, `output_width`.
    """

    kind: str
    name: str
    size: int = 0
    unit: str = ""
    value_type: Type | None = None
    algorithm: str = ""
    output_width: int = 0
    annotations: tuple[Annotation, ...] = ()
    span: Span | None = None
    p4_types: tuple[types.Type, ...] = ()  # type arguments: of register<T, I>, counter<I> ...


@dataclass(frozen=True, slots=True)
class Digest:
    """A `digest<T>` in the program; `type` a Struct (or one Bits). `name` as in P4Info."""

    name: str
    type: Type
    p4_type: types.Type | None = None


@dataclass(frozen=True, slots=True)
class TypeTranslation:
    """A `type` (NewType) with @p4runtime_translation, or without (uri "")."""

    name: str
    type: Type
    uri: str = ""
    sdn_bits: int | None = None
    sdn_string: bool = False


# --- the program -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class State:
    """`next`: an expression-less target, or a Switch-like list of cases tried in order."""

    name: str
    body: tuple[Stmt, ...]
    transition: Transition


@dataclass(frozen=True, slots=True)
class Transition:
    """Cases are tried in order; each has one KeyMatch (None: don't care) per expression; no match:
    error.NoMatch and reject. Targets are state names, "accept" or "reject"."""

    expressions: tuple[Expr, ...]
    cases: tuple[tuple[tuple[SelectMatch | None, ...], str], ...]


@dataclass(frozen=True, slots=True)
class SelectMatch:
    """value, value/mask or low..high; or a run-time `value_expr` compared for equality."""

    value: int = 0
    mask: int | None = None
    high: int | None = None
    value_expr: Expr | None = None


@dataclass(frozen=True, slots=True)
class Parser:
    """Sub-parsers are inlined (their states renamed); locals are initialised in the start state."""

    name: str
    locals: tuple[Var, ...]
    start: str
    states: tuple[State, ...]


@dataclass(frozen=True, slots=True)
class Control:
    name: str
    locals: tuple[Var, ...]
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """`headers` and `metadata` are the user's two structs; `standard_metadata` is v1model's.
    `errors` and `enums` map names to member names in order of their indices."""

    name: str
    headers: Struct
    metadata: Struct
    standard_metadata: Struct
    parser: Parser
    verify_checksum: Control
    ingress: Control
    egress: Control
    compute_checksum: Control
    deparser: Control
    tables: tuple[Table, ...]  # in P4Info's order; ingress and egress
    actions: tuple[Action, ...]  # those that tables have, or that a control's body calls
    externs: tuple[ExternInstance, ...]
    digests: tuple[Digest, ...]
    translations: tuple[TypeTranslation, ...]
    controller_headers: tuple[tuple[Header, str, tuple[tuple[Annotation, ...], ...]], ...]  # header, packet_in/out
    errors: tuple[str, ...]
    enums: dict[str, tuple[str, ...]] = field(default_factory=dict)
    header_annotations: dict[str, tuple[Annotation, ...]] = field(default_factory=dict)
    controller_header_types: dict[str, types.RecordType] = field(default_factory=dict)  # by packet_in/out
    annotations: tuple[Annotation, ...] = ()  # of `main`, @pkginfo
