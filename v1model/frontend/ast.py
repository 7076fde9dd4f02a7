"""Abstract syntax of P4_16, as the parser builds it and the checker annotates it.

Every node has a `span`. The checker (frontend/check/) fills in what is marked *checked*: the type of each
expression, the declaration of each name, and the value of each compile-time-known expression. Later stages
read only those; they never resolve a name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from v1model.frontend.nodes import BaseTypeRef as BaseTypeRef
from v1model.frontend.nodes import NamedTypeRef as NamedTypeRef
from v1model.frontend.nodes import Node as Node
from v1model.frontend.nodes import Span as Span
from v1model.frontend.nodes import StackTypeRef as StackTypeRef
from v1model.frontend.nodes import TupleTypeRef as TupleTypeRef
from v1model.frontend.nodes import TypeRef as TypeRef

if TYPE_CHECKING:
    from v1model.frontend.types import Type


@dataclass(eq=False, slots=True)
class Annotation(Node):
    """`@name(...)`: unstructured text tokens, or structured expressions and key-values."""

    name: str
    expressions: list[Expression] = field(default_factory=list)
    pairs: dict[str, Expression] = field(default_factory=dict)
    text: str = ""


# --- expressions -----------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class Expression(Node):
    type: Type | None = field(default=None, kw_only=True)  # checked
    constant: object | None = field(default=None, kw_only=True)  # checked: int, bool, str, tuple, or None


@dataclass(eq=False, slots=True)
class IntLiteral(Expression):
    value: int
    width: int | None = None
    signed: bool = False
    base: int = 10  # as written


@dataclass(eq=False, slots=True)
class BoolLiteral(Expression):
    value: bool


@dataclass(eq=False, slots=True)
class StringLiteral(Expression):
    value: str


@dataclass(eq=False, slots=True)
class Name(Expression):
    name: str
    absolute: bool = False
    declaration: Declaration | Parameter | None = field(default=None, kw_only=True)  # checked


@dataclass(eq=False, slots=True)
class TypeName(Expression):
    """Type used as an expression prefix, as in `E.member` or a constructor `T(...)`."""

    ref: TypeRef


@dataclass(eq=False, slots=True)
class Member(Expression):
    """`base.member`: a field, a method, an enum or error member, next/last/lastIndex, hit/action_run ..."""

    base: Expression
    member: str


@dataclass(eq=False, slots=True)
class Index(Expression):
    base: Expression
    index: Expression


@dataclass(eq=False, slots=True)
class Slice(Expression):
    """`base[high:low]`, or `base[low+:width]` with the width as `high` until checked."""

    base: Expression
    high: Expression
    low: Expression
    is_indexed: bool = field(default=False, kw_only=True)  # `+:`; checked: always False
    is_moving: bool = field(default=False, kw_only=True)  # checked: `base` is shifted by what `low` was


@dataclass(eq=False, slots=True)
class Unary(Expression):
    operator: str  # ! ~ - +
    operand: Expression


@dataclass(eq=False, slots=True)
class Binary(Expression):
    operator: str  # + - * / % |+| |-| & | ^ && || == != < <= > >= << >> ++ &&& ..
    left: Expression
    right: Expression


@dataclass(eq=False, slots=True)
class Ternary(Expression):
    condition: Expression
    then: Expression
    otherwise: Expression


@dataclass(eq=False, slots=True)
class Cast(Expression):
    """Explicit cast as written, or a cast that the checker inserts for an implicit conversion."""

    target: TypeRef
    operand: Expression


@dataclass(eq=False, slots=True)
class Argument(Node):
    """Argument: positional, named (`name = value`), or `_` (value None)."""

    value: Expression | None
    name: str | None = None
    parameter: Parameter | None = field(default=None, kw_only=True)  # checked
    position: int = field(default=0, kw_only=True)  # checked: place in the call as written, defaults last


@dataclass(eq=False, slots=True)
class Call(Expression):
    """Call of a function, method, action, constructor or apply.

    checked: `kind` says which: function, action, extern_function, extern_method, apply, constructor, builtin
    (isValid setValid setInvalid push_front pop_front minSizeInBits ...). `type_arguments` become the inferred
    ones, and arguments are in parameter order with `parameter` set.
    """

    callee: Expression
    arguments: list[Argument]
    type_arguments: list[TypeRef] = field(default_factory=list)
    kind: str = field(default="", kw_only=True)  # checked
    declaration: Declaration | None = field(default=None, kw_only=True)  # checked: what is called
    inferred: tuple[Type, ...] = field(default=(), kw_only=True)  # checked: type arguments


@dataclass(eq=False, slots=True)
class ListExpression(Expression):
    """`{a, b}`; `has_rest` is for a trailing `...`. checked: a tuple, struct, header or stack type."""

    elements: list[Expression]
    has_rest: bool = False


@dataclass(eq=False, slots=True)
class StructExpression(Expression):
    """`{f = a, g = b}`; `type_ref` when a type name stands before it."""

    fields: dict[str, Expression]
    type_ref: TypeRef | None = None
    has_rest: bool = False


@dataclass(eq=False, slots=True)
class InvalidExpression(Expression):
    """`{#}`: an invalid header or header union."""


@dataclass(eq=False, slots=True)
class DefaultExpression(Expression):
    """`default` or `_` in a select or an entry key, and `...` as an initialiser."""


# --- statements ------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class Statement(Node):
    pass


@dataclass(eq=False, slots=True)
class Block(Statement):
    statements: list[Statement]
    annotations: list[Annotation] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Assignment(Statement):
    """`target = value`, or a compound form: `operator` is "" or the operator before `=`."""

    target: Expression
    value: Expression
    operator: str = ""


@dataclass(eq=False, slots=True)
class CallStatement(Statement):
    call: Call


@dataclass(eq=False, slots=True)
class DeclarationStatement(Statement):
    declaration: Declaration


@dataclass(eq=False, slots=True)
class If(Statement):
    condition: Expression
    then: Statement
    otherwise: Statement | None = None


@dataclass(eq=False, slots=True)
class SwitchCase(Node):
    """Case of a switch. `labels` are expressions or DefaultExpression; without `body` it falls through."""

    labels: list[Expression]
    body: Block | None


@dataclass(eq=False, slots=True)
class Switch(Statement):
    """Switch statement. checked: `on_action` if the subject is `t.apply().action_run`."""

    subject: Expression
    cases: list[SwitchCase]
    on_action: bool = field(default=False, kw_only=True)


@dataclass(eq=False, slots=True)
class For(Statement):
    """`for (init; condition; update) body`."""

    initial: list[Statement]
    condition: Expression
    update: list[Statement]
    body: Statement


@dataclass(eq=False, slots=True)
class ForIn(Statement):
    """`for (T v in collection) body`; `collection` is a range `a .. b`, a stack or a list."""

    variable: VariableDeclaration
    collection: Expression
    body: Statement


@dataclass(eq=False, slots=True)
class Return(Statement):
    value: Expression | None = None


@dataclass(eq=False, slots=True)
class Exit(Statement):
    pass


@dataclass(eq=False, slots=True)
class Break(Statement):
    pass


@dataclass(eq=False, slots=True)
class Continue(Statement):
    pass


@dataclass(eq=False, slots=True)
class Empty(Statement):
    pass


# --- declarations ----------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class Declaration(Node):
    name: str
    annotations: list[Annotation] = field(default_factory=list, kw_only=True)


@dataclass(eq=False, slots=True)
class Parameter(Declaration):
    direction: str  # "", in, out, inout
    type_ref: TypeRef
    default: Expression | None = None


@dataclass(eq=False, slots=True)
class ConstantDeclaration(Declaration):
    type_ref: TypeRef
    value: Expression


@dataclass(eq=False, slots=True)
class VariableDeclaration(Declaration):
    type_ref: TypeRef
    value: Expression | None = None


@dataclass(eq=False, slots=True)
class Instantiation(Declaration):
    """`T<...>(args) name;` with an optional object initialiser (abstract methods)."""

    type_ref: TypeRef
    arguments: list[Argument]
    members: list[Declaration] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class ValueSetDeclaration(Declaration):
    """`value_set<T>(size) name;` in a parser: a set of T that the control plane fills."""

    type_ref: TypeRef
    size: Expression


@dataclass(eq=False, slots=True)
class TypedefDeclaration(Declaration):
    """`typedef T N;`, or `type T N;` if `is_new`."""

    type_ref: TypeRef
    is_new: bool = False


@dataclass(eq=False, slots=True)
class FieldDeclaration(Declaration):
    type_ref: TypeRef


@dataclass(eq=False, slots=True)
class StructDeclaration(Declaration):
    """Struct, header or header union, by `kind`: struct, header or header_union."""

    kind: str
    fields: list[FieldDeclaration]
    type_parameters: list[str] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class EnumDeclaration(Declaration):
    """Enum; `members` maps a name to its value expression, None in an enum without an underlying type."""

    members: dict[str, Expression | None]
    underlying: TypeRef | None = None


@dataclass(eq=False, slots=True)
class ErrorDeclaration(Declaration):
    members: list[str]


@dataclass(eq=False, slots=True)
class MatchKindDeclaration(Declaration):
    members: list[str]


@dataclass(eq=False, slots=True)
class FunctionDeclaration(Declaration):
    """Function, extern function (body None), or method of an extern."""

    return_type: TypeRef | None
    parameters: list[Parameter]
    body: Block | None = None
    type_parameters: list[str] = field(default_factory=list)
    is_abstract: bool = False


@dataclass(eq=False, slots=True)
class ExternDeclaration(Declaration):
    """Extern object; its constructors are the methods that have its name."""

    methods: list[FunctionDeclaration]
    type_parameters: list[str] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class ActionDeclaration(Declaration):
    parameters: list[Parameter]
    body: Block


@dataclass(eq=False, slots=True)
class KeyElement(Node):
    expression: Expression
    match_kind: str
    annotations: list[Annotation] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class ActionReference(Node):
    """Entry of a table's `actions`, with the arguments bound there."""

    name: Name
    arguments: list[Argument] = field(default_factory=list)
    annotations: list[Annotation] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Entry(Node):
    keys: list[Expression]  # Binary with &&& or .., DefaultExpression, or a value
    action: Call
    priority: Expression | None = None
    is_const: bool = False
    annotations: list[Annotation] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class TableProperty(Node):
    """Table property other than key, actions, entries and default_action."""

    name: str
    value: Expression | Instantiation
    is_const: bool = False
    annotations: list[Annotation] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class TableDeclaration(Declaration):
    keys: list[KeyElement]
    actions: list[ActionReference]
    entries: list[Entry] = field(default_factory=list)
    entries_const: bool = False
    default_action: Call | Name | None = None
    default_action_const: bool = False
    properties: dict[str, TableProperty] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class SelectCase(Node):
    keys: list[Expression]  # one for each select expression
    state: str


