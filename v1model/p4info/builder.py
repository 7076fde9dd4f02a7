"""Construction of the P4Info message: symbols first, then the objects in p4c's order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from v1model import ir
from v1model.errors import located
from v1model.frontend import ast
from v1model.midend.frame import nested
from v1model.midend.scope import plane_name
from v1model.p4info.annotations import annotate, document, number
from v1model.p4info.externs import add_controller_header, add_digest, add_direct, add_extern
from v1model.p4info.kinds import ACTION, CONTROLLER_HEADER, DIGEST, RESOURCES, TABLE, VALUE_SET
from v1model.p4info.removed import removed
from v1model.p4info.symbols import SymbolTable
from v1model.p4info.tables import add_action, add_table, add_value_set
from v1model.p4info.type_specs import TypeSpecs
from v1model.protos.p4.config.v1 import p4info_pb2

if TYPE_CHECKING:
    from v1model.frontend import types as t

ARCHITECTURE = "v1model"
_PACKAGE_FIELDS = ("name", "version", "organization", "contact", "url", "arch")
_METHODS = frozenset(("read", "write", "count", "execute_meter"))
_PACKAGE_ANNOTATIONS = frozenset(("pkginfo", "platform_property"))


def _looks_at_types(program: ir.Program, externs: list[ir.ExternInstance]) -> bool:
    """Return whether p4c adds type information, which is then present even if it is empty."""
    controls = (program.verify_checksum, program.ingress, program.egress, program.compute_checksum)
    seen = program.tables or externs or program.controller_header_types
    return bool(seen) or any(_calls_function(control.body) for control in controls)


def _calls_function(body: tuple[ir.Stmt, ...]) -> bool:
    """Return whether an extern function is called somewhere in `body`."""
    return any(
        (isinstance(statement, ir.ExternCall) and statement.name not in _METHODS)
        or any(_calls_function(inner) for inner in nested(statement))
        for statement in body
    )


class Builder:
    """Builder of the P4Info of one program."""

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.info = p4info_pb2.P4Info()
        self.types = TypeSpecs(self.info, program.errors)
        self.actions = {action.name: action for action in program.actions}
        self.externs = {extern.name: extern for extern in program.externs}
        without = removed(program)
        self.shown_externs = [extern for extern in program.externs if extern.name not in without]
        self.symbols = self._symbols()

    def build(self) -> p4info_pb2.P4Info:
        self._package()
        if _looks_at_types(self.program, self.shown_externs):
            self.info.type_info.SetInParent()
        for action in self.program.actions:
            add_action(self, action)
        for extern in self.shown_externs:
            with located(extern.span):
                add_extern(self, extern)
        for table in self.program.tables:
            add_table(self, table)
        for value_set in self.program.value_sets:
            add_value_set(self, value_set)
        for digest in self.program.digests:
            add_digest(self, digest)
        for name, type_ in self.program.controller_header_types.items():
            add_controller_header(self, name, type_)
        return self.info

    def _symbols(self) -> SymbolTable:
        """Return the ids of everything that P4Info names."""
        symbols, program = SymbolTable(), self.program
        for table in program.tables:
            with located(table.span):
                symbols.add(TABLE, table.name, number(table.annotations, "id"))
        for action in program.actions:
            symbols.add(ACTION, action.name, number(action.annotations, "id"))
        for extern in self.shown_externs:
            with located(extern.span):
                symbols.add(RESOURCES[extern.kind], extern.name, number(extern.annotations, "id"))
        for value_set in program.value_sets:
            with located(value_set.span):
                symbols.add(VALUE_SET, value_set.name, number(value_set.annotations, "id"))
        for digest in program.digests:
            symbols.add(DIGEST, digest.name)
        for type_ in program.controller_header_types.values():
            given = number(type_.declaration.annotations, "id")
            symbols.add(CONTROLLER_HEADER, self.controller_header_name(type_), given)
        symbols.assign()
        return symbols

    @staticmethod
    def controller_header_name(type_: t.RecordType) -> str:
        return plane_name(type_.declaration, "")

    def id(self, kind: int, name: str) -> int:
        return self.symbols.id(kind, name)

    def preamble(
        self,
        preamble: Any,
        kind: int,
        name: str,
        annotations: tuple[ast.Annotation, ...],
        without: frozenset[str] = frozenset(),
    ) -> None:
        """Fill in an object's id, name, alias, annotations and documentation."""
        preamble.id, preamble.name, preamble.alias = self.id(kind, name), name, self.symbols.alias(name)
        annotate(preamble, annotations, without)
        document(preamble, annotations)

    def direct_resource(self, table: ir.Table, name: str) -> int:
        return add_direct(self, self.externs[name], table)

    def _package(self) -> None:
        """Fill in pkg_info from @pkginfo and @platform_property of `main`."""
        package = self.info.pkg_info
        package.arch = ARCHITECTURE
        for annotation in self.program.annotations:
            for key, value in annotation.pairs.items():
                if (
                    annotation.name == "pkginfo"
                    and key in _PACKAGE_FIELDS
                    and isinstance(value, ast.StringLiteral)
                ):
                    setattr(package, key, value.value)
                elif annotation.name == "platform_property" and isinstance(value, ast.IntLiteral):
                    setattr(package.platform_properties, key, value.value)
        rest = [a for a in self.program.annotations if a.name not in _PACKAGE_ANNOTATIONS]
        annotate(package, rest)
        document(package, rest)
