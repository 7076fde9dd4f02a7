"""C statements for IR statements; tables and externs have modules of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.backend import custom_externs, externs, tables, tracing
from v1model.backend.layout import (
    LOOP_EMIT_BYTES,
    header_bits,
    max_header_bytes,
    varbit_of,
)
from v1model.backend.names import identifier
from v1model.backend.writer import Writer
from v1model.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from v1model.backend.function import Function


class Statements(Writer):
    """Generator of one block's statements into its function."""

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self._labels: dict[str, str] = {}
        self._loops = 0

    def body(self, statements: Sequence[ir.Stmt]) -> None:
        for statement in statements:
            self.statement(statement)

    def statement(self, statement: ir.Stmt) -> None:
        match statement:
            case ir.Assign(target, value):
                self.assign(target, value)
            case ir.SetValid(header, valid):
                self._set_valid(header, valid=valid)
            case ir.If():
                self._if(statement)
            case ir.Switch():
                self._switch(statement)
            case ir.Block(label, body):
                self._block(label, body)
            case ir.Leave(label):
                self.function.emit(self.function.goto(self._labels[label]))
            case ir.Loop(body):
                self._loop(body)
            case ir.Extract():
                self._extract(statement)
            case ir.Advance(bits):
                self._advance(bits)
            case ir.Verify():
                self._verify(statement)
            case ir.Emit(value):
                self._emit(self.expressions.value(value), value.type)
            case ir.Shift(stack, count):
                self._shift(stack, count)
            case ir.ApplyTable():
                tables.apply(self, statement, self.body)
            case ir.ExternCall():
                tracing.step(self, "call", f"{statement.instance}.{statement.name}".lstrip("."))
                externs.call(self, statement)
            case ir.CustomCall():
                tracing.step(self, "call", statement.function)
                custom_externs.call(self, statement)

    def _set_valid(self, header: ir.Expr, *, valid: bool) -> None:
        """Emit setValid or setInvalid as simple_switch: a header that becomes valid is 0; packet_length
        follows.
        """
        header_type = header.type
        if not isinstance(header_type, ir.Header):
            raise UnsupportedError("setValid and setInvalid need a header")
        place = self.expressions.place(header)
        length = str(header_bits(header_type) // 8)
        if valid:
            with self.function.block(f"if (!{place}.valid)"):
                self.function.emit(f"memset(&{place}, 0, sizeof {place});", f"{place}.valid = 1;")
                self.function.emit(f"job->packet_length += {length};")
            self.keep_union_single(header)
            return
        varbit = varbit_of(header_type)
        if varbit:
            name = next(name for name, field_type in header_type.fields if field_type == varbit)
            length += f" + {place}.f_{identifier(name)}.bits / 8"
        with self.function.block(f"if ({place}.valid)"):
            self.function.emit(f"{place}.valid = 0;", f"job->packet_length -= {length};")

    # --- control flow --------------------------------------------------------------------------

    def _if(self, statement: ir.If) -> None:
        with self.function.block(f"if ({self.expressions.condition(statement.condition)})"):
            self.body(statement.then)
        if statement.otherwise:
            with self.function.block("else"):
                self.body(statement.otherwise)

    def _switch(self, statement: ir.Switch) -> None:
        """Emit a chain of comparisons, which works for any width; the C compiler makes a jump table of it."""
        subject = self.function.temporary(statement.subject.type)
        self.function.emit(self.expressions.store(subject, statement.subject))
        end = self.function.name("switch_end")
        types = self.unit.types
        for values, body in statement.cases:
            tests = [types.equal(value.type, subject, self.expressions.value(value)) for value in values]
            with self.function.block(f"if ({' || '.join(tests) or '0'})"):
                self.body(body)
                self.function.emit(self.function.goto(end))
        self.body(statement.default)
        self.function.label(end)

    def _block(self, label: str, body: Sequence[ir.Stmt]) -> None:
        name = self.function.name(f"end_{label}")
        outer, self._labels[label] = self._labels.get(label), name
        with self.function.block(""):
            self.body(body)
        self.function.label(name)
        if outer is not None:
            self._labels[label] = outer

    def _loop(self, body: Sequence[ir.Stmt]) -> None:
        """Emit a loop; all loops of a function share one limit, because nested counts would multiply."""
        count = self.function.iterations()
        with self.function.block("for (;;)"):
            if self.function.is_parser:
                self.function.check(f"++{count} > PARSER_LIMIT", "ParserTimeout")
            else:
                with self.function.block(f"if (++{count} > LOOP_LIMIT)"):
                    self.abort("DROPPED_LOOP_LIMIT")
            self._loops += 1
            self.body(body)
            self._loops -= 1

    # --- packets -------------------------------------------------------------------------------

    def _extract(self, statement: ir.Extract) -> None:
        header, target = statement.header, statement.target
        check, emit = self.function.check, self.function.emit
        fixed_bytes = header_bits(header) // 8
        with self.function.block(""):
            if isinstance(target, ir.StackNext):
                self.expressions.place(target)  # the bounds check comes first, as in simple_switch
            varbit = varbit_of(header)
            length, argument = str(fixed_bytes), ""
            if varbit is not None:
                bits = self.expressions.value(statement.varbit_bits) if statement.varbit_bits else "0"
                emit(f"uint64_t varbit_bits = {bits};")
                # simple_switch takes it as an int, so larger values fail.
                check("varbit_bits % 8 != 0 || varbit_bits > INT32_MAX", "ParserInvalidArgument")
                length, argument = f"{fixed_bytes} + varbit_bits / 8", ", (uint32_t)varbit_bits"
            check(f"job->length - offset < {length}", "PacketTooShort")
            if varbit is not None:
                check(f"varbit_bits > {varbit.max_width}", "HeaderTooShort")
            self._unpack(target, header, length, argument)

    def _unpack(self, target: ir.Expr | None, header: ir.Header, length: str, argument: str) -> None:
        if target is None:
            self.function.emit(f"offset += {length};")
            return
        union = target.base if isinstance(target, ir.Member) else None
        place = self.expressions.place(target)
        tag = self.unit.types.name(header)
        self.function.emit(f"offset += unpack_{tag}(&{place}, job->data + offset{argument});")
        tracing.extracted(self, header, place, tracing.path(target))
        if union is not None:
            self.keep_union_single(target)
        stack = target if isinstance(target, ir.StackNext) else union
        if isinstance(stack, ir.StackNext):
            self.function.emit(f"{self.expressions.place(stack.base)}.next++;")

    def _advance(self, bits: ir.Expr) -> None:
        with self.function.block(""):
            self.function.emit(f"uint64_t bits = {self.expressions.value(bits)};")
            self.function.check("bits % 8 != 0", "ParserInvalidArgument")
            self.function.check("job->length - offset < bits / 8", "PacketTooShort")
            self.function.emit("offset += (uint32_t)(bits / 8);")

    def _verify(self, statement: ir.Verify) -> None:
        condition = self.expressions.condition(statement.condition)
        error = self.expressions.value(statement.error)
        with self.function.block(f"if (!{condition})"):
            self.function.emit(f"error = (uint32_t){error};", self.function.goto("done"))

    def _emit(self, place: str, value_type: ir.Type) -> None:
        match value_type:
            case ir.Header():
                with self.function.block(f"if ({place}.valid)"):
                    if self._loops:
                        self._check_room(max_header_bytes(value_type))
                    self.function.emit(f"out += pack_{self.unit.types.name(value_type)}(&{place}, out);")
            case ir.Struct(_, fields) | ir.Union(_, fields):
                for name, field_type in fields:
                    self._emit(f"{place}.f_{identifier(name)}", field_type)
            case ir.Stack(element, size):
                for i in range(size):
                    self._emit(f"{place}.e[{i}]", element)
            case _:
                raise UnsupportedError("only headers can be emitted")

    def _check_room(self, size_bytes: int) -> None:
        """Emit a check of space inside a loop; outside of loops the space is reserved (`program.py`)."""
        with self.function.block(f"if (out - start + {size_bytes} > {LOOP_EMIT_BYTES})"):
            self.abort("DROPPED_OVERSIZE")

    def _shift(self, stack: ir.Expr, count: int) -> None:
        """Emit push_front or pop_front; the elements that are shifted in are invalid."""
        assert isinstance(stack.type, ir.Stack)
        size, place = stack.type.size, self.expressions.place(stack)
        by = min(abs(count), size)
        kept = f"{size - by} * sizeof {place}.e[0]"
        empty = f"{by} * sizeof {place}.e[0]"
        if count > 0:
            self.function.emit(f"memmove(&{place}.e[{by}], &{place}.e[0], {kept});")
            self.function.emit(f"memset(&{place}.e[0], 0, {empty});")
            self.function.emit(f"{place}.next = {place}.next + {by} > {size} ? {size} : {place}.next + {by};")
        else:
            self.function.emit(f"memmove(&{place}.e[0], &{place}.e[{by}], {kept});")
            self.function.emit(f"memset(&{place}.e[{size - by}], 0, {empty});")
            self.function.emit(f"{place}.next = {place}.next < {by} ? 0 : {place}.next - {by};")
