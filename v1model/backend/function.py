"""One C function being written: its lines, local variables, temporaries and labels."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from v1model.backend.layout import wire_bytes
from v1model.backend.names import Namer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from v1model import ir
    from v1model.backend.unit import Unit

INDENT = "    "


class Function:
    """Collector of the body of a C function; `text` puts the declarations before it."""

    def __init__(self, unit: Unit, signature: str, *, is_parser: bool = False) -> None:
        self.unit, self.signature, self.is_parser = unit, signature, is_parser
        self.arguments: dict[str, str] = {}  # parameters of the running action -> C
        self._lines: list[str] = []
        self._declarations: list[str] = []
        self._variables: dict[str, str] = {}
        self._names = Namer()
        self._used_labels: set[str] = set()
        self._depth = 1
        self._iterations = ""

    # --- lines ---------------------------------------------------------------------------------

    def emit(self, *lines: str) -> None:
        self._lines += [INDENT * self._depth + line for line in lines]

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Write `head {` ... `}` around the lines of the block; a bare block for head ""."""
        self.emit(f"{head} {{".lstrip())
        self._depth += 1
        yield
        self._depth -= 1
        self.emit("}")

    def text(self) -> list[str]:
        body = [line for line in self._lines if self._is_needed(line.strip())]
        return [f"{self.signature} {{", *(INDENT + line for line in self._declarations), *body, "}", ""]

    def _is_needed(self, line: str) -> bool:
        return not line.endswith(": ;") or line[:-3] in self._used_labels

    # --- names -----------------------------------------------------------------------------------

    def declare(self, variable: ir.Var) -> None:
        """Declare a local of the P4 block. It starts as 0, so that unset variables are not random."""
        name = self._names.unique(f"l_{variable.name}")
        self._variables[variable.name] = name
        initial = "0" if self.unit.types.is_scalar(variable.type) else "{0}"
        self._declarations.append(f"{self.unit.types.declaration(variable.type, name)} = {initial};")

    def variable(self, name: str) -> str:
        return self.arguments[name] if name in self.arguments else self._variables[name]

    def temporary(self, value_type: ir.Type) -> str:
        name = self._names.unique("t")
        self._declarations.append(f"{self.unit.types.declaration(value_type, name)};")
        return name

    def wide_temporary(self, width: int) -> str:
        name = self._names.unique("t")
        self._declarations.append(f"uint8_t {name}[{wire_bytes(width)}];")
        return name

    def iterations(self) -> str:
        """Return the name of the C variable that counts the iterations of the function's loops."""
        if not self._iterations:
            self._iterations = self._names.unique("iterations")
            self._declarations.append(f"uint32_t {self._iterations} = 0;")
        return self._iterations

    def name(self, wanted: str) -> str:
        """Return a C name that nothing else in this function has."""
        return self._names.unique(wanted)

    # --- jumps -----------------------------------------------------------------------------------

    def label(self, label: str) -> None:
        """Place a label; one without a jump to it is left out."""
        self.emit(f"{label}: ;")

    def goto(self, label: str) -> str:
        self._used_labels.add(label)
        return f"goto {label};"

    def check(self, failure: str, error: str) -> None:
        """Emit, in a parser, a stop with `error` if the C condition `failure` holds.

        Elsewhere P4 raises no error, and the checked access stays inside its array anyway.
        """
        if self.is_parser:
            self.emit(f"if ({failure}) {{ error = {self.unit.error(error)}; {self.goto('done')} }}")
