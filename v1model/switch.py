"""A compiled program in a switch: control interface, packets by function calls (library form), ports.

The control interface is that of `v1model.dataplane`. Ports may be network interfaces.

    switch = Switch(compile_p4("pool.p4"))
    outputs = switch.inject(1, frame)
"""

from __future__ import annotations

import ctypes
import struct
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from v1model.backend import Tracing
from v1model.binding.arrays import Arrays
from v1model.binding.digests import Digests
from v1model.binding.events import Event, Events
from v1model.binding.library import NOW, PORTS, Handle, Library
from v1model.binding.ports import MAX_FRAME_BYTES, Statistics, attach_error, port_statistics
from v1model.binding.profiles import Profiles
from v1model.binding.queues import PRIORITIES, Queues
from v1model.binding.replication import Replication
from v1model.binding.tables import Tables
from v1model.binding.value_sets import ValueSets
from v1model.binding.writer import EntryWriter
from v1model.dataplane import DataPlaneError, Output
from v1model.precedence import FORWARDING, come_forward
from v1model.trace.decoder import Decoder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from v1model.backend import CompiledProgram
    from v1model.binding.queues import QueueState
    from v1model.dataplane import (
        CloneSession,
        CounterValue,
        CustomCrc,
        DigestConfig,
        Group,
        Matches,
        Member,
        MeterConfig,
        MeterCounts,
        Replica,
        TableEntry,
        WireTable,
    )
    from v1model.ir import ActionCall
    from v1model.trace.events import TraceEvent, TraceFilter

DROP_PORT = 511
ANY_PORT = 0xFFFFFFFF
CPU_PORT = 510

# enum drop_cause in runtime/switch.h
DROP_CAUSES = (
    "ingress",
    "egress",
    "no_replicas",
    "no_port",
    "no_buffer",
    "again_queue_full",
    "too_many_passes",
    "endless_loop",
    "assertion_failed",
    "oversize",
    "transmit",
    "beyond_mtu",
    "queue_full",
    "event_queue_full",
)
_RECORD = struct.Struct("=2IQ")


