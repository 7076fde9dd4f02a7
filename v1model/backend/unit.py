"""State that the functions of one generated file share.

It has types, constants, and numbers for tables, externs and calls that take effect later (digests, clones,
log messages).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from v1model import ir
from v1model.backend.layout import wire_bytes
from v1model.backend.registers import layouts
from v1model.backend.tracing import TraceSite, Tracing
from v1model.backend.types import Types
from v1model.errors import UnsupportedError

# The runtime's array for the instances of each kind of extern.
ARRAYS = {
    "register": "register",
    "counter": "counter",
    "meter": "meter",
    "action_profile": "profile",
    "action_selector": "profile",
    "direct_counter": "direct_counter",
    "direct_meter": "direct_meter",
}


@dataclass(frozen=True, slots=True)
class LoggedNumber:
    """Number in a message, in whole bytes."""

    width: int
    signed: bool = False


@dataclass(frozen=True, slots=True)
class LoggedVarbit:
    """Varbit in a message: its length in bits, in four bytes, and as many bytes as it can have."""

    max_width: int


@dataclass(frozen=True, slots=True)
class LoggedRecord:
    """Struct, tuple, header, union or stack in a message: its parts by name.

    A header begins with a byte that says whether it is valid.
    """

    parts: tuple[tuple[str, Logged], ...]
    is_header: bool = False


Logged = LoggedNumber | LoggedVarbit | LoggedRecord | str  # a string is shown as it is


@dataclass(frozen=True, slots=True)
class LogMessage:
    """Message of log_msg, assert or assume: `text` with {} for each of `values`."""

    text: str
    values: tuple[Logged, ...] = ()
    is_failure: bool = False


MAX_CUSTOM_CRCS = 64  # CUSTOM_CRCS in runtime/switch.h


@dataclass
class Unit:
    """State collected while functions are generated, and written out by `program.generate`."""

    program: ir.Program
    tracing: Tracing = Tracing.OFF
    trace_sites: list[TraceSite] = field(default_factory=list)
    types: Types = field(default_factory=Types)
    constants: list[str] = field(default_factory=list)
    messages: list[LogMessage] = field(default_factory=list)
    custom_crcs: list[int] = field(default_factory=list)  # bits of each call of a custom CRC
    kept: list[tuple[ir.Expr, ...]] = field(default_factory=list)  # by site - 1
    digest_calls: list[tuple[int, tuple[ir.Expr, ...]]] = field(default_factory=list)  # (digest, leaves)
    captures: list[str] = field(default_factory=list)  # members of struct phv: values of locals

    def __post_init__(self) -> None:
        self.tables = {table.name: number for number, table in enumerate(self.program.tables)}
        # The runtime stores value sets as tables after the program's own.
        self.value_sets = {
            value_set.name: (value_set.as_table(), number)
            for number, value_set in enumerate(self.program.value_sets, start=len(self.tables))
        }
        self.custom_objects = {made.name: number for number, made in enumerate(self.program.custom_objects)}
        self.externs: dict[str, tuple[ir.ExternInstance, int]] = {}
        counts: dict[str, int] = {}
        for instance in self.program.externs:
            array = ARRAYS[instance.kind]
            self.externs[instance.name] = instance, counts.get(array, 0)
            counts[array] = counts.get(array, 0) + 1
        self.registers = layouts(self.instances("register"))
        self._wide_constants: dict[tuple[int, int], str] = {}

    def instances(self, array: str) -> list[ir.ExternInstance]:
        """Return the externs of one of the runtime's arrays, in order of their numbers."""
        return [instance for instance in self.program.externs if ARRAYS[instance.kind] == array]

    def error(self, name: str) -> int:
        """Return the number of a core error; that of NoError if the program's core.p4 does not declare it."""
        names = [error.rpartition(".")[2] for error in self.program.errors]
        return names.index(name) if name in names else 0

    def wide_constant(self, value: int, width: int) -> str:
        key = (value, width)
        if key not in self._wide_constants:
            name = f"k{len(self._wide_constants)}"
            digits = ", ".join(f"{byte:#x}" for byte in value.to_bytes(wire_bytes(width), "big"))
            self.constants.append(f"static const uint8_t {name}[{wire_bytes(width)}] = {{{digits}}};")
            self._wide_constants[key] = name
        return self._wide_constants[key]

    def keep_site(self, kept: tuple[ir.Expr, ...]) -> int:
        """Return a number (from 1) for a call that keeps these l-values in the packet's next pass."""
        self.kept.append(kept)
        return len(self.kept)

    def custom_crc(self, bits: int) -> int:
        """Return the number of a call of crc16_custom or crc32_custom, whose parameters can be set."""
        if len(self.custom_crcs) == MAX_CUSTOM_CRCS:
            raise UnsupportedError(f"more than {MAX_CUSTOM_CRCS} calls with crc16_custom or crc32_custom")
        self.custom_crcs.append(bits)
        return len(self.custom_crcs) - 1

    def message(self, message: LogMessage) -> int:
        self.messages.append(message)
        return len(self.messages) - 1

    def digest_number(self, name: str) -> int:
        return [digest.name for digest in self.program.digests].index(name)

    def algorithm(self, value: ir.Expr) -> str:
        """Return the name of a HashAlgorithm constant."""
        if not isinstance(value, ir.Const):
            raise UnsupportedError("the hash algorithm must be a constant")
        if isinstance(value.value, str):
            return value.value.rpartition(".")[2]
        return self.program.enums["HashAlgorithm"][value.value].rpartition(".")[2]
