"""Device behind the server: the pipeline that forwards, the saved one, and the listener to events."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from v1model.dataplane import DataPlaneError
from v1model.p4runtime.entity import invalid
from v1model.p4runtime.pipeline import Pipeline
from v1model.p4runtime.reconcile import carry_over
from v1model.protos.p4.v1 import p4runtime_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from v1model.dataplane import DataPlane

    Listener = Callable[[p4runtime_pb2.StreamMessageResponse], None]

EVENT_WAIT_S = 60.0  # interrupted at the end; long, because polling by twenty switches costs CPU
CLOSE_TIMEOUT_S = 0.4
MAX_CONFIGS = 4  # loading or waiting: of the full-access role, and of all others together

Action = p4runtime_pb2.SetForwardingPipelineConfigRequest
ResponseType = p4runtime_pb2.GetForwardingPipelineConfigRequest
_LOADING = (
    Action.VERIFY,
    Action.VERIFY_AND_SAVE,
    Action.VERIFY_AND_COMMIT,
    Action.RECONCILE_AND_COMMIT,
)
logger = logging.getLogger(__name__)


class Engine(Protocol):
    """Engine that turns device configs into data planes, and connects one at a time to the ports."""

    def load(self, device_config: bytes) -> DataPlane:
        """Return a data plane without ports; raises INVALID_ARGUMENT with a reason if that is impossible."""

    def connect(self, data_plane: DataPlane) -> None:
        """Send the ports' packets to this data plane from now on."""

    def discard(self, data_plane: DataPlane) -> None:
        """Release a data plane that is no longer used."""


