"""Executor of an STF file's statements on a switch, which compares the packets that come out.

As in p4c's harness, statements run in order and the packets of each port are compared at the end. Packets out
of ports that the file never names don't count.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from typing import TYPE_CHECKING, Protocol

from v1model import ir
from v1model.dataplane import DataPlaneError, TableEntry
from v1model.stf.names import default_match, find, find_key, parse_match
from v1model.stf.parser import parse_number
from v1model.stf.statements import (
    Add,
    CheckCounter,
    Command,
    Expect,
    NoPacket,
    Packet,
    RemoveAll,
    SetDefault,
    StfError,
)
from v1model.stf.switch_commands import SwitchCommands

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from v1model.dataplane import DataPlane
    from v1model.stf.statements import Invocation, Statement

_RELATIONS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Target(Protocol):
    """Switch with a program, for the executor."""

    @property
    def data_plane(self) -> DataPlane: ...

    def send(self, port: int, data: bytes) -> None:
        """Send a packet into a port."""

    def received(self, expected: Mapping[int, int]) -> Mapping[int, Sequence[bytes]]:
        """Return all packets that came out so far, by port.

        `expected` says how many to wait for, if the switch runs at its own pace.
        """


class Executor:
    """Executor of STF statements on a target."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._program = target.data_plane.program
        self._commands = SwitchCommands(target.data_plane)
        self._expected: dict[int, list[Expect]] = defaultdict(list)
        self._ports: set[int] = set()
        self._no_packet = False
        self._labels: dict[str, TableEntry] = {}

    def run(self, statements: Iterable[Statement]) -> None:
        """Run the statements; raises StfError at the first that can't be done or is not fulfilled."""
        for statement in statements:
            try:
                self._do(statement)
            except (ValueError, DataPlaneError) as error:
                raise StfError(statement.line, str(error)) from error
        self._compare()

    def _do(self, statement: Statement) -> None:
        if isinstance(statement, Packet):
            self._ports.add(statement.port)
            self._target.send(statement.port, statement.data)
        elif isinstance(statement, Expect):
            self._ports.add(statement.port)
            self._expected[statement.port].append(statement)
        elif isinstance(statement, NoPacket):
            self._no_packet = True
        elif isinstance(statement, Add):
            entry = self._entry(statement)
            self._target.data_plane.insert(entry)
            self._labels[statement.label] = entry
        elif isinstance(statement, SetDefault):
            table = find(self._program.tables, statement.table, "table")
            self._target.data_plane.set_default(table.name, self._call(table, statement.action))
        elif isinstance(statement, RemoveAll):
            self._remove_all()
        elif isinstance(statement, CheckCounter):
            self._check_counter(statement)
        elif isinstance(statement, Command):
            self._commands.run(statement.name, statement.arguments)

    def _entry(self, statement: Add) -> TableEntry:
        table = find(self._program.tables, statement.table, "table")
        matches = [default_match(key) for key in table.keys]
        for name, text in statement.matches:
            position = find_key(table.keys, name)
            matches[position] = parse_match(table.keys[position], text)
        call = self._call(table, statement.action)
        priority = 0
        if any(key.match_kind in ("ternary", "range", "optional") for key in table.keys):
            priority = (statement.priority or 0) + 1  # P4Runtime's priorities begin at 1
        return TableEntry(table.name, tuple(matches), call, priority)

    def _call(self, table: ir.Table, invocation: Invocation) -> ir.ActionCall:
        names = {action.action for action in table.actions}
        action = find([a for a in self._program.actions if a.name in names], invocation.action, "action")
        given = dict(invocation.arguments)
        if set(given) != {param.name for param in action.params}:
            wanted = ", ".join(param.name for param in action.params) or "none"
            raise ValueError(f"arguments of {action.name}: {wanted}")
        values = [parse_number(given[param.name]) for param in action.params]
        for param, value in zip(action.params, values, strict=True):
            if value >> param.type.width:
                raise ValueError(f"{param.name}:{given[param.name]} does not fit {param.type.width} bits")
        return ir.ActionCall(action.name, tuple(values))

    def _remove_all(self) -> None:
        for table in self._program.tables:
            for entry in list(self._target.data_plane.entries(table.name)):
                if not entry.is_const and not table.entries_are_const:
                    self._target.data_plane.delete(entry)

    def _check_counter(self, statement: CheckCounter) -> None:
        self._received()  # so that sent packets have been counted
        kinds = ("counter", "direct_counter")
        counters = [extern for extern in self._program.externs if extern.kind in kinds]
        counter = find(counters, statement.counter, "counter")
        if counter.kind == "direct_counter":
            value = self._target.data_plane.direct_counter(self._labelled(statement.index))
        else:
            value = self._target.data_plane.counter(counter.name, parse_number(statement.index))
        number = value.packets if statement.unit == "packets" else value.bytes
        if not _RELATIONS[statement.relation](number, statement.value):
            raise ValueError(
                f"{counter.name}({statement.index}) has {number} {statement.unit}, "
                f"expected {statement.relation} {statement.value}"
            )

    def _labelled(self, index: str) -> TableEntry:
        label = index.removeprefix("$")
        if label not in self._labels:
            raise ValueError(f"no entry has the label {label}: add it with `= {label}` at its end")
        return self._labels[label]

    def _received(self) -> Mapping[int, Sequence[bytes]]:
        return self._target.received({port: len(expects) for port, expects in self._expected.items()})

    def _compare(self) -> None:
        received = self._received()
        ports = self._ports | (set(received) if self._no_packet else set())
        for port in sorted(ports):
            packets, expects = received.get(port, ()), self._expected.get(port, [])
            for index, (packet, expect) in enumerate(zip(packets, expects, strict=False), 1):
                if reason := difference(packet, expect):
                    raise StfError(expect.line, f"port {port}, packet {index}: {reason}")
            if len(packets) < len(expects):
                missing = expects[len(packets)]
                raise StfError(
                    missing.line, f"port {port}: {len(packets)} of {len(expects)} packets came out"
                )
            if len(packets) > len(expects):
                extra = packets[len(expects)].hex()
                raise StfError(
                    0, f"port {port}: {len(expects)} packets expected, {len(packets)} came out: {extra}"
                )


def difference(packet: bytes, expect: Expect) -> str:
    """Return why a packet is not the expected one; "" if it is."""
    if expect.digits is None:
        return ""
    digits = packet.hex().upper()
    if len(digits) < len(expect.digits) or (expect.exact and len(digits) > len(expect.digits)):
        return f"{len(digits)} hex digits, expected {len(expect.digits)}: {digits}"
    for index, (got, wanted) in enumerate(zip(digits, expect.digits, strict=False)):
        if wanted not in ("*", got):
            return f"differs at hex digit {index}:\n    expected {expect.digits}\n    got      {digits}"
    return ""
