"""Base of the handlers of all kinds of P4Runtime entities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from v1model.dataplane import CounterValue, DataPlaneError, MeterConfig, MeterCounts
from v1model.protos.p4.v1 import p4runtime_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

INSERT = p4runtime_pb2.Update.INSERT
MODIFY = p4runtime_pb2.Update.MODIFY
DELETE = p4runtime_pb2.Update.DELETE
MAX_INT64 = (1 << 63) - 1
MAX_METADATA_BYTES = 4096  # of an entry or group; the server stores them itself


class EntityHandler(Protocol):
    """Handler that writes and reads one kind of entity (one member of p4.v1.Entity's oneof)."""

    def write(self, update_type: int, message: Any) -> None: ...

    def read(self, message: Any, answer: Answer) -> Iterator[None]:
        """Add all entities that `message` stands for to `answer`.

        It yields after each entity, added or skipped: there others may have their turn, and change what is
        still to be read.
        """


class Answer:
    """Entities of a read, collected in responses of a size that clients accept (gRPC's 4 MB)."""

    ENTITIES = 256
    BYTES = 1 << 20

    def __init__(self) -> None:
        self._responses = [p4runtime_pb2.ReadResponse()]
        self._count = self._bytes = 0
        self._last: p4runtime_pb2.Entity | None = None

    def add(self) -> p4runtime_pb2.Entity:
        """Return a new entity to fill."""
        if self._last is not None:
            self._bytes += self._last.ByteSize()
        if self._count == self.ENTITIES or self._bytes >= self.BYTES:
            self._responses.append(p4runtime_pb2.ReadResponse())
            self._count = self._bytes = 0
        self._count += 1
        self._last = self._responses[-1].entities.add()
        return self._last

    def take_full(self) -> list[p4runtime_pb2.ReadResponse]:
        """Return the responses to which nothing will be added, and forget them."""
        full, self._responses = self._responses[:-1], self._responses[-1:]
        return full

    def take_rest(self) -> p4runtime_pb2.ReadResponse:
        """Return the last response, empty if there was nothing at all."""
        return self._responses[-1]


def invalid(reason: str) -> DataPlaneError:
    return DataPlaneError("INVALID_ARGUMENT", reason)


def check_metadata(metadata: bytes) -> None:
    """Raise DataPlaneError for more metadata than an entity may have."""
    if len(metadata) > MAX_METADATA_BYTES:
        message = f"metadata of {len(metadata)} bytes; at most {MAX_METADATA_BYTES} are possible"
        raise DataPlaneError("RESOURCE_EXHAUSTED", message)


def require_modify(update_type: int, kind: str) -> None:
    """Raise INVALID_ARGUMENT unless an entity that always exists is modified."""
    if update_type != MODIFY:
        raise invalid(f"a {kind} entry always exists: only MODIFY is possible")


def decode_counter(data: p4runtime_pb2.CounterData) -> CounterValue:
    if data.packet_count < 0 or data.byte_count < 0:
        raise invalid("a counter can't be negative")
    return CounterValue(data.packet_count, data.byte_count)


def encode_counter(value: CounterValue, data: p4runtime_pb2.CounterData) -> None:
    """Write a counter into `data`, which is present even if both counts are zero."""
    data.SetInParent()
    data.packet_count = value.packets & MAX_INT64
    data.byte_count = value.bytes & MAX_INT64


def decode_meter(config: p4runtime_pb2.MeterConfig) -> MeterConfig:
    if min(config.cir, config.cburst, config.pir, config.pburst) < 0:
        raise invalid("rates and bursts of a meter can't be negative")
    if config.eburst:
        raise invalid("eburst is for single-rate meters; v1model's have two rates")
    if config.pir < config.cir:
        raise invalid(f"the peak rate ({config.pir}) is below the committed rate ({config.cir})")
    return MeterConfig(config.cir, config.cburst, config.pir, config.pburst)


def encode_meter(value: MeterConfig, config: p4runtime_pb2.MeterConfig) -> None:
    """Write a meter's rates into `config`."""
    config.SetInParent()
    config.cir, config.cburst, config.pir, config.pburst = value.cir, value.cburst, value.pir, value.pburst


def decode_meter_counts(data: p4runtime_pb2.MeterCounterData) -> MeterCounts:
    return MeterCounts(*(decode_counter(colour) for colour in (data.green, data.yellow, data.red)))


def encode_meter_counts(counts: MeterCounts, data: p4runtime_pb2.MeterCounterData) -> None:
    """Write a meter's counts into `data`."""
    encode_counter(counts.green, data.green)
    encode_counter(counts.yellow, data.yellow)
    encode_counter(counts.red, data.red)
