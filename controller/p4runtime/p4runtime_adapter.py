"""The adapter that speaks P4Runtime: operations to updates and packets, stream messages to reports."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Any, Final

from controller.block_id import block_id, key_of, tenant_of
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
from controller.p4_constants import (
    BLOCK_HITS,
    BLOCKS,
    HOT_MISS,
    MISS_SETTINGS,
    OUTCOME_NAMES,
    OUTCOMES,
    SUBSCRIPTION,
)
from controller.p4runtime.base_state import multicast_group
from controller.p4runtime.p4info import EntryForm, canonical
from hostlib.protocol.wire import KEY_BYTES
from v1model.protos.google.rpc import code_pb2
from v1model.protos.p4.v1 import p4runtime_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from controller.config import Host
    from controller.costs import Costs
    from controller.operations import Packet, TableOperation
    from controller.p4runtime.p4info import Program
    from controller.p4runtime.p4runtime_client import SwitchClient

Entity = p4runtime_pb2.Entity
Update = p4runtime_pb2.Update

_RESULTS: Final[dict[int, Result]] = {
    code_pb2.OK: Result.OK,
    code_pb2.ALREADY_EXISTS: Result.ALREADY_EXISTS,
    code_pb2.NOT_FOUND: Result.NOT_FOUND,
}


class P4RuntimeAdapter:
    """`controller.operations.Adapter` for a switch that runs p4/weir.p4."""

    def __init__(self, program: Program, controller: Host, costs: Costs) -> None:
        self.session_client: SwitchClient | None = None
        """That of the open session, if there is one."""
        self.outcomes = [0] * len(OUTCOME_NAMES)
        """Packets by what became of them, in the order of OUTCOME_NAMES, as last read."""
        self._program = program
        self._controller, self._costs = controller, costs
        self._digests = dict(_digests(program))
        self._blocks_id, self._hits_id = program.table_id(BLOCKS), program.counter_id(BLOCK_HITS)
        # A block that is admitted is an entry, and one that gives way another.
        match = {"tenant": 0, "key": 0}
        slots = {"base_slot": 0, "generation": 0, "fragments": 0}
        self._present = EntryForm(program.entry(BLOCKS, match, "locate", **slots))
        self._absent = EntryForm(program.entry(BLOCKS, match))

    @property
    def _client(self) -> SwitchClient:
        if self.session_client is None:
            raise ConnectionLostError("no session")
        return self.session_client

    def write(self, operations: Sequence[TableOperation]) -> list[Result]:
        """Carry out table operations; one result each."""
        codes = self._client.write_updates([self._update(operation) for operation in operations])
        return [_RESULTS.get(code, Result.FAILED) for code in codes]

    def send(self, operations: Sequence[Packet]) -> None:
        """Send control operations as PacketOut."""
        client = self._client
        for operation in operations:
            request = p4runtime_pb2.StreamMessageRequest()
            request.packet.payload = control_frame(operation, self._controller)
            client.send(request)
        self._costs.packet_outs += len(operations)

    def read_blocks(self) -> list[Install]:
        """Return the pool index as it is."""
        wildcard = Entity(table_entry=p4runtime_pb2.TableEntry(table_id=self._blocks_id))
        blocks = []
        for entity in self._client.read([wildcard]):
            parameters = self._program.parameters(entity.table_entry)
            blocks.append(Install(_key(entity.table_entry), **parameters))
        return blocks

    def read_hits(self, base_slots: Iterable[int]) -> dict[int, int]:
        """Return fragments served of the blocks that lie there; the outcomes come along."""
        return self._read_counters(base_slots)

    def read_outcomes(self) -> None:
        """Bring `outcomes` up to date."""
        self._read_counters(())

    def _read_counters(self, base_slots: Iterable[int]) -> dict[int, int]:
        """Return the hits by first slot, and read the outcomes. One request reads both, because a request
        costs more than what it brings."""
        request = p4runtime_pb2.ReadRequest()
        request.entities.add().counter_entry.counter_id = self._program.counter_id(OUTCOMES)
        for base_slot in base_slots:
            entry = request.entities.add().counter_entry  # in its place: a copy costs three times as much
            entry.counter_id = self._hits_id
            entry.index.index = base_slot
        packets, hits = [0] * len(OUTCOME_NAMES), {}
        for entity in self._client.read_all(request):
            entry = entity.counter_entry
            if entry.counter_id == self._hits_id:
                hits[entry.index.index] = entry.data.packet_count
            else:
                packets[entry.index.index] = entry.data.packet_count
        self.outcomes = packets
        return hits

    def reports(self, message: Any) -> list[HotMiss | Subscription | Answer]:
        """Return what a stream message says; nothing for what is not for us."""
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
        match operation:
            case Install(key, base_slot, generation, fragments):
                kind = Update.MODIFY if isinstance(operation, Replace) else Update.INSERT
                return self._present.update(kind, _match(key), base_slot, generation, fragments)
            case Remove(key):
                return self._absent.update(Update.DELETE, _match(key))
            case SetThreshold(count):
                changed = self._program.entry(MISS_SETTINGS, {}, "report_from", count=count)
                return Update(type=Update.MODIFY, entity=Entity(table_entry=changed))
            case SetGroup():
                return _group_update(operation)


@dataclass(frozen=True, slots=True)
class _Digest:
    """A digest whose fields are those of a report."""

    kind: type[HotMiss] | type[Subscription]
    members: tuple[tuple[int, Callable[[bytes], Any]], ...]
    """Reader of each bitstring and its place in the struct, in the order of the report's fields."""

    def report(self, struct: Any) -> HotMiss | Subscription:
        members = struct.members
        return self.kind(*[read(members[place].bitstring) for place, read in self.members])