class _LoadingTurn:
    """Turn for loading: one program at a time; few may wait, because each holds a thread and its config."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting = threading.Semaphore(MAX_CONFIGS)

    @property
    def is_busy(self) -> bool:
        return self._lock.locked()

    @contextmanager
    def turn(self) -> Iterator[None]:
        if not self._waiting.acquire(blocking=False):
            raise DataPlaneError("RESOURCE_EXHAUSTED", f"{MAX_CONFIGS} configs are being loaded: try again")
        try:
            with self._lock:
                yield
        finally:
            self._waiting.release()


class Device:
    """Device; `listener` gets packet-ins, digests and idle timeouts from a thread of the device."""

    def __init__(self, device_id: int, engine: Engine, listener: Listener) -> None:
        self.device_id = device_id
        self._engine, self._listener = engine, listener
        self._lock = threading.Lock()  # one change of the pipeline at a time
        self._loading = _LoadingTurn(), _LoadingTurn()
        self._closed = False
        self._committed: Pipeline | None = None
        self._saved: Pipeline | None = None
        self._pump: _EventPump | None = None

    @property
    def pipeline(self) -> Pipeline:
        """Return the pipeline for reads and writes: a saved one, else the one that forwards."""
        pipeline = self._saved or self._committed
        if pipeline is None:
            raise DataPlaneError("FAILED_PRECONDITION", "No forwarding pipeline config set for this device")
        return pipeline

    @property
    def committed(self) -> Pipeline:
        """Return the pipeline that forwards."""
        if self._committed is None:
            raise DataPlaneError("FAILED_PRECONDITION", "No forwarding pipeline config set for this device")
        return self._committed

    def set_config(
        self,
        action: int,
        config: p4runtime_pb2.ForwardingPipelineConfig | None,
        role: str = "",
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Perform an action of SetForwardingPipelineConfig.

        `check` raises if the caller may not or does not want to continue; it is called after each wait. The
        full-access role's programs don't wait for those of other roles.
        """
        if action == Action.COMMIT:
            with self._lock:
                check()
                self._commit_saved(config)
            return
        if config is None:
            raise invalid("this action needs a config")
        if action not in _LOADING:
            raise invalid("the action is not set")
        with self._loading[role != ""].turn():
            check()
            pipeline = self._load(config)
        try:
            with self._lock:
                check()
                self._use(action, pipeline)
        except DataPlaneError:
            self._discard(pipeline)
            raise

    def get_config(self, response_type: int) -> p4runtime_pb2.ForwardingPipelineConfig | None:
        """Return GetForwardingPipelineConfig's answer; None if no pipeline was set."""
        pipeline = self._saved or self._committed
        if pipeline is None:
            return None
        answer = p4runtime_pb2.ForwardingPipelineConfig()
        if pipeline.config.HasField("cookie"):
            answer.cookie.CopyFrom(pipeline.config.cookie)
        if response_type in (ResponseType.ALL, ResponseType.P4INFO_AND_COOKIE):
            answer.p4info.CopyFrom(pipeline.config.p4info)
        if response_type in (ResponseType.ALL, ResponseType.DEVICE_CONFIG_AND_COOKIE):
            answer.p4_device_config = pipeline.config.p4_device_config
        return answer

    def close(self, timeout_s: float = CLOSE_TIMEOUT_S) -> bool:
        """Send no events after this; return False if a pipeline is still being set after `timeout_s`."""
        if not self._lock.acquire(timeout=timeout_s):
            return False
        try:
            if self._pump:
                self._pump.stop()
            for pipeline in (self._committed, self._saved):
                if pipeline:
                    self._discard(pipeline)
            self._committed = self._saved = self._pump = None
            self._closed = True
        finally:
            self._lock.release()
        return not any(loading.is_busy for loading in self._loading)

    def _use(self, action: int, pipeline: Pipeline) -> None:
        if self._closed:
            raise DataPlaneError("UNAVAILABLE", "the switch ends")
        if action == Action.VERIFY:
            self._discard(pipeline)
        elif action == Action.VERIFY_AND_SAVE:
            self._drop_saved()
            self._saved = pipeline
        else:
            self._replace(pipeline, keep_state=action == Action.RECONCILE_AND_COMMIT)

    def _load(self, config: p4runtime_pb2.ForwardingPipelineConfig) -> Pipeline:
        data_plane = self._engine.load(config.p4_device_config)
        try:
            return Pipeline(config, data_plane)
        except DataPlaneError:
            self._engine.discard(data_plane)
            raise

    def _commit_saved(self, config: p4runtime_pb2.ForwardingPipelineConfig | None) -> None:
        if config is not None:
            raise invalid("COMMIT takes the saved config: none may be given")
        if self._saved is None:
            raise DataPlaneError("NOT_FOUND", "no config is saved: VERIFY_AND_SAVE comes first")
        self._swap(self._saved)

    def _replace(self, pipeline: Pipeline, *, keep_state: bool) -> None:
        if keep_state and (self._saved or self._committed):
            carry_over(self.pipeline, pipeline)
        self._swap(pipeline)

    def _swap(self, pipeline: Pipeline) -> None:
        old = self._committed
        if self._saved is not pipeline:
            self._drop_saved()
        if self._pump:
            self._pump.stop()
        self._engine.connect(pipeline.data_plane)
        self._committed, self._saved = pipeline, None
        self._pump = _EventPump(pipeline, self._listener)
        self._pump.start()
        if old:
            self._discard(old)

    def _discard(self, pipeline: Pipeline) -> None:
        pipeline.retire()
        self._engine.discard(pipeline.data_plane)

    def _drop_saved(self) -> None:
        if self._saved:
            self._discard(self._saved)
        self._saved = None


class _EventPump(threading.Thread):
    """Thread that passes a pipeline's events to the listener."""

    def __init__(self, pipeline: Pipeline, listener: Listener) -> None:
        super().__init__(name="p4runtime-events", daemon=True)
        self._pipeline, self._listener = pipeline, listener
        self._stopped = threading.Event()

    def run(self) -> None:
        while not self._stopped.is_set():
            for event in self._pipeline.data_plane.wait_events(EVENT_WAIT_S):
                try:
                    self._listener(self._pipeline.encode_event(event, time.time_ns()))
                except Exception:  # whatever is wrong with the P4Info, its other events can be sent
                    # For example a digest that the given P4Info leaves out: nobody could read it.
                    logger.warning("an event has no place in the P4Info: %s", type(event).__name__)

    def stop(self) -> None:
        """Stop the thread; after the return no more events come."""
        self._stopped.set()
        self._pipeline.data_plane.interrupt_wait()
        self.join()
