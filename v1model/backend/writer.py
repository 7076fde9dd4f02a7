"""Base of the statement generator: a function, its expressions, and assignments to places."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.backend import arithmetic, tracing
from v1model.backend.expressions import Expressions
from v1model.backend.layout import NARROW_BITS, is_wide, value_width
from v1model.backend.names import identifier

if TYPE_CHECKING:
    from v1model.backend.function import Function


class Writer:
    """Writer into one C function."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.unit = function.unit
        self.expressions = Expressions(function)

    def assign(self, target: ir.Expr, value: ir.Expr) -> None:
        if isinstance(target, ir.Slice):
            self._assign_slice(target, value)
            tracing.assigned(self, target, value.type)
            return
        statement = self.expressions.store(self.expressions.place(target), value)
        self.function.emit(statement)
        self.keep_union_single(target)
        tracing.assigned(self, target, value.type)

    def assign_integer(self, target: ir.Expr, value: str) -> None:
        """Assign a C integer of up to 128 bits, cut to the target's width."""
        if isinstance(target, ir.Slice):
            temporary = self.function.temporary(target.type)
            self.function.emit(f"{temporary} = {arithmetic.masked(value, value_width(target.type))};")
            self._store_slice(target, temporary)
        elif is_wide(target.type):
            self.function.emit(
                f"wide_from({self.expressions.place(target)}, {value_width(target.type)}, {value});"
            )
        else:
            masked = arithmetic.masked(f"({value})", value_width(target.type))
            self.function.emit(f"{self.expressions.place(target)} = {masked};")

    def _assign_slice(self, target: ir.Slice, value: ir.Expr) -> None:
        self._store_slice(target, self.expressions.value(value))

    def _store_slice(self, target: ir.Slice, value: str) -> None:
        base, low, width = target.base, target.low, target.high - target.low + 1
        if isinstance(base, ir.Slice):  # x[a:b][c:d] is a slice of x
            outer = ir.Slice(base.base, base.low + target.high, base.low + target.low, target.type)
            self._store_slice(outer, value)
            return
        place, base_width = self.expressions.place(base), value_width(base.type)
        if is_wide(base.type):
            suffix = "" if is_wide(target.type) else "128"
            self.function.emit(f"wide_insert{suffix}({place}, {base_width}, {low}, {value}, {width});")
            return
        kind = "uint64_t" if base_width <= NARROW_BITS else "u128"
        field = f"(({kind}){arithmetic.mask(width)} << {low})"
        self.function.emit(f"{place} = ({place} & ~{field}) | (({kind}){value} << {low} & {field});")

    def keep_union_single(self, target: ir.Expr) -> None:
        """Make a union's other members invalid if the assigned one is valid now."""
        if not isinstance(target, ir.Member) or not isinstance(target.base.type, ir.Union):
            return
        union = self.expressions.place(target.base)
        others = [name for name, _ in target.base.type.fields if name != target.field]
        with self.function.block(f"if ({union}.f_{identifier(target.field)}.valid)"):
            for name in others:
                self.function.emit(f"{union}.f_{identifier(name)}.valid = 0;")

    def abort(self, cause: str) -> None:
        """Emit a drop of the packet from within a control."""
        self.function.emit("job->aborted = true;", f"sw->drops[{cause}]++;", self.function.goto("done"))
