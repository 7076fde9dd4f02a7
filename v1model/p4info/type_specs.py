"""Type information of P4Info: data type specifications of digests, registers and translated types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from v1model.errors import UnsupportedError
from v1model.frontend import types as t
from v1model.midend.control_plane import translation_arguments
from v1model.midend.scope import plane_name
from v1model.p4info.annotations import annotate, find
from v1model.protos.p4.config.v1 import p4types_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

_TRANSLATION = "p4runtime_translation"


class TypeSpecs:
    """Builder of specifications; it describes every named type that they mention in `info`."""

    def __init__(self, info: Any, errors: tuple[str, ...]) -> None:
        self.info, self.errors = info, errors

    def describe(self, type_: t.Type) -> None:
        """Add the description of a key's or parameter's type to the type information."""
        self.spec(type_)

    def spec(self, type_: t.Type) -> Any:
        """Return the P4DataTypeSpec of a type."""
        spec = p4types_pb2.P4DataTypeSpec()
        match type_:
            case t.BitType() | t.VarbitType():
                spec.bitstring.CopyFrom(_bitstring(type_))
            case t.BoolType():
                spec.bool.SetInParent()
            case t.ErrorType():
                spec.error.SetInParent()
                self.info.type_info.error.CopyFrom(p4types_pb2.P4ErrorTypeSpec(members=self.errors))
            case t.TupleType(elements=elements):
                spec.tuple.SetInParent()
                spec.tuple.members.extend(self.spec(element) for element in elements)
            case t.NewType():
                spec.new_type.name = plane_name(type_.declaration, "")
                self._new_type(type_)
            case t.EnumType():
                self._enum(type_, spec)
            case t.RecordType():
                self._record(type_, spec)
            case t.StackType(element=t.RecordType() as element, size=size):
                kind = "header_stack" if element.kind == "header" else "header_union_stack"
                stack = getattr(spec, kind)
                getattr(stack, element.kind).name = plane_name(element.declaration, "")
                stack.size = size
                self.spec(element)
            case _:
                raise UnsupportedError("a type that P4Runtime has no description for")
        return spec

    def _new_type(self, type_: t.NewType) -> None:
        name = plane_name(type_.declaration, "")
        if name in self.info.type_info.new_types:
            return
        base: t.Type = type_
        while isinstance(base, t.NewType):
            base = base.base
        new_type = self.info.type_info.new_types[name]
        annotate(new_type, type_.declaration.annotations, without=frozenset((_TRANSLATION,)))
        translation = find(type_.declaration.annotations, _TRANSLATION)
        if translation is None:
            new_type.original_type.CopyFrom(self.spec(base))
            return
        uri, width = translation_arguments(translation)
        new_type.translated_type.uri = uri
        if width is None:
            new_type.translated_type.sdn_string.SetInParent()
        else:
            new_type.translated_type.sdn_bitwidth = width

    def _enum(self, type_: t.EnumType, spec: Any) -> None:
        name = plane_name(type_.declaration, "")
        if type_.underlying is None:
            spec.enum.name = name
            described = self.info.type_info.enums[name]
            if not described.members:
                for member, _ in type_.members:
                    described.members.add(name=member)
            return
        spec.serializable_enum.name = name
        serializable = self.info.type_info.serializable_enums[name]
        if serializable.members:
            return
        width = type_.underlying.width
        serializable.underlying_type.bitwidth = width
        for member, value in type_.members:
            serializable.members.add(name=member, value=bytestring(value, width))

    def _record(self, type_: t.RecordType, spec: Any) -> None:
        name = plane_name(type_.declaration, "")
        getattr(spec, type_.kind).name = name
        info = self.info.type_info
        if type_.kind == "struct" and name not in info.structs:
            members = [(field, self.spec(inner)) for field, inner in _fields(type_)]
            struct = info.structs[name]
            for field, inner in members:
                struct.members.add(name=field).type_spec.CopyFrom(inner)
        elif type_.kind == "header" and name not in info.headers:
            header = info.headers[name]
            for field, bits in flattened(type_):
                header.members.add(name=field).type_spec.CopyFrom(_bitstring(bits))
        elif type_.kind == "header_union" and name not in info.header_unions:
            members = [(field, self.spec(inner)) for field, inner in _fields(type_)]
            union = info.header_unions[name]
            for field, inner in members:
                union.members.add(name=field).header.CopyFrom(inner.header)


def _fields(type_: t.RecordType) -> Iterator[tuple[str, t.Type]]:
    """Yield a type's fields with their control-plane names."""
    names = {field.name: plane_name(field, "") for field in type_.declaration.fields}
    for name, inner in type_.fields:
        yield names[name], inner


def flattened(type_: t.RecordType, prefix: str = "") -> Iterator[tuple[str, t.Type]]:
    """Yield a header's fields; those of structs inside it have their path."""
    for name, inner in _fields(type_):
        if isinstance(inner, t.RecordType):
            yield from flattened(inner, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", inner


def _bitstring(type_: t.Type) -> Any:
    spec = p4types_pb2.P4BitstringLikeTypeSpec()
    match type_:
        case t.BitType(width=width, signed=signed):
            getattr(spec, "int" if signed else "bit").bitwidth = width
        case t.VarbitType(max_width=max_width):
            spec.varbit.max_bitwidth = max_width
        case t.EnumType(underlying=t.BitType(width=width)):
            spec.bit.bitwidth = width
        case t.NewType(base=base):
            return _bitstring(base)
        case _:
            spec.bit.bitwidth = 1
    return spec


def bit_width(type_: t.Type) -> int:
    """Return the width of a key, parameter or header field for the controller; 0 for its strings."""
    match type_:
        case t.BitType(width=width):
            return width
        case t.VarbitType(max_width=max_width):
            return max_width
        case t.NewType(base=base):
            translation = find(type_.declaration.annotations, _TRANSLATION)
            if translation is not None:
                return translation_arguments(translation)[1] or 0
            while isinstance(base, t.NewType):  # only the type's own translation counts
                base = base.base
            return bit_width(base)
        case t.EnumType(underlying=t.BitType(width=width)):
            return width
        case t.BoolType():
            return 1
        case _:
            return 0


def bytestring(value: int, width: int) -> bytes:
    """Return a value as p4c writes it: as many bytes as its type takes."""
    return (value & ((1 << width) - 1)).to_bytes((width + 7) // 8, "big")
