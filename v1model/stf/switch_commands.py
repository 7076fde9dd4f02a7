"""simple_switch_CLI's commands, as STF files use them, on a data plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.dataplane import CloneSession, CounterValue, MeterConfig, Replica
from v1model.stf.names import find
from v1model.stf.parser import parse_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from v1model import ir
    from v1model.dataplane import DataPlane

MICROSECONDS_PER_S = 1_000_000


class SwitchCommands:
    """Multicast nodes get handles from 0 in order of their creation, as in BMv2."""

    def __init__(self, data_plane: DataPlane, say: Callable[[str], None] | None = None) -> None:
        """`say`: for commands that only show something; None: nobody reads it."""
        self._data_plane, self._say = data_plane, say or (lambda _: None)
        self._nodes: list[tuple[Replica, ...]] = []
        self._groups: dict[int, list[int]] = {}  # group: handles of its nodes
        self._group_sessions: dict[int, int] = {}  # clone session: multicast group
        self._run: dict[str, tuple[int, Callable[[Sequence[str]], None]]] = {
            "mirroring_add": (2, self._mirroring_add),
            "mirroring_add_mc": (2, self._mirroring_add_mc),
            "mirroring_delete": (1, self._mirroring_delete),
            "mirroring_get": (1, self._mirroring_get),
            "mc_mgrp_create": (1, self._group_create),
            "mc_mgrp_destroy": (1, self._group_destroy),
            "mc_dump": (0, self._group_dump),
            "mc_node_create": (2, self._node_create),
            "mc_node_update": (2, self._node_update),
            "mc_node_associate": (2, self._node_associate),
            "counter_read": (2, self._counter_read),
            "counter_write": (4, self._counter_write),
            "register_read": (1, self._register_read),
            "register_write": (3, self._register_write),
            "register_reset": (1, self._register_reset),
            "meter_get_rates": (2, self._meter_get_rates),
            "meter_set_rates": (3, self._meter_set_rates),
            "meter_array_set_rates": (2, self._meter_array_set_rates),
        }

    def run(self, name: str, arguments: Sequence[str]) -> None:
        """Raises ValueError or DataPlaneError."""
        if name not in self._run:
            raise ValueError(f"unknown command {name}")
        minimum, command = self._run[name]
        if len(arguments) < minimum:
            raise ValueError(f"{name} takes {minimum} arguments or more")
        command(arguments)

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
        """One cell, or all."""
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
        if config is None:
            self._say(f"{meter.name}[{index}]: no rates")
        else:
            rates = ((config.cir, config.cburst), (config.pir, config.pburst))
            shown = ", ".join(f"{rate / MICROSECONDS_PER_S:g}:{burst}" for rate, burst in rates)
            self._say(f"{meter.name}[{index}]: {shown}")

    def _group_destroy(self, arguments: Sequence[str]) -> None:
        group = parse_number(arguments[0])
        self._groups.pop(group, None)
        self._data_plane.set_multicast_group(group, None)

    def _group_dump(self, _: Sequence[str]) -> None:
        for group, replicas in sorted(self._data_plane.multicast_groups().items()):
            shown = ", ".join(f"port {replica.port} (rid {replica.instance})" for replica in replicas)
            self._say(f"group {group}: {shown}")

    def _mirroring_add(self, arguments: Sequence[str]) -> None:
        session, port = map(parse_number, arguments[:2])
        self._data_plane.set_clone_session(session, CloneSession((Replica(port),)))

    def _mirroring_add_mc(self, arguments: Sequence[str]) -> None:
        session, group = map(parse_number, arguments[:2])
        self._group_sessions[session] = group
        self._update_group(group)

    def _mirroring_delete(self, arguments: Sequence[str]) -> None:
        session = parse_number(arguments[0])
        self._group_sessions.pop(session, None)
        self._data_plane.set_clone_session(session, None)

    def _group_create(self, arguments: Sequence[str]) -> None:
        group = parse_number(arguments[0])
        self._groups[group] = []
        self._update_group(group)

    def _node_create(self, arguments: Sequence[str]) -> None:
        self._nodes.append(_replicas(arguments[0], arguments[1:]))
        self._say(f"node was created with handle {len(self._nodes) - 1}")

    def _node_update(self, arguments: Sequence[str]) -> None:
        handle = self._handle(arguments[0])
        instance = self._nodes[handle][0].instance if self._nodes[handle] else 0
        self._nodes[handle] = _replicas(str(instance), arguments[1:])
        for group, handles in self._groups.items():
            if handle in handles:
                self._update_group(group)

    def _node_associate(self, arguments: Sequence[str]) -> None:
        group = parse_number(arguments[0])
        if group not in self._groups:
            raise ValueError(f"no multicast group {group}")
        self._groups[group].append(self._handle(arguments[1]))
        self._update_group(group)

    def _update_group(self, group: int) -> None:
        replicas = tuple(r for handle in self._groups.get(group, []) for r in self._nodes[handle])
        if group in self._groups:
            self._data_plane.set_multicast_group(group, replicas)
        for session, session_group in self._group_sessions.items():
            if session_group == group:
                self._data_plane.set_clone_session(session, CloneSession(replicas))

    def _handle(self, text: str) -> int:
        handle = parse_number(text)
        if handle >= len(self._nodes):
            raise ValueError(f"no multicast node {handle}")
        return handle

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
        self._data_plane.set_meter(meter.name, parse_number(arguments[1]), _rates(arguments[2:]))

    def _meter_array_set_rates(self, arguments: Sequence[str]) -> None:
        meter = self._extern("meter", arguments[0])
        for index in range(meter.size):
            self._data_plane.set_meter(meter.name, index, _rates(arguments[1:]))

    def _extern(self, kind: str, name: str) -> ir.ExternInstance:
        externs = self._data_plane.program.externs
        return find([extern for extern in externs if extern.kind == kind], name, kind)


def _replicas(instance: str, ports: Sequence[str]) -> tuple[Replica, ...]:
    """BMv2 keeps a node's ports as a bit map, so copies come in the order of ports."""
    return tuple(Replica(port, parse_number(instance)) for port in sorted(map(parse_number, ports)))


def _rates(texts: Sequence[str]) -> MeterConfig:
    """RATE:BURST twice, the committed one first; rates in units per microsecond."""
    rates = []
    for text in texts:
        rate, _, burst = text.partition(":")
        rates.append((round(float(rate) * MICROSECONDS_PER_S), parse_number(burst)))
    if not rates:
        raise ValueError("no rates: RATE:BURST is expected")
    (cir, cburst), (pir, pburst) = rates[0], rates[-1]
    return MeterConfig(cir, cburst, pir, pburst)
