"""One switch's P4Runtime session: connect, become primary, see to the program, listen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from controller.costs import Costs
from controller.errors import ConfigError, ConnectionLostError, NotPrimaryError
from controller.inbox import Inbox, Kind
from controller.p4_constants import BLOCKS, OUTCOME_NAMES, OUTCOMES, SLOT_CHECK
from controller.p4runtime.base_state import sync_base_state
from controller.p4runtime.p4info import Program, load_p4info
from controller.p4runtime.p4runtime_adapter import P4RuntimeAdapter
from controller.p4runtime.p4runtime_client import SwitchClient
from controller.p4runtime.pipeline import ensure_pipeline
from hostlib.protocol import wire
from hostlib.protocol.value_size import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from controller.config import SwitchConfig

QUEUE_MESSAGES: Final = 4096
"""Digests that wait for the controller, and other messages; more are dropped and counted."""
MESSAGES_AT_ONCE: Final = 256


class Session:
    """Session with a switch. It may be opened again and again; `adapter` stays the same and works while it is
    open."""

    def __init__(
        self,
        config: SwitchConfig,
        first_election_id: int,
        merging: bool,
        connect: Callable[..., SwitchClient] = SwitchClient,
    ) -> None:
        """Make a session; `connect` makes its client, over gRPC unless another is given."""
        self.costs = Costs()
        self._config, self._merging, self._connect = config, merging, connect
        self._election_id = first_election_id
        self.program = Program(load_p4info(config.p4info))
        _check_sizes(config, self.program)
        self.adapter = P4RuntimeAdapter(self.program, config.controller, self.costs)
        self._client: SwitchClient | None = None
        self._inbox = Inbox(QUEUE_MESSAGES, _kind_of)

    def open(self, now_s: float) -> int:
        """Connect and bring the switch's program and base state in order; `now_s` since 1970.

        Returns a generation that no slot has reached (see `pipeline`). Raises ConnectionLostError,
        NotPrimaryError, or SwitchError where the switch refuses what it must have.
        """
        self._election_id += 1  # the switch may not have noticed yet that the session before is over
        inbox = self._inbox = Inbox(QUEUE_MESSAGES, _kind_of)
        client = self._connect(
            self._config.device_id, self._config.grpc_address, divmod(self._election_id, 1 << 64),
            lambda message: self._enqueue(inbox, message), inbox.wake, self.costs,
            self._config.tls,
        )  # fmt: skip
        self._client = self.adapter.session_client = client
        self._check_alive()
        reached = ensure_pipeline(client, self.program.p4info, self._config.device_config, now_s)
        sync_base_state(client, self.program, self._config, self._merging)
        self.costs.sessions += 1
        return reached

    def close(self) -> None:
        """End the session; the switch goes on as it is."""
        self.adapter.session_client = None
        if self._client is not None:
            self._client.tear_down()
            self._client = None

    def wake(self) -> None:
        """End a `receive` that waits: there is something else to do."""
        self._inbox.wake()

    def receive(self, timeout_s: float) -> list[Any]:
        """Stream messages, waiting for the first; raises when the session is over."""
        self._check_alive()
        return self._inbox.take(timeout_s, MESSAGES_AT_ONCE)

    def _check_alive(self) -> None:
        name = self._config.name
        if self._client is None or self._client.ended.is_set():
            raise ConnectionLostError(f"{name}: the session with {self._config.grpc_address} ended")
        if not self._client.primary:
            raise NotPrimaryError(f"{name}: another controller is the switch's primary one")

    def _enqueue(self, inbox: Inbox, message: Any) -> None:
        if not inbox.put(message):
            self.costs.messages_dropped += 1


def _kind_of(message: Any) -> Kind:
    if not message.HasField("packet"):
        return Kind.REPORT if message.HasField("digest") else Kind.ANSWER
    op = wire.op_of(message.packet.payload[wire.FRAME_HEADER_BYTES :])
    return Kind.EXPECTATION if op == wire.OP_EXPECT else Kind.ANSWER


def _check_sizes(config: SwitchConfig, program: Program) -> None:
    """Raise ConfigError if the pool, or the values and outcomes of this process, do not fit the program."""
    outcomes = program.counter_size(OUTCOMES)
    if outcomes != len(OUTCOME_NAMES):
        raise ConfigError(
            f"switch {config.name}: its program counts {outcomes} outcomes and the controller "
            f"{len(OUTCOME_NAMES)}: compile this version's p4/weir.p4, or bring the OUTCOME_ constants of "
            "controller/p4_constants.py in line with p4/include/metadata.p4"
        )
    if program.value_bytes() != wire.VALUE_BYTES:
        raise ConfigError(
            f"switch {config.name}: its program has values of {program.value_bytes()} bytes and the "
            f"controller of {wire.VALUE_BYTES}: start it with {VARIABLE}={program.value_bytes()}"
        )
    for field, value, limit in (
        ("blocks", config.pool.blocks, program.table_size(BLOCKS)),
        ("slots", config.pool.slots, program.register_size(SLOT_CHECK)),
    ):
        if value > limit:
            raise ConfigError(
                f"switch {config.name}: pool.{field} is {value}, but the program was compiled for {limit}"
            )
