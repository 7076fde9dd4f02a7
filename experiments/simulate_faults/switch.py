"""The switch: the pipeline in its library form, in virtual time; P4Runtime's messages without a socket."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from controller.errors import ConnectionLostError, NotPrimaryError, SwitchError
from controller.p4_constants import CPU_PORT
from v1model.binding.library import NOW
from v1model.compile import compile_text
from v1model.dataplane import DataPlaneError
from v1model.p4runtime.arbitration import Arbitration
from v1model.p4runtime.device_config import DeviceConfig
from v1model.p4runtime.pipeline import Pipeline
from v1model.p4runtime.session import Session
from v1model.p4runtime.status import canonical_code
from v1model.protos.google.rpc import code_pb2
from v1model.protos.p4.v1 import p4runtime_pb2
from v1model.switch import Switch

if TYPE_CHECKING:
    from controller.costs import Costs
    from v1model.backend import CompiledProgram
    from v1model.dataplane import DigestConfig, Output

Transmit = Callable[[int, bytes], None]
"""Function that sends a frame out of a port."""


class _Plane(Switch):
    """A switch whose clock is `clock_us`; its digests leave at once, not by another clock."""

    def __init__(self, compiled: CompiledProgram, clock_us: Callable[[], int]) -> None:
        super().__init__(compiled, CPU_PORT)
        self._clock_us = clock_us
        self.left: list[Output] = []
        self.look_at_clock()

    def look_at_clock(self) -> None:
        """Set the switch's clock to the present: whatever is called next is done at this time."""
        self.set_clock(self._clock_us())

    def packet_out(self, data: bytes) -> None:
        self.left += self.take(CPU_PORT, [data])

    def take(self, port: int, frames: Iterable[bytes]) -> list[Output]:
        """Take frames that came in together; return what leaves because of them. Their events wait for
        `wait_events`."""
        self.look_at_clock()
        for frame in frames:
            self.handle.call("inject", port, frame, len(frame), NOW)
        return self.take_outputs()

    def set_digest(self, digest: str, config: DigestConfig | None) -> None:
        super().set_digest(digest, config and replace(config, max_list_size=1))


class SimulatedSwitch:
    """One switch. `transmit` takes what leaves it; `clock_s` is the time that the program sees."""

    def __init__(self, device_id: int, transmit: Transmit, clock_s: Callable[[], float]) -> None:
        self.up = True
        self.plane: _Plane | None = None
        self.pipeline: Pipeline | None = None
        self._device_id, self._transmit, self._clock_s = device_id, transmit, clock_s
        self._clients: dict[Stream, InProcessClient] = {}
        self.arbitration = Arbitration(device_id)

    def receive(self, port: int, frames: Iterable[bytes]) -> None:
        """Take frames that came in at a port; a switch without a program drops them."""
        if self.plane is None or not self.up:
            return
        self._emit(self.plane.take(port, frames))

    def attach(self, stream: Stream, client: InProcessClient) -> None:
        """Begin a controller's session."""
        self._clients[stream] = client

    def detach(self, stream: Stream) -> None:
        """End the connection."""
        if self._clients.pop(stream, None) is not None:
            self.arbitration.leave(stream)

    def stop(self) -> None:
        """Kill the switch, and with it all sessions."""
        self.up = False
        self.remove()
        clients, self._clients = self._clients, {}
        self.arbitration = Arbitration(self._device_id)
        for client in clients.values():
            client.ended.set()

    def install(self, config: Any) -> None:
        """Install a new program, without entries."""
        self.remove()
        source = DeviceConfig.decode(config.p4_device_config)
        self.plane = _Plane(compiled(source.source, source.name), self.now_us)
        self.pipeline = Pipeline(config, self.plane)

    def remove(self) -> None:
        """Remove the switch with all that it held."""
        if self.plane is not None:
            self.plane.close()
        self.plane = self.pipeline = None

    def emit(self) -> None:
        """Send on what left because of packets of the controller."""
        if self.plane is not None and self.plane.left:
            left, self.plane.left = self.plane.left, []
            self._emit(left)

    def now_us(self) -> int:
        """Return the time that the program sees."""
        return 1_000_000 + int(self._clock_s() * 1e6)

    def _emit(self, outputs: Iterable[Output]) -> None:
        for output in outputs:
            if output.port == CPU_PORT:
                self._tell(output)
            else:
                self._transmit(output.port, output.data)
        assert self.plane is not None
        for event in self.plane.wait_events(0):
            self._tell(event)

    def _tell(self, event: Any) -> None:
        if self.pipeline is None:
            return
        for primary in self.arbitration.primaries():
            primary.send(self.pipeline.encode_event(event, self.now_us() * 1000))


