"""A compiled program in action: the control interface of `v1model.dataplane`, packets in and out by
function calls (the library form), and ports on network interfaces.

    switch = Switch(compile_p4("pool.p4"))
    outputs = switch.inject(1, frame)
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from v1model.binding.arrays import Arrays
from v1model.binding.digests import Digests
from v1model.binding.events import Event, Events
from v1model.binding.library import NOW, Handle, Library
from v1model.binding.profiles import Profiles
from v1model.binding.replication import Replication
from v1model.binding.tables import Tables
from v1model.dataplane import DataPlaneError, Output

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from v1model.backend import CompiledProgram
    from v1model.dataplane import (
        CloneSession,
        CounterValue,
        DigestConfig,
        Group,
        Member,
        MeterConfig,
        Replica,
        TableEntry,
    )
    from v1model.ir import ActionCall

DROP_PORT = 511
CPU_PORT = 510
PORTS = 512  # runtime/port.h
MAX_FRAME_BYTES = 10240

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
    "event_queue_full",
)
# weir_port_statistics
PORT_STATISTICS = (
    "received_packets",
    "received_bytes",
    "sent_packets",
    "sent_bytes",
    "oversize_drops",
    "transmit_drops",
    "kernel_drops",
    "unfinished_checksums",
    "error",
)

_RECORD = struct.Struct("=2I")


class Switch:
    """One switch with the state of its program; independent of all others in the process.

    Thread-safe. Every control call is atomic against packets. `cpu_port` is where packets for the
    control plane go; `max_frame_bytes` the largest frame accepted. Use as a context manager, or
    `close` it: that stops forwarding and frees everything.
    """

    def __init__(
        self, compiled: CompiledProgram, cpu_port: int = CPU_PORT, *, max_frame_bytes: int = MAX_FRAME_BYTES
    ) -> None:
        self.compiled, self.program = compiled, compiled.program
        self.cpu_port = cpu_port
        library = Library(compiled.library)
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
        self._arrays = Arrays(self.handle, self.program)
        self._replication = Replication(self.handle)
        self._digests = Digests(self.handle, self.program)
        self._events = Events(self.handle, self._tables, self._digests, compiled.messages)

    def __enter__(self) -> Switch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stops forwarding and frees the switch. Later calls (but for `close`) raise DataPlaneError."""
        self.stop()
        with self._lock:
            if not self._closed:
                self._closed = True
                self._events.close()
                self.handle.destroy()

    def reset(self) -> None:
        with self._lock:
            self.handle.call("reset")
            for part in (self._profiles, self._arrays, self._replication, self._digests, self._events):
                part.clear()
            self._tables.load_initial()

    # --- packets ---------------------------------------------------------------------------------

    def inject(self, port: int, data: bytes, timestamp_us: int | None = None) -> list[Output]:
        """Runs one packet to completion; what left the switch, in order, by ports that are not
        attached to an interface. `timestamp_us` is the time that the program sees (default: now).
        While interfaces are served (`start`), the packet joins their packets and nothing is returned."""
        if not 0 <= port < PORTS:
            raise DataPlaneError("INVALID_ARGUMENT", f"port {port} is not within 0..{PORTS - 1}")
        with self._lock:
            now_us = NOW if timestamp_us is None else timestamp_us
            self.handle.call("inject", port, data, len(data), now_us)
            self._events.collect()
            return _outputs(self.handle.read("take_outputs"))

    def packet_out(self, data: bytes) -> None:
        if not 0 <= self.cpu_port < PORTS:
            raise DataPlaneError("FAILED_PRECONDITION", "the switch has no CPU port (--cpu-port)")
        with self._lock:
            self.handle.call("inject", self.cpu_port, data, len(data), NOW)

    def take_outputs(self) -> list[Output]:
        """What left the switch because of `packet_out`, as from `inject`."""
        with self._lock:
            return _outputs(self.handle.read("take_outputs"))

    def wait_events(self, timeout_s: float) -> list[Event]:
        return self._events.wait(timeout_s)

    # --- interfaces ------------------------------------------------------------------------------

    def attach(self, port: int, interface: str) -> None:
        """Makes a network interface a port. Needs CAP_NET_RAW. The interface's checksum and
        segmentation offloads must be off: the switch would see frames that were never finished."""
        if not 0 <= port < PORTS or port in (DROP_PORT, self.cpu_port):
            raise DataPlaneError("INVALID_ARGUMENT", f"port {port} can't be an interface")
        if port in self._interfaces:
            raise DataPlaneError("ALREADY_EXISTS", f"port {port} is {self._interfaces[port]} already")
        with self._lock, self._paused():
            code = self.handle.call("attach", port, interface.encode())
            if code:
                raise DataPlaneError("FAILED_PRECONDITION", _attach_error(port, interface, code))
            self._interfaces[port] = interface

    def detach(self, port: int) -> None:
        with self._lock, self._paused():
            if self._interfaces.pop(port, None) is None:
                raise DataPlaneError("NOT_FOUND", f"port {port} is not attached")
            self.handle.call("detach", port)

    @contextmanager
    def _paused(self) -> Iterator[None]:
        """While inside, nothing is forwarded; what arrives waits in the sockets."""
        was_running = self._forwarding is not None
        self.stop()
        try:
            yield
        finally:
            if was_running:
                self.start()

    def start(self) -> None:
        """Forwards packets between the attached interfaces, in a thread without the GIL."""
        with self._lock:
            if self._forwarding is None:
                self.handle.call("keep_running", 1)
                self._forwarding = threading.Thread(
                    target=self.handle.call, args=("forward",), name="v1model-forward", daemon=True
                )
                self._forwarding.start()

    def stop(self) -> None:
        with self._lock:
            if self._forwarding is not None:
                self.handle.call("keep_running", 0)
                self._forwarding.join()
                self._forwarding = None

    def statistics(self) -> dict[str, dict[str, int] | dict[int, dict[str, int | str]]]:
        """{"drops": {cause: packets}, "ports": {port: {"interface": ..., "received_packets": ...}}}."""
        with self._lock:
            drops = {cause: int(self.handle.call("drops", i)) for i, cause in enumerate(DROP_CAUSES)}
            ports = {port: self._port_statistics(port) for port in self._interfaces}
            return {"drops": drops, "ports": ports}

    def _port_statistics(self, port: int) -> dict[str, int | str]:
        values = (ctypes.c_uint64 * len(PORT_STATISTICS))()
        self.handle.call("port_statistics", port, values)
        statistics: dict[str, int | str] = {"interface": self._interfaces[port]}
        statistics |= dict(zip(PORT_STATISTICS, values, strict=True))
        code = int(statistics["error"])
        statistics["error"] = os.strerror(code) if code else ""
        return statistics

    # --- tables ----------------------------------------------------------------------------------

    def insert(self, entry: TableEntry) -> None:
        with self._lock:
            self._tables.insert(entry)

    def modify(self, entry: TableEntry) -> None:
        with self._lock:
            self._tables.modify(entry)

    def delete(self, entry: TableEntry) -> None:
        with self._lock:
            self._tables.delete(entry)

    def find(self, entry: TableEntry) -> TableEntry:
        with self._lock:
            return self._tables.find(entry)

    def entries(self, table: str) -> Iterator[TableEntry]:
        with self._lock:
            return self._tables.entries(table)

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
        with self._lock:
            return self._tables.direct_counters(table)

    def set_direct_counter(self, entry: TableEntry, value: CounterValue) -> None:
        with self._lock:
            self._tables.set_direct_counter(entry, value)

    def direct_meter(self, entry: TableEntry) -> MeterConfig | None:
        with self._lock:
            return self._tables.direct_meter(entry)

    def set_direct_meter(self, entry: TableEntry, config: MeterConfig | None) -> None:
        with self._lock:
            self._tables.set_direct_meter(entry, config)

    # --- counters, meters, registers -----------------------------------------------------------------

    def counter(self, name: str, index: int) -> CounterValue:
        with self._lock:
            return self._arrays.counter(name, index)

    def counters(self, name: str) -> Sequence[CounterValue]:
        with self._lock:
            return self._arrays.counters(name)

    def set_counter(self, name: str, index: int, value: CounterValue) -> None:
        with self._lock:
            self._arrays.set_counter(name, index, value)

    def meter(self, name: str, index: int) -> MeterConfig | None:
        with self._lock:
            return self._arrays.meter(name, index)

    def set_meter(self, name: str, index: int, config: MeterConfig | None) -> None:
        with self._lock:
            self._arrays.set_meter(name, index, config)

    def register(self, name: str, index: int) -> int:
        with self._lock:
            return self._arrays.register(name, index)

    def set_register(self, name: str, index: int, value: int) -> None:
        with self._lock:
            self._arrays.set_register(name, index, value)

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

    def modify_group(self, profile: str, group: Group) -> None:
        with self._lock:
            self._profiles.modify_group(profile, group)

    def delete_group(self, profile: str, group_id: int) -> None:
        with self._lock:
            self._profiles.delete_group(profile, group_id)

    def groups(self, profile: str) -> Iterator[Group]:
        with self._lock:
            return self._profiles.groups(profile)

    # --- replication and digests -----------------------------------------------------------------------

    def set_multicast_group(self, group: int, replicas: Iterable[Replica] | None) -> None:
        with self._lock:
            self._replication.set_multicast_group(group, replicas)

    def multicast_groups(self) -> dict[int, tuple[Replica, ...]]:
        return self._replication.multicast_groups()

    def set_clone_session(self, session: int, config: CloneSession | None) -> None:
        with self._lock:
            self._replication.set_clone_session(session, config)

    def clone_sessions(self) -> dict[int, CloneSession]:
        return self._replication.clone_sessions()

    def set_digest(self, digest: str, config: DigestConfig | None) -> None:
        with self._lock:
            self._digests.set_digest(digest, config)

    def digests(self) -> dict[str, DigestConfig]:
        return self._digests.digests()

    def acknowledge_digest(self, digest: str, list_id: int) -> None:
        with self._lock:
            self._digests.acknowledge(digest, list_id)


def _outputs(records: bytes) -> list[Output]:
    outputs, at = [], 0
    while at < len(records):
        port, length = _RECORD.unpack_from(records, at)
        at += _RECORD.size
        outputs.append(Output(port, records[at : at + length]))
        at += (length + 3) // 4 * 4
    return outputs


def _attach_error(port: int, interface: str, code: int) -> str:
    reasons = {
        errno.EPERM: "raw sockets need root (or CAP_NET_RAW)",
        errno.ENODEV: "there is no such interface",
        errno.EBUSY: "the port is in use",
        errno.EADDRINUSE: "another switch has this interface",
        errno.ENAMETOOLONG: "interface names have at most 15 characters",
        errno.ENETDOWN: "the interface is down: ip link set up",
    }
    return f"port {port} on {interface}: {reasons.get(code, os.strerror(code))}"
