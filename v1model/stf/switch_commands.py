"""simple_switch_CLI's commands, as STF files use them, on a data plane."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from v1model.command_usage import check_count
from v1model.dataplane import CounterValue, MeterConfig
from v1model.multicast_nodes import MulticastNodes
from v1model.stf.names import find_whole
from v1model.stf.parser import parse_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Protocol

    from v1model import ir
    from v1model.dataplane import DataPlane

    class Nodes(Protocol):
        """MulticastNodes, of this process or of another."""

        def create_group(self, group: int) -> None: ...
        def destroy_group(self, group: int) -> None: ...
        def create_node(self, instance: int, ports: Iterable[int]) -> int: ...
        def update_node(self, handle: int, ports: Iterable[int]) -> None: ...
        def destroy_node(self, handle: int) -> None: ...
        def associate(self, group: int, handle: int) -> None: ...
        def dissociate(self, group: int, handle: int) -> None: ...
        def mirror(self, session: int, group: int) -> None: ...
        def mirror_to_port(self, session: int, port: int) -> None: ...
        def end_mirror(self, session: int) -> None: ...


MICROSECONDS_PER_S = 1_000_000
_RATE = re.compile(r"(\d{1,12}\.?\d*|\.\d+)(e-?\d{1,2})?")


class SwitchCommands:
    """Commands of simple_switch_CLI on a data plane.

    Multicast nodes get handles from 0 in order of their creation, as in BMv2.
    """

    def __init__(
        self,
        data_plane: DataPlane,
        say: Callable[[str], None] | None = None,
        nodes: Nodes | None = None,
    ) -> None:
        """Make the commands.

        `say` takes the output of commands that show something; with None it is discarded. `nodes` are the
        switch's, if they are stored elsewhere.
        """
        self._data_plane, self._say = data_plane, say or (lambda _: None)
        self._nodes: Nodes = nodes or MulticastNodes(data_plane)
        self._run: dict[str, Callable[[Sequence[str]], None]] = {
            "mirroring_add": self._mirroring_add,
            "mirroring_add_mc": self._mirroring_add_mc,
            "mirroring_delete": self._mirroring_delete,
            "mirroring_get": self._mirroring_get,
            "mc_mgrp_create": self._group_create,
            "mc_mgrp_destroy": self._group_destroy,
            "mc_dump": self._group_dump,
            "mc_node_create": self._node_create,
            "mc_node_update": self._node_update,
            "mc_node_associate": self._node_associate,
            "mc_node_dissociate": self._node_dissociate,
            "mc_node_destroy": self._node_destroy,
            "counter_read": self._counter_read,
            "counter_write": self._counter_write,
            "register_read": self._register_read,
            "register_write": self._register_write,
            "register_reset": self._register_reset,
            "meter_get_rates": self._meter_get_rates,
            "meter_set_rates": self._meter_set_rates,
            "meter_array_set_rates": self._meter_array_set_rates,
        }

    def run(self, name: str, arguments: Sequence[str]) -> None:
        """Run a command; raises ValueError or DataPlaneError."""
        if name not in self._run:
            raise ValueError(f"unknown command {name}")
        check_count(name, arguments)
        self._run[name](arguments)

    def names(self) -> Iterable[str]:
        return self._run.keys()

    def _mirroring_get(self, arguments: Sequence[str]) -> None:
        session = parse_number(arguments[0])
        config = self._data_plane.clone_sessions().get(session)
        if config is None:
            raise ValueError(f"no clone session {session}")
        ports = ", ".join(f"port {replica.port}" for replica in config.replicas)
        self._say(f"session {session}: {ports or 'nowhere'}")

    def _counter_read(self, arguments: Sequence[str]) -> None:
        counter, index = self._extern("counter", arguments[0]), parse_number(arguments[1])
        value = self._data_plane.counter(counter.name, index)
        self._say(f"{counter.name}[{index}] = {value.packets} packets, {value.bytes} bytes")

    def _register_read(self, arguments: Sequence[str]) -> None:
        """Show one cell, or all."""
        register = self._extern("register", arguments[0])
        if len(arguments) > 1:
            index = parse_number(arguments[1])
            self._say(f"{register.name}[{index}] = {self._data_plane.register(register.name, index)}")
        else:
            values = (self._data_plane.register(register.name, index) for index in range(register.size))
            self._say(f"{register.name} = {', '.join(map(str, values))}")

    def _meter_get_rates(self, arguments: Sequence[str]) -> None:
        meter, index = self._extern("meter", arguments[0]), parse_number(arguments[1])
        config = self._data_plane.meter(meter.name, index)
        self._say(f"{meter.name}[{index}]: {show_rates(config)}")

    def _group_destroy(self, arguments: Sequence[str]) -> None:
        self._nodes.destroy_group(parse_number(arguments[0]))

    def _group_dump(self, _: Sequence[str]) -> None:
        for group, replicas in sorted(self._data_plane.multicast_groups().items()):
            shown = ", ".join(f"port {replica.port} (rid {replica.instance})" for replica in replicas)
            self._say(f"group {group}: {shown}")

    def _mirroring_add(self, arguments: Sequence[str]) -> None:
        session, port = map(parse_number, arguments[:2])
        self._nodes.mirror_to_port(session, port)

    def _mirroring_add_mc(self, arguments: Sequence[str]) -> None:
        session, group = map(parse_number, arguments[:2])
        self._nodes.mirror(session, group)

    def _mirroring_delete(self, arguments: Sequence[str]) -> None:
        self._nodes.end_mirror(parse_number(arguments[0]))

    def _group_create(self, arguments: Sequence[str]) -> None:
        self._nodes.create_group(parse_number(arguments[0]))

    def _node_create(self, arguments: Sequence[str]) -> None:
        handle = self._nodes.create_node(parse_number(arguments[0]), map(parse_number, arguments[1:]))
        self._say(f"node was created with handle {handle}")

    def _node_update(self, arguments: Sequence[str]) -> None:
        self._nodes.update_node(parse_number(arguments[0]), map(parse_number, arguments[1:]))

    def _node_associate(self, arguments: Sequence[str]) -> None:
        self._nodes.associate(*map(parse_number, arguments[:2]))

    def _node_dissociate(self, arguments: Sequence[str]) -> None:
        self._nodes.dissociate(*map(parse_number, arguments[:2]))

    def _node_destroy(self, arguments: Sequence[str]) -> None:
        self._nodes.destroy_node(parse_number(arguments[0]))

    def _counter_write(self, arguments: Sequence[str]) -> None:
        counter = self._extern("counter", arguments[0])
        index, packets, byte_count = map(parse_number, arguments[1:4])
        self._data_plane.set_counter(counter.name, index, CounterValue(packets, byte_count))

    def _register_write(self, arguments: Sequence[str]) -> None:
        register = self._extern("register", arguments[0])
        index, value = map(parse_number, arguments[1:3])
        self._data_plane.set_register(register.name, index, value)

    def _register_reset(self, arguments: Sequence[str]) -> None:
        register = self._extern("register", arguments[0])
        for index in range(register.size):
            self._data_plane.set_register(register.name, index, 0)

    def _meter_set_rates(self, arguments: Sequence[str]) -> None:
        meter = self._extern("meter", arguments[0])
        self._data_plane.set_meter(meter.name, parse_number(arguments[1]), parse_rates(arguments[2:]))

    def _meter_array_set_rates(self, arguments: Sequence[str]) -> None:
        meter = self._extern("meter", arguments[0])
        for index in range(meter.size):
            self._data_plane.set_meter(meter.name, index, parse_rates(arguments[1:]))

    def _extern(self, kind: str, name: str) -> ir.ExternInstance:
        externs = self._data_plane.program.externs
        return find_whole([extern for extern in externs if extern.kind == kind], name, kind)


def show_rates(config: MeterConfig | None) -> str:
    """Return the rates in the form that `parse_rates` reads."""
    if config is None:
        return "no rates"
    rates = ((config.cir, config.cburst), (config.pir, config.pburst))
    return ", ".join(f"{rate / MICROSECONDS_PER_S:g}:{burst}" for rate, burst in rates)


def parse_rates(texts: Sequence[str]) -> MeterConfig:
    """Return the rates of two texts RATE:BURST, the committed one first, in units per microsecond."""
    rates = []
    for text in texts:
        rate, _, burst = text.partition(":")
        if not _RATE.fullmatch(rate):
            raise ValueError(f"{text!r}: RATE:BURST is expected, two numbers")
        rates.append((round(float(rate) * MICROSECONDS_PER_S), parse_number(burst)))
    if not rates:
        raise ValueError("no rates: RATE:BURST is expected")
    (cir, cburst), (pir, pburst) = rates[0], rates[-1]
    return MeterConfig(cir, cburst, pir, pburst)
