"""Process of weir-switch behind the Thrift services: its P4Runtime device and its ports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.p4info import p4info
from v1model.p4runtime.device_config import DeviceConfig
from v1model.protos.p4.v1 import p4runtime_pb2
from v1model.sandbox import Source, sandboxed_compile
from v1model.switch import Switch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from v1model.backend.extern_source import ExternSource
    from v1model.p4runtime.device import Device
    from v1model.p4runtime.engine import EmbeddedEngine

_Request = p4runtime_pb2.SetForwardingPipelineConfigRequest


class SwitchUnderP4Runtime:
    """Effects of Thrift calls on the device that P4Runtime serves, too."""

    def __init__(
        self, device: Device, engine: EmbeddedEngine, externs: ExternSource | None, p4runtime_address: str
    ) -> None:
        self.p4runtime_address = p4runtime_address
        self._device, self._engine, self._externs = device, engine, externs
        self.device_id = device.device_id
        self.thrift_port = 0

    def switch(self) -> Switch:
        """Return the switch that forwards; raises FAILED_PRECONDITION before there is a program."""
        switch = self._device.committed.data_plane
        assert isinstance(switch, Switch)
        return switch

    def config(self) -> bytes:
        config = self._device.get_config(p4runtime_pb2.GetForwardingPipelineConfigRequest.ALL)
        return DeviceConfig.decode(config.p4_device_config if config else b"").encode()

    def load(self, config: bytes) -> None:
        sent = DeviceConfig.decode(config)
        program = sandboxed_compile(Source(sent.source, sent.name, self._externs)).program
        message = p4runtime_pb2.ForwardingPipelineConfig(p4info=p4info(program), p4_device_config=config)
        self._device.set_config(_Request.VERIFY_AND_SAVE, message)

    def swap(self) -> None:
        self._device.set_config(_Request.COMMIT, None)

    def reset(self) -> None:
        self.switch().reset()

    def limit_queues(self, limits: Mapping[str, int], port: int | None, priority: int | None) -> None:
        self._engine.limit_queues(limits, port, priority)

    def add_port(self, port: int, interface: str) -> None:
        self._engine.add_port(port, interface)

    def remove_port(self, port: int) -> None:
        self._engine.remove_port(port)