class Switch:
    """Switch with the state of its program, independent of all others in the process.

    Methods without a docstring are those of `v1model.dataplane.DataPlane`, which describes them. It is
    thread-safe. Every control call is atomic against packets. `cpu_port` is the port for packets to the
    control plane; `max_frame_bytes` is the longest accepted frame. Use it as a context manager, or `close`
    it: that stops forwarding and frees everything.
    """

    def __init__(
        self, compiled: CompiledProgram, cpu_port: int = CPU_PORT, *, max_frame_bytes: int = MAX_FRAME_BYTES
    ) -> None:
        self.compiled, self.program = compiled, compiled.program
        self.cpu_port = cpu_port
        library = Library(compiled.quick or compiled.library)
        pointer = library.create(cpu_port, max_frame_bytes)
        if not pointer:
            raise DataPlaneError("RESOURCE_EXHAUSTED", "no memory for the program's registers and tables")
        self.handle = Handle(library, pointer)
        self._lock = threading.RLock()
        self._forwarding: threading.Thread | None = None
        self._interfaces: dict[int, str] = {}
        self._closed = False
        self._profiles = Profiles(self.handle, self.program)
        self._tables = Tables(self.handle, self.program, self._profiles)
        self._value_sets = ValueSets(self.handle, self.program)
        self._arrays = Arrays(self.handle, self.program)
        self._replication = Replication(self.handle)
        self._queues = Queues(self.handle)
        self._digests = Digests(self.handle, self.program)
        decoder = Decoder(self.program, compiled.trace_sites, DROP_CAUSES, self._tables.by_handle)
        self._events = Events(
            self.handle, self._tables, self._profiles, self._digests, compiled.messages, decoder
        )

    def __enter__(self) -> Switch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop forwarding and free the switch. Later calls, except `close`, raise DataPlaneError."""
        self.stop()
        with self._lock:
            if not self._closed:
                self._closed = True
                self._events.close()
                self.handle.destroy()

    @property
    def is_forwarding(self) -> bool:
        """Return whether interfaces are served."""
        return self._forwarding is not None

    @property
    def is_closed(self) -> bool:
        return self._closed

    def go_over(self, compiled: CompiledProgram) -> None:
        """Continue with another build of the same program. State, ports and packets in flight stay."""
        library = Library(compiled.library)
        with self._lock, self._paused():
            self.handle.go_over(library)
            self.compiled = compiled

    def reset(self) -> None:
        with self._lock:
            self.handle.call("reset")
            for part in (self._profiles, self._value_sets, self._arrays, self._replication):
                part.clear()
            self._digests.clear()
            self._events.clear()
            self._tables.load_initial()

    # --- packets ---------------------------------------------------------------------------------

    def inject(self, port: int, data: bytes, timestamp_us: int | None = None) -> list[Output]:
        """Run one packet to completion; returns the packets that left by unattached ports, in order.

        `timestamp_us` is the time that the program sees (default: now). While interfaces are served
        (`start`), the packet joins their packets and nothing is returned.
        """
        if not 0 <= port < PORTS:
            raise DataPlaneError("INVALID_ARGUMENT", f"port {port} is not within 0..{PORTS - 1}")
        with self._lock:
            self.handle.call("inject", port, data, len(data), _time_us(timestamp_us))
            self._events.collect()
            return _outputs(self.handle.read("take_outputs"))

    def set_clock(self, now_us: int | None) -> None:
        """Stop the switch's clock at `now_us`, in microseconds since its start, until the next call.

        With None it is the machine's clock again. Meters, idle timeouts and packets without a time use this
        clock.
        """
        with self._lock:
            self.handle.call("set_clock", _time_us(now_us))

    def advance(self, until_us: int | None = None) -> list[Output]:
        """Advance the time to `until_us`, or (None) until no packet waits in queues; returns what left by
        then.
        """
        with self._lock:
            self.handle.call("serve_queues", _time_us(until_us), until_us is not None)
            self._events.collect()
            return _outputs(self.handle.read("take_outputs"))

    # --- queues ----------------------------------------------------------------------------------

    def enable_queues(self, priorities: int = PRIORITIES) -> None:
        """Put queues between ingress and egress, one for each port and priority.

        Larger values of standard_metadata.priority use the last queue. No packet waits in them until a port
        is limited.
        """
        with self._lock:
            self._queues.enable(priorities)

    def limit_queues(
        self, limits: Mapping[str, int], port: int | None = None, priority: int | None = None
    ) -> None:
        """Change limits of one port or all, of one priority or all, and enable queues.

        `binding.queues.QueueLimits` has the names. Rates without a priority are those of the whole port.
        """
        with self._lock:
            self._queues.limit(limits, port, priority)

    def queue_state(self, port: int, priority: int) -> QueueState:
        with self._lock:
            return self._queues.state(port, priority)

    # --- packets for and of the control plane ----------------------------------------------------

    def packet_out(self, data: bytes) -> None:
        if not 0 <= self.cpu_port < PORTS:
            raise DataPlaneError("FAILED_PRECONDITION", "the switch has no CPU port (--cpu-port)")
        with self._lock:
            self.handle.call("inject", self.cpu_port, data, len(data), NOW)

    def take_outputs(self) -> list[Output]:
        """Return the packets that left because of `packet_out`, and those that left queues by now."""
        with self._lock:
            if self._queues.priorities:
                self.handle.call("serve_queues", self.handle.call("now_us"), False)
            return _outputs(self.handle.read("take_outputs"))

    def wait_events(self, timeout_s: float) -> list[Event]:
        return self._events.wait(timeout_s)

    def interrupt_wait(self) -> None:
        self._events.interrupt()

    # --- traces ----------------------------------------------------------------------------------

    def trace(self, wanted: TraceFilter | None, on_event: Callable[[TraceEvent], None] | None = None) -> None:
        """Trace the packets that match `wanted` (None: none) of a program compiled with `tracing`.

        Events go to `on_event`, in whichever thread collects them, or wait for `take_trace`: the last 65,536.
        """
        if wanted is not None and self.compiled.tracing is Tracing.OFF:
            raise DataPlaneError("FAILED_PRECONDITION", "the program is not compiled to be traced (tracing=)")
        with self._lock:
            self._events.on_trace = on_event or self._events.traces.append
            value, mask = wanted.pattern() if wanted else (b"", b"")
            port = ANY_PORT if wanted is None or wanted.port is None else wanted.port
            self.handle.call("trace", wanted is not None, port, value, mask, len(value))

    def take_trace(self) -> list[TraceEvent]:
        """Return the events since the last call."""
        with self._lock:
            self._events.collect()
            events = list(self._events.traces)
            self._events.traces.clear()
            return events

    # --- interfaces ------------------------------------------------------------------------------

    def attach(self, port: int, interface: str) -> None:
        """Make a network interface a port; needs CAP_NET_RAW.

        The interface's checksum and segmentation offloads must be off: the switch would see unfinished
        frames.
        """
        if not 0 <= port < PORTS or port in (DROP_PORT, self.cpu_port):
            raise DataPlaneError("INVALID_ARGUMENT", f"port {port} can't be an interface")
        if port in self._interfaces:
            raise DataPlaneError("ALREADY_EXISTS", f"port {port} is {self._interfaces[port]} already")
        with self._lock, self._paused():
            code = self.handle.call("attach", port, interface.encode())
            if code:
                raise DataPlaneError("FAILED_PRECONDITION", attach_error(port, interface, code))
            self._interfaces[port] = interface

    def detach(self, port: int) -> None:
        with self._lock, self._paused():
            if self._interfaces.pop(port, None) is None:
                raise DataPlaneError("NOT_FOUND", f"port {port} is not attached")
            self.handle.call("detach", port)

    @contextmanager
    def _paused(self) -> Iterator[None]:
        """Forward nothing during the block; arriving packets wait in the sockets."""
        was_running = self._forwarding is not None
        self.stop()
        try:
            yield
        finally:
            if was_running:
                self.start()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Process no packet during the block; those that arrive wait."""
        with self._lock, self._paused():
            yield

    def start(self) -> None:
        """Forward packets between the attached interfaces, in a thread without the GIL."""
        with self._lock:
            if self._forwarding is None:
                self.handle.call("keep_running", 1)
                self._forwarding = threading.Thread(target=self._forward, name=FORWARDING, daemon=True)
                self._forwarding.start()

    def _forward(self) -> None:
        come_forward()
        self.handle.call("forward")

    def stop(self) -> None:
        with self._lock:
            if self._forwarding is not None:
                self.handle.call("keep_running", 0)
                self._forwarding.join()
                self._forwarding = None

    def statistics(self) -> Statistics:
        """Return counts of drops by cause, of ports, and of queues by port and priority.

        {"drops": {cause: packets}, "ports": {port: {"interface": ..., "received_packets": ...}},
        "queues": {port: {priority: {"packets": ...}}}}
        """
        with self._lock:
            drops = {cause: int(self.handle.call("drops", i)) for i, cause in enumerate(DROP_CAUSES)}
            ports = {
                port: port_statistics(self.handle, port, interface)
                for port, interface in self._interfaces.items()
            }
            return {"drops": drops, "ports": ports, "queues": self._queues.statistics()}

    # --- tables ----------------------------------------------------------------------------------

    def insert(self, entry: TableEntry) -> None:
        with self._lock:
            self._tables.insert(entry)
            self._expect_idle(entry)

    def modify(self, entry: TableEntry) -> None:
        with self._lock:
            self._tables.modify(entry)
            self._expect_idle(entry)

    def _expect_idle(self, entry: TableEntry) -> None:
        if entry.idle_timeout_ns:
            self._events.look_again()

    def delete(self, entry: TableEntry) -> None:
        with self._lock:
            self._tables.delete(entry)

    def entry_writer(self, tables: Sequence[WireTable]) -> EntryWriter:
        return EntryWriter(self.handle, self._lock, self.program, tables)

    def find(self, entry: TableEntry) -> TableEntry:
        with self._lock:
            return self._tables.find(entry)

    def entries(self, table: str) -> Iterator[TableEntry]:
        """Yield the present entries of a table, each in its state at its turn, without those deleted
        meanwhile.
        """
        with self._lock:
            handles = self._tables.handles(table)
        return self._one_by_one(table, handles)

    def _one_by_one(self, table: str, handles: Iterable[int]) -> Iterator[TableEntry]:
        for handle in handles:
            with self._lock:
                entry = self._tables.entry(table, handle)
            if entry is not None:
                yield entry

    def set_default(self, table: str, action: ActionCall | None) -> None:
        with self._lock:
            self._tables.set_default(table, action)

    def default(self, table: str) -> ActionCall:
        with self._lock:
            return self._tables.default(table)

    def idle_time_ns(self, entry: TableEntry) -> int:
        with self._lock:
            return self._tables.idle_time_ns(entry)

    def direct_counter(self, entry: TableEntry) -> CounterValue:
        with self._lock:
            return self._tables.direct_counter(entry)

    def direct_counters(self, table: str) -> Iterator[tuple[TableEntry, CounterValue]]:
        """Yield the counts of this moment, except for entries that are deleted before their turn."""
        with self._lock:
            counts = self._tables.direct_counters(table)
        return ((entry, value) for handle, value in counts for entry in self._one_by_one(table, [handle]))

    def set_direct_counter(self, entry: TableEntry, value: CounterValue) -> None:
        with self._lock:
            self._tables.set_direct_counter(entry, value)

    def direct_meter(self, entry: TableEntry) -> MeterConfig | None:
        with self._lock:
            return self._tables.direct_meter(entry)

    def set_direct_meter(self, entry: TableEntry, config: MeterConfig | None) -> None:
        with self._lock:
            self._tables.set_direct_meter(entry, config)

    def direct_meter_counts(self, entry: TableEntry) -> MeterCounts:
        with self._lock:
            return self._tables.direct_meter_counts(entry)

    def set_direct_meter_counts(self, entry: TableEntry, counts: MeterCounts) -> None:
        with self._lock:
            self._tables.set_direct_meter_counts(entry, counts)

    # --- counters, meters, registers -----------------------------------------------------------------

    def counter(self, name: str, index: int) -> CounterValue:
        with self._lock:
            return self._arrays.counter(name, index)

    def counters(self, name: str, first: int = 0, count: int | None = None) -> Sequence[CounterValue]:
        with self._lock:
            return self._arrays.counters(name, first, count)

    def set_counter(self, name: str, index: int, value: CounterValue) -> None:
        with self._lock:
            self._arrays.set_counter(name, index, value)

    def meter(self, name: str, index: int) -> MeterConfig | None:
        with self._lock:
            return self._arrays.meter(name, index)

    def set_meter(self, name: str, index: int, config: MeterConfig | None) -> None:
        with self._lock:
            self._arrays.set_meter(name, index, config)

    def meter_counts(self, name: str, index: int) -> MeterCounts:
        with self._lock:
            return self._arrays.meter_counts(name, index)

    def set_meter_counts(self, name: str, index: int, counts: MeterCounts) -> None:
        with self._lock:
            self._arrays.set_meter_counts(name, index, counts)

    def register(self, name: str, index: int) -> int:
        with self._lock:
            return self._arrays.register(name, index)

    def set_register(self, name: str, index: int, value: int) -> None:
        with self._lock:
            self._arrays.set_register(name, index, value)

    def set_custom_crc(self, call: int, crc: CustomCrc) -> None:
        """Let a call of crc16_custom or crc32_custom compute another CRC; raises DataPlaneError if there is
        none.

        `call` is its position in `compiled.custom_crcs`, which has the calls' bits.
        """
        if not 0 <= call < len(self.compiled.custom_crcs):
            raise DataPlaneError("NOT_FOUND", f"no call {call} with a custom CRC")
        bits = self.compiled.custom_crcs[call]
        if any(not 0 <= value < 1 << bits for value in (crc.polynomial, crc.initial, crc.final_xor)):
            raise DataPlaneError("OUT_OF_RANGE", f"a parameter of this CRC has more than {bits} bits")
        given = (
            bits,
            crc.polynomial,
            crc.initial,
            crc.final_xor,
            crc.data_reflected,
            crc.remainder_reflected,
        )
        with self._lock:
            self.handle.call("set_custom_crc", call, (ctypes.c_uint32 * len(given))(*given))

    # --- action profiles -----------------------------------------------------------------------------

    def insert_member(self, profile: str, member: Member) -> None:
        with self._lock:
            self._profiles.insert_member(profile, member)

    def modify_member(self, profile: str, member: Member) -> None:
        with self._lock:
            self._profiles.modify_member(profile, member)

    def delete_member(self, profile: str, member_id: int) -> None:
        with self._lock:
            self._profiles.delete_member(profile, member_id)

    def members(self, profile: str) -> Iterator[Member]:
        with self._lock:
            return self._profiles.members(profile)

    def insert_group(self, profile: str, group: Group) -> None:
        with self._lock:
            self._profiles.insert_group(profile, group)
            self._events.look_again()

    def modify_group(self, profile: str, group: Group) -> None:
        with self._lock:
            self._profiles.modify_group(profile, group)
            self._events.look_again()

    def delete_group(self, profile: str, group_id: int) -> None:
        with self._lock:
            self._profiles.delete_group(profile, group_id)

    def groups(self, profile: str) -> Iterator[Group]:
        with self._lock:
            return self._profiles.groups(profile)

    # --- parser value sets ---------------------------------------------------------------------------

    def value_set(self, name: str) -> tuple[Matches, ...]:
        with self._lock:
            return self._value_sets.members(name)

    def set_value_set(self, name: str, members: Iterable[Matches]) -> None:
        with self._lock:
            self._value_sets.set_members(name, members)

    # --- replication and digests -----------------------------------------------------------------------

    def set_multicast_group(self, group: int, replicas: Iterable[Replica] | None) -> None:
        with self._lock:
            self._replication.set_multicast_group(group, replicas)

    def multicast_groups(self) -> Mapping[int, tuple[Replica, ...]]:
        return self._replication.multicast_groups()

    def set_clone_session(self, session: int, config: CloneSession | None) -> None:
        with self._lock:
            self._replication.set_clone_session(session, config)

    def clone_sessions(self) -> Mapping[int, CloneSession]:
        return self._replication.clone_sessions()

    def set_digest(self, digest: str, config: DigestConfig | None) -> None:
        with self._lock:
            self._digests.set_digest(digest, config)
            self._events.look_again()

    def digests(self) -> dict[str, DigestConfig]:
        return self._digests.digests()

    def acknowledge_digest(self, digest: str, list_id: int) -> None:
        with self._lock:
            self._digests.acknowledge(digest, list_id)


def _time_us(given: int | None) -> int:
    """Return a time for the runtime, None for the clock's; raises DataPlaneError."""
    if given is None:
        return NOW
    if not 0 <= given < NOW:
        raise DataPlaneError("INVALID_ARGUMENT", f"{given} us is no time since the switch's start")
    return given


def _outputs(records: bytes) -> list[Output]:
    outputs, at = [], 0
    while at < len(records):
        port, length, time_us = _RECORD.unpack_from(records, at)
        at += _RECORD.size
        outputs.append(Output(port, records[at : at + length], time_us))
        at += (length + 3) // 4 * 4
    return outputs
