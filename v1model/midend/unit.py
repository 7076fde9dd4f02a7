"""State of a whole program while its blocks are lowered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.errors import CompileError, UnsupportedError
from v1model.frontend import ast
from v1model.frontend import types as t
from v1model.midend.frame import Builder, Frame
from v1model.midend.instances import declare
from v1model.midend.scope import ActionClosure, Binding, Scope, plane_name
from v1model.midend.shapes import Shapes

if TYPE_CHECKING:
    from collections.abc import Iterator


class Unit:
    """Types, errors and enums of the program, and the control plane's view of it."""

    def __init__(self, program: ast.Program, *, has_custom_externs: bool = False) -> None:
        self.has_custom_externs = has_custom_externs
        self.custom_objects: list[ir.CustomObject] = []
        self.array_bytes = 0  # of registers, counters and meters
        self.frames = 0  # calls and instances that were inlined
        self.lowered_nodes = 0  # statements and expressions, with inlined bodies counted each time
        self.shapes = Shapes()
        self.globals = Scope()
        self.errors = [
            m for d in program.declarations if isinstance(d, ast.ErrorDeclaration) for m in d.members
        ]
        self.enums = {
            d.name: tuple(d.members)
            for d in program.declarations
            if isinstance(d, ast.EnumDeclaration) and d.underlying is None
        }
        self.no_action = next(
            (
                d
                for d in program.declarations
                if isinstance(d, ast.ActionDeclaration) and d.name == "NoAction"
            ),
            None,
        )
        empty = ir.Struct("", ())
        self.headers, self.metadata, self.standard_metadata = empty, empty, empty
        self.tables: list[ir.Table] = []
        self.actions: dict[str, ir.Action] = {}
        self._action_declarations: dict[str, ast.ActionDeclaration] = {}
        self.called_actions: dict[ActionClosure, None] = {}  # by the body of a control
        self.externs: list[ir.ExternInstance] = []
        self.value_sets: list[ir.ValueSet] = []
        self.digests: dict[str, ir.Digest] = {}
        self.new_types: dict[str, t.NewType] = {}
        # (kind, name) of direct counters and meters -> the first call
        self.direct_uses: dict[tuple[str, str], ast.Span] = {}
        self.meter_targets: dict[str, ir.Expr] = {}  # direct meter -> where `read` leaves the colour

    def frame(self, builder: Builder) -> Frame:
        """Return the outermost frame of a block."""
        return Frame(self, builder, self.globals)

    def top_level(self, declaration: ast.Declaration) -> Binding:
        """Return the binding of a top-level declaration, which is made at first use."""
        binding: Binding
        match declaration:
            case ast.ConstantDeclaration():
                binding = self.frame(Builder("constants")).constant_value(declaration)
            case ast.ActionDeclaration():
                binding = ActionClosure(declaration, self.globals, plane_name(declaration, ""))
            case ast.Instantiation():
                binding = declare(self.frame(Builder("instances")), declaration, "")
            case _:
                raise UnsupportedError(f"{declaration.name} cannot be used here", declaration.span)
        self.globals.bindings[declaration] = binding
        return binding

    def instantiate_top_level(self, program: ast.Program) -> None:
        """Make the extern instances of the top level, which the control plane sees even if unused."""
        for declaration in program.declarations:
            if isinstance(declaration, ast.Instantiation) and declaration.name != "main":
                self.top_level(declaration)

    def check_direct_uses(self) -> None:
        """Refuse direct counters and meters that are called and belong to no table."""
        attached = {name for table in self.tables for name in table.direct}
        for (direct_kind, name), span in self.direct_uses.items():
            if name not in attached:
                kind = direct_kind.removeprefix("direct_")
                message = f"direct {kind} {name} belongs to no table that is applied"
                raise CompileError(message, span, f"attach it: {kind}s = ...;")

    def enum_member(self, enum: str, value: ir.Expr) -> str:
        """Return the name of a constant of an enum without an underlying type."""
        assert isinstance(value, ir.Const), value
        assert isinstance(value.value, int), value
        return self.enums[enum][value.value]

    @staticmethod
    def record_type(declaration: ast.StructDeclaration) -> t.RecordType:
        """Return the type that a declaration without type parameters declares."""
        fields = []
        for field in declaration.fields:
            assert field.type_ref.resolved is not None, field
            fields.append((field.name, field.type_ref.resolved))
        return t.RecordType(declaration.kind, declaration.name, tuple(fields), declaration)

    def new_type_name(self, type_: t.Type) -> str:
        """Return the name of a `type`, for P4Info; "" for other types."""
        if not isinstance(type_, t.NewType):
            return ""
        self.new_types[type_.name] = type_
        return type_.name

    def add_action(self, closure: ActionClosure, frame: Frame) -> None:
        """Add an action of a table, with the parameters that the control plane gives.

        Several may share a @name, as those that p4c makes of one P4_14 action: to the control plane they are
        one.
        """
        known = self._action_declarations.setdefault(closure.name, closure.declaration)
        if closure.name in self.actions and known is closure.declaration:
            return
        action = ir.Action(
            closure.name, tuple(self._params(closure, frame)), tuple(closure.declaration.annotations)
        )
        if not _agree(self.actions.setdefault(closure.name, action), action):
            raise CompileError(
                f"two actions are called {closure.name}",
                closure.declaration.span,
                f"see line {known.span.line}: actions that share a name need the same parameters",
            )

    def _params(self, closure: ActionClosure, frame: Frame) -> Iterator[ir.ActionParam]:
        """Yield the parameters that the control plane gives."""
        for parameter in closure.declaration.parameters:
            if parameter.direction:
                continue
            shape = frame.shape_of(parameter.type_ref)
            if not isinstance(shape, ir.Bits | ir.Bool):
                message = "an action's parameter from the control plane that is no bit<>, int<>, bool or enum"
                raise UnsupportedError(message, parameter.span)
            assert parameter.type_ref.resolved is not None
            type_ = frame.scope.closed(parameter.type_ref.resolved)
            bits = shape if isinstance(shape, ir.Bits) else ir.Bits(1)
            annotations = tuple(parameter.annotations)
            name = self.new_type_name(type_)
            yield ir.ActionParam(parameter.name, bits, name, annotations, type_)


def _agree(one: ir.Action, other: ir.Action) -> bool:
    """Return whether two actions have the same parameters from the control plane."""
    return [(p.name, p.type, p.type_name) for p in one.params] == [
        (p.name, p.type, p.type_name) for p in other.params
    ]
