"""Commands of simple_switch_CLI for counters and meters; direct ones are indexed by entries' handles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.dataplane import CounterValue
from v1model.stf.names import find_whole
from v1model.stf.parser import parse_number
from v1model.stf.switch_commands import parse_rates, show_rates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from v1model import ir
    from v1model.dataplane import TableEntry
    from v1model.remote.data_plane import RemoteDataPlane
    from v1model.remote.tables import TableCommands
    from v1model.stf.switch_commands import SwitchCommands


class CounterAndMeterCommands:
    """Commands for direct counters and meters; others go to the commands of `switch`."""

    def __init__(
        self,
        data_plane: RemoteDataPlane,
        tables: TableCommands,
        switch: SwitchCommands,
        say: Callable[[str], None],
    ) -> None:
        self._data_plane, self._tables, self._switch, self._say = data_plane, tables, switch, say
        self.commands: dict[str, Callable[[Sequence[str]], None]] = {
            "counter_read": self._read_counter,
            "counter_write": self._write_counter,
            "counter_reset": self._reset_counter,
            "meter_get_rates": self._get_rates,
            "meter_set_rates": self._set_rates,
        }

    def _read_counter(self, words: Sequence[str]) -> None:
        counter = self._extern("counter", words[0])
        if counter.kind == "counter":
            self._switch.run("counter_read", words)
            return
        value = self._data_plane.direct_counter(self._entry(counter, words[1]))
        self._say(f"{counter.name}[{words[1]}] = {value.packets} packets, {value.bytes} bytes")

    def _write_counter(self, words: Sequence[str]) -> None:
        """Run counter_write COUNTER INDEX PACKETS BYTES."""
        counter = self._extern("counter", words[0])
        if counter.kind == "counter":
            self._switch.run("counter_write", words)
            return
        value = CounterValue(*map(parse_number, words[2:4]))
        self._data_plane.set_direct_counter(self._entry(counter, words[1]), value)

    def _reset_counter(self, words: Sequence[str]) -> None:
        """Run counter_reset COUNTER, for all of its elements."""
        counter = self._extern("counter", words[0])
        if counter.kind == "counter":
            for index in range(counter.size):
                self._data_plane.set_counter(counter.name, index, CounterValue())
            return
        for entry in self._tables.entries(self._table(counter)):
            self._data_plane.set_direct_counter(entry, CounterValue())

    def _get_rates(self, words: Sequence[str]) -> None:
        meter = self._extern("meter", words[0])
        if meter.kind == "meter":
            self._switch.run("meter_get_rates", words)
            return
        config = self._data_plane.direct_meter(self._entry(meter, words[1]))
        self._say(f"{meter.name}[{words[1]}]: {show_rates(config)}")

    def _set_rates(self, words: Sequence[str]) -> None:
        """Run meter_set_rates METER INDEX RATE:BURST RATE:BURST."""
        meter = self._extern("meter", words[0])
        if meter.kind == "meter":
            self._switch.run("meter_set_rates", words)
            return
        self._data_plane.set_direct_meter(self._entry(meter, words[1]), parse_rates(words[2:]))

    def _extern(self, kind: str, name: str) -> ir.ExternInstance:
        kinds = (kind, f"direct_{kind}")
        externs = self._data_plane.program.externs
        return find_whole([extern for extern in externs if extern.kind in kinds], name, kind)

    def _table(self, extern: ir.ExternInstance) -> str:
        for table in self._data_plane.program.tables:
            if extern.name in table.direct:
                return table.name
        raise ValueError(f"no table has {extern.name}")

    def _entry(self, extern: ir.ExternInstance, handle: str) -> TableEntry:
        return self._tables.located(self._table(extern), handle)[1]
