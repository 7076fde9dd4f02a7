"""KV events of the pool in the schema of Mooncake's master, for Mooncake's conductor and dynamo.

A message is (topic, number, content). The content is [milliseconds, events, rank] in MessagePack, an event a
map with the fields below (Mooncake's RFC 1527), those of older consumers (`type`, `block_hashes`,
`parent_block_hash`) among them. Who listens too slowly misses messages, which their numbers say; there is no
replay, as there is none at Mooncake's master.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Final

import msgspec
import zmq
from vllm.distributed.kv_events import BlockStored, ZmqEventPublisher

from hostlib.protocol.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vllm.config import VllmConfig
    from vllm.distributed.kv_events import BlockRemoved

BACKEND: Final = "weir"
MAX_WAITING: Final = 10_000
"""Messages that wait for a slow listener; it misses further ones."""

_log = logging.getLogger("weir")


class MooncakeEvents:
    """Publishes at an endpoint of ZeroMQ, whose port grows by the engine's rank in a data-parallel group."""

    def __init__(self, endpoint: str, config: VllmConfig, tenant: int) -> None:
        """Bind the endpoint; raises ConfigError if it can't be bound."""
        # vLLM sets `data_parallel_rank` to 0 in engines of a group that don't wait for one another.
        self._rank = int(config.parallel_config.data_parallel_index)
        model = config.model_config
        names = model.served_model_name
        self._model = names if isinstance(names, str) else (names or [model.model])[0]
        self._tenant = str(tenant) if tenant else "default"
        self._number = self._event = 0
        self._said_failure = False
        self._socket = zmq.Context.instance().socket(zmq.PUB)
        self._socket.set_hwm(MAX_WAITING)
        try:
            self._socket.bind(ZmqEventPublisher.offset_endpoint_port(endpoint, self._rank))
        except (zmq.ZMQError, ValueError) as error:
            self._socket.close(linger=0)
            raise ConfigError(f"mooncake_events: {endpoint!r} can't be bound: {error}") from None

    def publish(self, events: Sequence[BlockStored | BlockRemoved]) -> None:
        """Publish some events in one message; nothing is raised."""
        if not events:
            return
        now_ms = time.time_ns() // 1_000_000
        content = [now_ms, [self._described(event, now_ms) for event in events], self._rank]
        try:
            number = self._number.to_bytes(8, "big")
            self._socket.send_multipart([b"", number, msgspec.msgpack.encode(content)], zmq.NOBLOCK)
        except zmq.ZMQError as error:
            if not self._said_failure:
                self._said_failure = True
                _log.warning("Events in Mooncake's schema are not published: %s.", error)
        self._number += 1

    def close(self) -> None:
        """Give the endpoint back."""
        self._socket.close(linger=0)

    def _described(self, event: BlockStored | BlockRemoved, now_ms: int) -> dict[str, Any]:
        self._event += 1
        hashes = [_as_number(one) for one in event.block_hashes]
        stored = isinstance(event, BlockStored)
        said: dict[str, Any] = {
            "event_id": self._event, "timestamp": now_ms, "event_type": "stored" if stored else "removed",
            "type": "BlockStored" if stored else "BlockRemoved", "model_name": self._model,
            "block_size": event.block_size if stored else None, "additional_salt": None,
            "lora_name": event.lora_name if stored else None, "tenant_id": self._tenant,
            "backend_id": BACKEND, "medium": event.medium, "dp_rank": self._rank, "group_id": None,
            "seq_hashes": hashes, "block_hashes": hashes, "base_block_idx": None,
        }  # fmt: skip
        if isinstance(event, BlockStored):
            parent = event.parent_block_hash
            said["parent_hash"] = said["parent_block_hash"] = None if parent is None else _as_number(parent)
            said["token_ids"] = list(event.token_ids)
        return said


def _as_number(block_hash: int | bytes) -> int:
    """Return the lower 64 bits of a hash, as vLLM gives them where it gives numbers."""
    if isinstance(block_hash, bytes):
        block_hash = int.from_bytes(block_hash, "big")
    return block_hash & 0xFFFF_FFFF_FFFF_FFFF
