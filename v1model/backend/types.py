"""C declarations for the IR's types, with the functions of each.

Each type has a comparison, and headers have functions that read from and write to the wire.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.backend import wire
from v1model.backend.layout import MAX_BITS, is_large, is_wide, storage_bytes, value_width, wire_bytes
from v1model.backend.names import Namer, identifier
from v1model.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterable


def integer_type(width: int) -> str:
    """Return the C type that holds bit<width> up to 128 bits."""
    size = storage_bytes(width)
    return "u128" if size == 16 else f"uint{size * 8}_t"


def _alignment(value_type: ir.Type) -> str:
    return "_Alignas(CACHE_LINE) " if is_large(value_type) else ""


class Types:
    """Declarer of aggregate types, each once and after the types that it contains."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: dict[ir.Type, str] = {}
        self._tags = Namer()

    def declaration(self, value_type: ir.Type, name: str) -> str:
        """Return a C declaration such as `uint16_t name`, `uint8_t name[256]` or `struct h_ethernet name`."""
        if isinstance(value_type, ir.Bits | ir.Bool):
            width = value_width(value_type)
            if width > MAX_BITS:
                raise UnsupportedError(f"bit<{width}>: the widest is bit<{MAX_BITS}>")
            if is_wide(value_type):
                return f"uint8_t {name}[{wire_bytes(width)}]"
            return f"{integer_type(width)} {name}"
        return f"struct {self.name(value_type)} {name}"

    def name(self, value_type: ir.Type) -> str:
        """Return the tag of an aggregate's struct."""
        if value_type not in self._names:
            self._names[value_type] = self._declare(value_type)
        return self._names[value_type]

    def _declare(self, value_type: ir.Type) -> str:
        match value_type:
            case ir.Varbit(max_width):
                members = [f"uint32_t bits; uint8_t data[{max(1, wire_bytes(max_width))}]"]
                return self._struct(f"varbit_{max_width}", members, value_type)
            case ir.Stack(element, size):
                # Reads out of range see [size], always invalid; writes go to [size + 1].
                member = self.declaration(element, f"e[{size + 2}]")
                return self._struct(
                    f"stack{size}_{self.name(element)}", ["uint32_t next", member], value_type
                )
            case ir.Struct(name, fields) | ir.Union(name, fields):
                members = [
                    self.declaration(field_type, f"f_{identifier(field)}") for field, field_type in fields
                ]
                prefix = "s" if isinstance(value_type, ir.Struct) else "u"
                return self._struct(f"{prefix}_{identifier(name)}", members or ["uint8_t empty"], value_type)
            case ir.Header(name, fields):
                members = [
                    _alignment(field_type) + self.declaration(field_type, f"f_{identifier(field)}")
                    for field, field_type in fields
                ]
                tag = self._struct(f"h_{identifier(name)}", ["uint8_t valid", *members], value_type)
                self.lines += wire.header_functions(tag, value_type)
                return tag
        raise TypeError(f"no C type for {value_type}")

    def _struct(self, wanted: str, members: Iterable[str], value_type: ir.Type) -> str:
        tag = self._tags.unique(wanted)
        self._names[value_type] = tag
        self.lines += [f"struct {tag} {{", *(f"    {member};" for member in members), "};"]
        self.lines += self._equality(tag, value_type)
        return tag

    def _equality(self, tag: str, value_type: ir.Type) -> list[str]:
        match value_type:
            case ir.Varbit():
                condition = "a->bits == b->bits && memcmp(a->data, b->data, (a->bits + 7) / 8) == 0"
            case ir.Stack(element, size):
                condition = (
                    " && ".join(self.equal(element, f"a->e[{i}]", f"b->e[{i}]") for i in range(size)) or "1"
                )
            case ir.Header(_, fields):
                condition = f"a->valid == b->valid && (!a->valid || ({self._fields_equal(fields)}))"
            case ir.Struct(_, fields) | ir.Union(_, fields):
                condition = self._fields_equal(fields)
            case _:
                raise TypeError(f"no comparison of {value_type}")
        unused = ["    (void)a, (void)b;"] if condition == "1" else []
        return [
            f"static inline bool eq_{tag}(const struct {tag} *a, const struct {tag} *b) {{",
            *unused,
            f"    return {condition};",
            "}",
        ]

    def _fields_equal(self, fields: Iterable[tuple[str, ir.Type]]) -> str:
        names = [(f"f_{identifier(field)}", field_type) for field, field_type in fields]
        return (
            " && ".join(self.equal(field_type, f"a->{name}", f"b->{name}") for name, field_type in names)
            or "1"
        )

    def equal(self, value_type: ir.Type, left: str, right: str) -> str:
        """Return a C condition that two places of one type are equal."""
        if is_wide(value_type):
            return f"wide_equal({left}, {right}, {value_width(value_type)})"
        if isinstance(value_type, ir.Bits | ir.Bool):
            return f"{left} == {right}"
        return f"eq_{self.name(value_type)}(&{left}, &{right})"

    @staticmethod
    def is_scalar(value_type: ir.Type) -> bool:
        """Return whether C represents the type as one integer."""
        return isinstance(value_type, ir.Bits | ir.Bool) and not is_wide(value_type)
