"""A whole program: parser states, controls, and everything that they name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from v1model.frontend import types as p4
    from v1model.frontend.ast import Annotation, Span
    from v1model.ir.control import (
        Action,
        CustomObject,
        Digest,
        ExternInstance,
        Table,
        TypeTranslation,
        ValueSet,
    )
    from v1model.ir.expressions import Expr, Var
    from v1model.ir.statements import Stmt
    from v1model.ir.types import Header, Struct


@dataclass(frozen=True, slots=True)
class State:
    """State of a parser."""

    name: str
    body: tuple[Stmt, ...]
    transition: Transition


@dataclass(frozen=True, slots=True)
class Transition:
    """Transition of a state. Cases are tried in order; each has one match (None: don't care) per expression.

    Without a match the packet is accepted, as in simple_switch (P4_16 has error.NoMatch for it). Targets are
    state names, "accept" or "reject".
    """

    expressions: tuple[Expr, ...]
    cases: tuple[tuple[tuple[SelectMatch | None, ...], str], ...]


@dataclass(frozen=True, slots=True)
class SelectMatch:
    """Match of a select: value, value/mask, low..high, a run-time expression, or a value set.

    `value_expr` is compared for equality. `value_set` covers as many expressions as it has keys: None stands
    for all but the first.
    """

    value: int = 0
    mask: int | None = None
    high: int | None = None
    value_expr: Expr | None = None
    value_set: str = ""


@dataclass(frozen=True, slots=True)
class Parser:
    """Parser with inlined sub-parsers (their states renamed); locals are initialised in the start state."""

    name: str
    locals: tuple[Var, ...]
    start: str
    states: tuple[State, ...]
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Control:
    name: str
    locals: tuple[Var, ...]
    body: tuple[Stmt, ...]
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """Program; `headers` and `metadata` are the user's two structs, `standard_metadata` is v1model's.

    `errors` and `enums` have member names in order of their indices.
    """

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
    controller_headers: tuple[
        tuple[Header, str, tuple[tuple[Annotation, ...], ...]], ...
    ]  # header, packet_in/out
    errors: tuple[str, ...]
    enums: dict[str, tuple[str, ...]] = field(default_factory=dict)
    header_annotations: dict[str, tuple[Annotation, ...]] = field(default_factory=dict)
    controller_header_types: dict[str, p4.RecordType] = field(default_factory=dict)  # by packet_in/out
    annotations: tuple[Annotation, ...] = ()  # of `main`, @pkginfo
    value_sets: tuple[ValueSet, ...] = ()
    custom_objects: tuple[CustomObject, ...] = ()
