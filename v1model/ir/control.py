"""The control plane's view of a program: tables, actions, extern instances, digests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from v1model.frontend import types as p4
    from v1model.frontend.ast import Annotation, Span
    from v1model.ir.expressions import Const, Expr
    from v1model.ir.statements import Stmt
    from v1model.ir.types import Bits, Type


@dataclass(frozen=True, slots=True)
class ActionParam:
    """Parameter that the control plane gives.

    `type_name` is for P4Info if it is a `type` (NewType). `p4_type`, here and below, is the type in the
    source, for P4Info's type specifications.
    """

    name: str
    type: Bits
    type_name: str = ""
    annotations: tuple[Annotation, ...] = ()
    p4_type: p4.Type | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """Action; `name` is the control plane's fully qualified name (`ingress.forward`, `NoAction`)."""

    name: str
    params: tuple[ActionParam, ...]
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True, slots=True)
class TableAction:
    """An action in a table: its body here, with directional arguments bound and inlined.

    In `body` the action's control-plane parameters are Var("$" + parameter name).
    """

    action: str
    body: tuple[Stmt, ...]
    default_only: bool = False
    table_only: bool = False
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True, slots=True)
class Key:
    """Key of a table, with `name` as in P4Info.

    `match_kind` is exact, lpm, ternary, range, optional or selector. `type_name` is for P4Info if the
    expression has a `type` (NewType).
    """

    expression: Expr
    match_kind: str
    name: str
    type_name: str = ""
    annotations: tuple[Annotation, ...] = ()
    p4_type: p4.Type | None = None


class KeyMatch(NamedTuple):
    """One field of an entry: exact value; lpm value/prefix_length; ternary value/mask; range low/high.

    None in an entry's tuple means "don't care". Numbers are unsigned bit patterns.
    """

    value: int
    mask: int | None = None
    prefix_length: int | None = None
    high: int | None = None


class ActionCall(NamedTuple):
    """Action with arguments in the order of its parameters, as unsigned bit patterns."""

    action: str
    arguments: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ConstEntry:
    """Entry in the source. A higher `priority` wins, as in P4Runtime; it is None if the keys need none."""

    matches: tuple[KeyMatch | None, ...]
    action: ActionCall
    priority: int | None
    is_const: bool


@dataclass(frozen=True, slots=True)
class Table:
    """Table of a program. A `size` of 0 means that none was given (P4Info then says 1024).

    `direct` has the names of the attached direct counters and meters. `implementation` is an action profile's
    or selector's name.
    """

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
class ValueSet:
    """A parser's value_set of up to `size` members, which the control plane fills.

    Each member has a match for each of `keys`. It is looked up like a table whose entries have no actions.
    """

    name: str
    keys: tuple[Key, ...]
    size: int
    annotations: tuple[Annotation, ...] = ()
    span: Span | None = None

    def as_table(self) -> Table:
        return Table(self.name, self.keys, (), ActionCall(""), default_is_const=True, size=self.size)


@dataclass(frozen=True, slots=True)
class ExternInstance:
    """Instance of one of v1model's extern objects.

    `kind` is register, counter, direct_counter, meter, direct_meter, action_profile or action_selector. The
    other fields of each kind:

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
    p4_types: tuple[p4.Type, ...] = ()  # type arguments: of register<T, I>, counter<I> ...
    has_typedef: bool = False  # declared by the name of a typedef


@dataclass(frozen=True, slots=True)
class CustomObject:
    """Instance of an extern object that the user has written in C, with its constructor's arguments."""

    type: str
    name: str
    arguments: tuple[Const, ...]
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Digest:
    """A `digest<T>` in the program; `type` is a Struct (or one Bits). `name` is as in P4Info."""

    name: str
    type: Type
    p4_type: p4.Type | None = None


@dataclass(frozen=True, slots=True)
class TypeTranslation:
    """A `type` (NewType) with @p4runtime_translation, or without (uri "")."""

    name: str
    type: Type
    uri: str = ""
    sdn_bits: int | None = None
    sdn_string: bool = False
