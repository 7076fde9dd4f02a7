"""Traffic manager: the queues of each port between ingress and egress, with their order, rates and depths."""

from __future__ import annotations

import ctypes
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING

from v1model.binding.library import PORTS
from v1model.dataplane import DataPlaneError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from v1model.binding.library import Handle

PRIORITIES = 8  # QUEUES in runtime/queues.h: standard_metadata.priority has three bits
MAX_LIMIT = (1 << 53) - 1
MAX_WEIGHT = 1 << 20


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """Limits of one queue; 0 means no limit or no marking.

    A `weight` of 0 is strict priority, otherwise the packets of a turn. IP packets of flows with ECN are
    marked if they find `ecn_packets` or `ecn_bytes` waiting.
    """

    depth_packets: int = 64  # BMv2's default
    depth_bytes: int = 0
    packets_per_s: int = 0
    bits_per_s: int = 0
    weight: int = 0
    ecn_packets: int = 0
    ecn_bytes: int = 0


@dataclass(frozen=True, slots=True)
class QueueState:
    """Packets and bytes that wait, and packets that were sent, dropped for lack of space, and marked."""

    packets: int
    bytes: int
    sent: int
    dropped: int
    marked: int


LIMITS = tuple(field.name for field in fields(QueueLimits))
RATES = ("packets_per_s", "bits_per_s")


class Queues:
    """Queues of all ports, with the limits that were set; without a traffic manager `priorities` is 0."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self.priorities = 0
        self._limits: dict[tuple[int, int], QueueLimits] = {}
        self._rates: dict[int, dict[str, int]] = {}

    def enable(self, priorities: int) -> None:
        if not 1 <= priorities <= PRIORITIES:
            message = f"{priorities} queues a port: there can be 1 to {PRIORITIES}"
            raise DataPlaneError("INVALID_ARGUMENT", message)
        if self._handle.call("enable_queues", priorities):
            raise DataPlaneError("RESOURCE_EXHAUSTED", "no memory for queues")
        self.priorities = priorities

    def limit(self, limits: Mapping[str, int], port: int | None, priority: int | None) -> None:
        """Change limits of one port or all, and of one priority or all.

        Rates without a priority are the port's.
        """
        _check(limits, port, priority)
        if not self.priorities:
            self.enable(PRIORITIES)
        rates = {name: limits[name] for name in RATES if name in limits and priority is None}
        others = {name: value for name, value in limits.items() if name not in rates}
        for number in range(PORTS) if port is None else (port,):
            if rates:
                known = self._rates.setdefault(number, dict.fromkeys(RATES, 0))
                known.update(rates)
                self._handle.call("set_port_rate", number, *known.values())
            for queue in (range(PRIORITIES) if priority is None else (priority,)) if others else ():
                self._limit_queue(number, queue, others)

    def _limit_queue(self, port: int, priority: int, limits: Mapping[str, int]) -> None:
        found = replace(self._limits.get((port, priority), QueueLimits()), **limits)
        self._limits[port, priority] = found
        values = (ctypes.c_uint64 * len(LIMITS))(*asdict(found).values())
        self._handle.call("set_queue", port, priority, values)

    def state(self, port: int, priority: int) -> QueueState:
        _check({}, port, priority)
        if not self.priorities:
            return QueueState(0, 0, 0, 0, 0)
        values = (ctypes.c_uint64 * 5)()
        self._handle.call("queue", port, priority, values)
        return QueueState(*values)

    def statistics(self) -> dict[int, dict[int, dict[str, int]]]:
        """Return {port: {priority: QueueState as a dict}} of the queues that ever had a packet."""
        ports = {port for port, _ in self._limits} | self._rates.keys()
        found: dict[int, dict[int, dict[str, int]]] = {}
        for port in sorted(ports):
            for priority in range(self.priorities):
                if any((state := asdict(self.state(port, priority))).values()):
                    found.setdefault(port, {})[priority] = state
        return found


def _check(limits: Mapping[str, int], port: int | None, priority: int | None) -> None:
    if port is not None and not 0 <= port < PORTS:
        raise DataPlaneError("INVALID_ARGUMENT", f"port {port} is not within 0..{PORTS - 1}")
    if priority is not None and not 0 <= priority < PRIORITIES:
        raise DataPlaneError("INVALID_ARGUMENT", f"priority {priority} is not within 0..{PRIORITIES - 1}")
    for name, value in limits.items():
        if name not in LIMITS:
            raise DataPlaneError("INVALID_ARGUMENT", f"queues have no {name}; they have {', '.join(LIMITS)}")
        most = MAX_WEIGHT if name == "weight" else MAX_LIMIT
        if not 0 <= value <= most:
            raise DataPlaneError("INVALID_ARGUMENT", f"{name} {value} is not within 0..{most}")