@dataclass(eq=False, slots=True)
class Select(Node):
    """A state's transition; empty `expressions` mean `transition NAME` (one case, no keys)."""

    expressions: list[Expression]
    cases: list[SelectCase]


@dataclass(eq=False, slots=True)
class StateDeclaration(Declaration):
    statements: list[Statement]
    transition: Select | None  # None: implicit `transition reject`


@dataclass(eq=False, slots=True)
class ParserDeclaration(Declaration):
    """Parser, or parser type if `states` is None."""

    parameters: list[Parameter]
    constructor_parameters: list[Parameter] = field(default_factory=list)
    locals: list[Declaration] = field(default_factory=list)
    states: list[StateDeclaration] | None = None
    type_parameters: list[str] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class ControlDeclaration(Declaration):
    """Control, or control type if `body` is None."""

    parameters: list[Parameter]
    constructor_parameters: list[Parameter] = field(default_factory=list)
    locals: list[Declaration] = field(default_factory=list)
    body: Block | None = None
    type_parameters: list[str] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class PackageDeclaration(Declaration):
    """Package type, as in `package V1Switch<H, M>(...)`."""

    parameters: list[Parameter]
    type_parameters: list[str] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Program(Node):
    """All declarations in order; annotations of the package belong to its Instantiation `main`."""

    declarations: list[Declaration]