class Stream(Session):
    """A controller's, without a queue; `take` has the messages."""

    def __init__(self, take: Callable[[Any], None]) -> None:
        super().__init__()
        self._take = take

    def send(self, message: Any) -> None:
        """Send at once, instead of by a queue."""
        self._take(message)


class InProcessClient:
    """`controller.p4runtime.p4runtime_client.SwitchClient` with the server's code called directly."""

    def __init__(
        self,
        switch: SimulatedSwitch,
        device_id: int,
        address: str,
        election_id: tuple[int, int],
        on_message: Callable[[Any], None],
        on_change: Callable[[], None],
        costs: Costs,
        *rest: Any,
    ) -> None:
        self.device_id, self.primary, self.ended = device_id, False, threading.Event()
        self._switch, self._costs = switch, costs
        self._on_message, self._on_change = on_message, on_change
        self._election_id = election_id
        self._stream = Stream(self._take)
        self._check_alive()
        request = p4runtime_pb2.MasterArbitrationUpdate(device_id=device_id)
        request.election_id.high, request.election_id.low = election_id
        try:
            switch.arbitration.update(self._stream, request)
        except DataPlaneError as error:
            raise ConnectionLostError(str(error)) from None
        switch.attach(self._stream, self)

    def tear_down(self) -> None:
        """End the session."""
        self._switch.detach(self._stream)
        self.ended.set()

    def _take(self, message: Any) -> None:
        if message.HasField("arbitration"):
            self.primary = message.arbitration.status.code == code_pb2.OK
            self._on_change()
        else:
            self._on_message(message)

    def send(self, request: Any) -> None:
        """Put a message on the stream."""
        alive = self._switch.up and not self.ended.is_set() and self.primary
        if alive and self._switch.pipeline is not None:
            self._switch.pipeline.packet_out(request.packet)
            self._switch.emit()

    def write_updates(self, updates: Sequence[Any]) -> list[int]:
        """Return each update's canonical code, 0 for success."""
        self._costs.p4runtime_writes += 1
        self._costs.p4runtime_updates += len(updates)
        self._check_primary()
        results = self._pipeline().write(updates)
        return [code_pb2.OK if error is None else canonical_code(error) for error in results]

    def read(self, entities: Iterable[Any]) -> Iterator[Any]:
        """Return the entities that match."""
        self._costs.p4runtime_reads += 1
        try:
            yield from self._pipeline().read_entities(entities)
        except DataPlaneError as error:
            raise SwitchError(str(error)) from None

    def read_all(self, request: p4runtime_pb2.ReadRequest) -> Iterator[Any]:
        """Yield what a request reads, as `read` does; the request names no device."""
        return self.read(request.entities)

    def pipeline(self) -> Any | None:
        """Return the switch's pipeline configuration, None if it has none."""
        self._check_alive()
        return self._switch.pipeline.config if self._switch.pipeline is not None else None

    def set_pipeline(self, p4info: Any, device_config: bytes, cookie: int) -> None:
        """Install a program."""
        self._check_primary()
        config = p4runtime_pb2.ForwardingPipelineConfig(p4info=p4info, p4_device_config=device_config)
        config.cookie.cookie = cookie
        self._switch.install(config)

    def _pipeline(self) -> Pipeline:
        self._check_alive()
        if self._switch.pipeline is None:
            raise ConnectionLostError("the switch has no program")
        assert self._switch.plane is not None
        self._switch.plane.look_at_clock()
        return self._switch.pipeline

    def _check_alive(self) -> None:
        if not self._switch.up or self.ended.is_set():
            raise ConnectionLostError("the switch does not answer")

    def _check_primary(self) -> None:
        self._check_alive()
        try:
            self._switch.arbitration.check_primary("", self._election_id)
        except DataPlaneError as error:
            raise NotPrimaryError(str(error)) from None


@lru_cache(maxsize=2)
def compiled(source: str, name: str) -> CompiledProgram:
    """Return a program, loaded once for all switches of this process."""
    return compile_text(source, name)
