"""The adapter that speaks P4Runtime: operations to updates and packets, stream messages to reports."""

from __future__ import annotations

from dataclasses import dataclass, fields
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Any, Final

from google.rpc import code_pb2
from p4.v1 import p4runtime_pb2

from controller.base_state import multicast_group
from controller.errors import ConnectionLostError, P4InfoError
from controller.frames import control_frame, parse_answer
from controller.operations import (
    Answer,
    HotMiss,
    Install,
    Remove,
    Replace,
    Result,
    SetGroup,
    SetThreshold,
    Subscription,
)
from controller.p4_constants import BLOCKS, HOT_MISS, MISS_SETTINGS, OUTCOME_NAMES, OUTCOMES, SUBSCRIPTION
from hostlib.wire import KEY_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from controller.config import Host
    from controller.costs import Costs
    from controller.operations import PacketOperation, TableOperation
    from controller.p4info import Program
    from controller.p4runtime_client import SwitchClient

Entity = p4runtime_pb2.Entity
Update = p4runtime_pb2.Update

_RESULTS: Final = {
    code_pb2.OK: Result.OK,
    code_pb2.ALREADY_EXISTS: Result.ALREADY_EXISTS,
    code_pb2.NOT_FOUND: Result.NOT_FOUND,
}


class P4RuntimeAdapter:
    """`controller.operations.Adapter` for a switch that runs p4/weir.p4."""

    def __init__(self, program: Program, controller: Host, costs: Costs) -> None:
        self.session_client: SwitchClient | None = None
        """That of the open session, if there is one."""
        self._program = program
        self._controller, self._costs = controller, costs
        self._digests = dict(_digests(program))
        self._blocks_id = program.table_id(BLOCKS)

    @property
    def _client(self) -> SwitchClient:
        if self.session_client is None:
            raise ConnectionLostError("no session")
        return self.session_client

    def write(self, operations: Sequence[TableOperation]) -> list[Result]:
        """Carry out table operations; one result each."""
        codes = self._client.write_updates([self._update(operation) for operation in operations])
        return [_RESULTS.get(code, Result.FAILED) for code in codes]

    def send(self, operations: Sequence[PacketOperation]) -> None:
        """Send control operations as PacketOut."""
        client = self._client
        for operation in operations:
            request = p4runtime_pb2.StreamMessageRequest()
            request.packet.payload = control_frame(operation, self._controller)
            client.send(request)
        self._costs.packet_outs += len(operations)

    def read_blocks(self) -> list[Install]:
        """The pool index as it is."""
        wildcard = Entity(table_entry=p4runtime_pb2.TableEntry(table_id=self._blocks_id))
        blocks = []
        for entity in self._client.read([wildcard]):
            parameters = self._program.parameters(entity.table_entry)
            blocks.append(Install(_key(entity.table_entry), **parameters))
        return blocks

    def read_hits(self) -> dict[bytes, int]:
        """Packets that hit each entry."""
        wildcard = Entity()
        wildcard.direct_counter_entry.table_entry.table_id = self._blocks_id
        entries = (entity.direct_counter_entry for entity in self._client.read([wildcard]))
        return {_key(entry.table_entry): entry.data.packet_count for entry in entries}

    def read_outcomes(self) -> list[int]:
        """Packets by what became of them, in the order of OUTCOME_NAMES."""
        wildcard = Entity(
            counter_entry=p4runtime_pb2.CounterEntry(counter_id=self._program.counter_id(OUTCOMES))
        )
        packets = [0] * len(OUTCOME_NAMES)
        for entity in self._client.read([wildcard]):
            if entity.counter_entry.index.index < len(packets):
                packets[entity.counter_entry.index.index] = entity.counter_entry.data.packet_count
        return packets

    def reports(self, message: Any) -> list[HotMiss | Subscription | Answer]:
        """What a stream message says; nothing for what is not for us."""
        if message.HasField("digest") and message.digest.digest_id in self._digests:
            self._costs.digest_lists += 1
            self._costs.digests += len(message.digest.data)
            digest = self._digests[message.digest.digest_id]
            return [digest.report(sample.struct) for sample in message.digest.data]
        if message.HasField("packet"):
            self._costs.packet_ins += 1
            answer = parse_answer(message.packet.payload)
            return [] if answer is None else [answer]
        return []

    def _update(self, operation: TableOperation) -> Any:
        entry, kind = self._program.entry, Update.MODIFY
        match operation:
            case Install(key, base_slot, generation, fragments):
                if not isinstance(operation, Replace):
                    kind = Update.INSERT
                slots = {"base_slot": base_slot, "generation": generation, "fragments": fragments}
                changed = entry(BLOCKS, _match(key), "locate", **slots)
            case Remove(key):
                kind = Update.DELETE
                changed = entry(BLOCKS, _match(key))
            case SetThreshold(count):
                changed = entry(MISS_SETTINGS, {}, "report_from", count=count)
            case SetGroup():
                return _group_update(operation)
        return Update(type=kind, entity=Entity(table_entry=changed))


@dataclass(frozen=True, slots=True)
class _Digest:
    """A digest whose fields are those of a report."""

    kind: type[HotMiss] | type[Subscription]
    names: tuple[str, ...]

    def report(self, struct: Any) -> HotMiss | Subscription:
        values: dict[str, Any] = {
            name: int.from_bytes(member.bitstring, "big")
            for name, member in zip(self.names, struct.members, strict=True)
        }
        values["key"] = values["key"].to_bytes(KEY_BYTES, "big")
        if "home" in values:
            values["home"] = IPv4Address(values["home"])
        return self.kind(**values)


def _digests(program: Program) -> Iterator[tuple[int, _Digest]]:
    """By id; raises P4InfoError where the program's digest has other fields."""
    kinds: dict[str, type[HotMiss] | type[Subscription]] = {HOT_MISS: HotMiss, SUBSCRIPTION: Subscription}
    for name, kind in kinds.items():
        names = program.digest_fields(name)
        if set(names) != {field.name for field in fields(kind)}:
            raise P4InfoError(f"digest {name} has other fields: {', '.join(names)}")
        yield program.digest_id(name), _Digest(kind, names)


def _group_update(change: SetGroup) -> Any:
    kind = Update.INSERT
    if change.present:
        kind = Update.MODIFY if change.ports else Update.DELETE
    return Update(type=kind, entity=multicast_group(change.group, sorted(change.ports)))


def _match(key: bytes) -> dict[str, int]:
    return {"key": int.from_bytes(key, "big")}


def _key(entry: Any) -> bytes:
    return int.from_bytes(entry.match[0].exact.value, "big").to_bytes(KEY_BYTES, "big")
