"""The embedded switch as the P4Runtime server's engine: makes switches, and connects one to the ports."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from v1model.binding.library import PORTS
from v1model.dataplane import DataPlaneError
from v1model.errors import CompileError
from v1model.full_build import make_full_build
from v1model.p4runtime.device_config import DeviceConfig
from v1model.p4runtime.interfaces import Reservations
from v1model.sandbox import Source, sandboxed_compile
from v1model.switch import Switch
from v1model.trace.recorder import Recorder, Recording

if TYPE_CHECKING:
    from collections.abc import Mapping

    from v1model.backend.extern_source import ExternSource
    from v1model.binding.ports import Statistics
    from v1model.dataplane import DataPlane

NO_CPU_PORT = PORTS  # a port that no packet can name

logger = logging.getLogger(__name__)


class EmbeddedEngine:
    """Engine that makes embedded switches.

    `ports` maps numbers to interfaces. With `cpu_port` None there is no packet-in and packet-out. `externs`
    is the C of externs that are not v1model's, for every program. `recording` says what to record of packets.
    `priority_queues` is the number of queues of each port, 0 for none. With `in_files`, ports are files that
    other code reads and writes, with the library form.
    """

    def __init__(
        self,
        ports: Mapping[int, str],
        cpu_port: int | None,
        externs: ExternSource | None = None,
        recording: Recording | None = None,
        priority_queues: int = 0,
        *,
        in_files: bool = False,
    ) -> None:
        self._externs = externs
        self._recorder = Recorder(recording or Recording(), ports)
        self._ports = {} if in_files else dict(ports)
        self._in_files = in_files
        self._cpu_port = NO_CPU_PORT if cpu_port is None else cpu_port
        self._reservations = Reservations()
        self._connected: Switch | None = None
        self._attached: list[int] = []
        self._priority_queues = priority_queues
        self._queue_limits: dict[tuple[str, int | None, int | None], int] = {}
        for port, interface in self._ports.items():
            self._reservations.reserve(port, interface)

    def load(self, device_config: bytes) -> Switch:
        """Compile a program (or find it compiled) and load it.

        Raises INVALID_ARGUMENT with place and reason if it can't be compiled, FAILED_PRECONDITION if there is
        no space for the result.
        """
        config = DeviceConfig.decode(device_config)
        try:
            tracing = self._recorder.tracing
            compiled = sandboxed_compile(Source(config.source, config.name, self._externs, tracing))
            return Switch(compiled, self._cpu_port)
        except CompileError as error:
            raise DataPlaneError("INVALID_ARGUMENT", error.render()) from error
        except OSError as error:
            raise DataPlaneError(
                "FAILED_PRECONDITION", f"the switch can't keep what it compiles: {error}"
            ) from error

    def connect(self, data_plane: DataPlane) -> None:
        """Give the ports to this switch; packets in flight between the two switches are lost.

        An interface that is gone by now does not affect the other ports.
        """
        assert isinstance(data_plane, Switch)
        if self._connected:
            self._connected.stop()
            for port in self._attached:
                self._connected.detach(port)
        self._connected, self._attached = data_plane, []
        self._reservations.release()  # from now on the ports themselves claim their interfaces
        for port, interface in self._ports.items():
            try:
                data_plane.attach(port, interface)
                self._attached.append(port)
            except DataPlaneError as error:
                logger.warning("%s", error)
        self._recorder.follow(data_plane)
        if self._priority_queues:
            data_plane.enable_queues(self._priority_queues)
        for (name, port_, priority), value in self._queue_limits.items():
            data_plane.limit_queues({name: value}, port_, priority)
        if not self._in_files:
            data_plane.start()
        make_full_build(data_plane)

    def discard(self, data_plane: DataPlane) -> None:
        assert isinstance(data_plane, Switch)
        if data_plane is self._connected:
            self._connected, self._attached = None, []
        data_plane.close()

    def add_port(self, port: int, interface: str) -> None:
        """Attach an interface while the switch runs, also for later programs. Raises DataPlaneError."""
        if port in self._ports or interface in self._ports.values():
            raise DataPlaneError("ALREADY_EXISTS", f"port {port} or interface {interface} is in use")
        if self._connected is None:
            raise DataPlaneError("FAILED_PRECONDITION", "there is no program yet")
        self._connected.attach(port, interface)
        self._ports[port] = interface
        self._attached.append(port)

    def remove_port(self, port: int) -> None:
        """Detach an interface while the switch runs. Raises DataPlaneError if it is no port."""
        if self._connected is None or port not in self._attached:
            raise DataPlaneError("NOT_FOUND", f"no port {port}")
        self._connected.detach(port)
        self._attached.remove(port)
        del self._ports[port]

    @property
    def connected(self) -> Switch | None:
        """Return the switch that has the ports; None before there is one."""
        return self._connected

    def limit_queues(self, limits: Mapping[str, int], port: int | None, priority: int | None) -> None:
        """Set limits as `Switch.limit_queues`, also for later programs. Raises DataPlaneError."""
        if self._connected is None:
            raise DataPlaneError("FAILED_PRECONDITION", "the switch has no program yet")
        self._connected.limit_queues(limits, port, priority)
        for name, value in limits.items():
            self._queue_limits.pop((name, port, priority), None)
            self._queue_limits[name, port, priority] = value

    def statistics(self) -> Statistics | None:
        """Return the counts of the switch that has the ports; None without one, and while it is replaced."""
        connected = self._connected
        try:
            return connected.statistics() if connected else None
        except DataPlaneError:
            return None

    def close(self) -> None:
        self._reservations.release()
        self._recorder.close()