def _digests(program: Program) -> Iterator[tuple[int, _Digest]]:
    """Yield each digest with its id; raises P4InfoError where the program's digest has other fields."""
    kinds: dict[str, type[HotMiss] | type[Subscription]] = {HOT_MISS: HotMiss, SUBSCRIPTION: Subscription}
    for name, kind in kinds.items():
        names = program.digest_fields(name)
        wanted = [field.name for field in fields(kind)]
        if set(names) != set(wanted):
            raise P4InfoError(f"digest {name} has other fields: {', '.join(names)}")
        members = tuple((names.index(field), _READERS.get(field, _number)) for field in wanted)
        yield program.digest_id(name), _Digest(kind, members)


def _group_update(change: SetGroup) -> Any:
    kind = Update.INSERT
    if change.present:
        kind = Update.MODIFY if change.ports else Update.DELETE
    return Update(type=kind, entity=multicast_group(change.group, sorted(change.ports)))


def _match(block: bytes) -> tuple[bytes, bytes]:
    """Return tenant and key of a block in P4Runtime's form."""
    return canonical(tenant_of(block)), _shortest(key_of(block))


def _shortest(key: bytes) -> bytes:
    """Return P4Runtime's form of a key, which has no leading zeros."""
    return key if key[0] else canonical(int.from_bytes(key, "big"))


def _key(entry: Any) -> bytes:
    values = {match.field_id: match.exact.value for match in entry.match}
    tenant, key = (values[field] for field in sorted(values))
    return block_id(_number(tenant), _whole_key(key))


def _whole_key(bitstring: bytes) -> bytes:
    """Return a key from a server's form of it, which may lack leading zeros or have more of them."""
    return bitstring[-KEY_BYTES:].rjust(KEY_BYTES, b"\0")


def _number(bitstring: bytes) -> int:
    return int.from_bytes(bitstring, "big")


@lru_cache(maxsize=1024)
def _address(bitstring: bytes) -> IPv4Address:
    """Return the address of one of the few storage nodes."""
    return IPv4Address(_number(bitstring))


_READERS: Final[dict[str, Callable[[bytes], Any]]] = {"key": _whole_key, "home": _address}
"""Readers of a digest's members that are no numbers."""
