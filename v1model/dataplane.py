"""The control interface of a loaded program: what the P4Runtime server, the library form and the
tests use. Names are the IR's (fully qualified control-plane names); values are Python ints; there
is nothing of protobuf, gRPC or C here. `v1model.switch.Switch` implements it.

Every call is atomic against packets: a packet sees the state before it or after it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from v1model.ir import ActionCall, Key, KeyMatch, Program, Table

MAX_PRIORITY = (1 << 31) - 1  # P4Runtime's, where the bigger one wins; BMv2's is this one less
MAX_REPLICAS = 1 << 16  # of a multicast group or clone session: copies that one packet becomes


class DataPlaneError(Exception):
    """`code` is one of gRPC's canonical names: ALREADY_EXISTS, NOT_FOUND, INVALID_ARGUMENT,
    RESOURCE_EXHAUSTED, PERMISSION_DENIED, OUT_OF_RANGE, FAILED_PRECONDITION, UNIMPLEMENTED."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class CounterValue:
    packets: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class MeterConfig:
    """Two-rate three-colour (RFC 2698): rates in units/s, bursts in units (packets or bytes)."""

    cir: int
    cburst: int
    pir: int
    pburst: int


Matches = tuple["KeyMatch | None", ...]  # one for each key, None for don't-care and for selector keys


def matched(table: Table, matches: Matches) -> list[tuple[Key, KeyMatch | None]]:
    """Return the keys that take a match, with their matches. A selector key takes none, but has a place."""
    pairs = zip(table.keys, matches, strict=True)
    return [(key, match) for key, match in pairs if key.match_kind != "selector"]


def placed(table: Table, matches: Iterable[KeyMatch | None]) -> Matches:
    """Return the matches of the keys that take one, with an empty place for each selector key."""
    given = iter(matches)
    return tuple(None if key.match_kind == "selector" else next(given) for key in table.keys)


@dataclass(frozen=True, slots=True)
class MeterCounts:
    """What a meter has counted, by colour."""

    green: CounterValue = CounterValue()
    yellow: CounterValue = CounterValue()
    red: CounterValue = CounterValue()


class TableEntry(NamedTuple):
    """matches: one per key, None for don't-care. action: an ActionCall, or for a table with an
    action profile the member id or group id (`member`, `group`). priority 0 where keys need none."""

    table: str
    matches: tuple[KeyMatch | None, ...]
    action: ActionCall | None
    priority: int = 0
    member: int | None = None
    group: int | None = None
    idle_timeout_ns: int = 0
    is_const: bool = False


@dataclass(frozen=True, slots=True)
class Replica:
    port: int
    instance: int = 0


@dataclass(frozen=True, slots=True)
class CloneSession:
    replicas: tuple[Replica, ...]
    packet_length_bytes: int = 0  # 0: whole packet
    class_of_service: int = 0


@dataclass(frozen=True, slots=True)
class DigestConfig:
    """max_list_size 0 counts as BMv2's 1,024; max_timeout_ns 0: never; ack_timeout_ns 0: no cache."""

    max_timeout_ns: int = 0
    max_list_size: int = 0
    ack_timeout_ns: int = 0


@dataclass(frozen=True, slots=True)
class DigestList:
    """data: one tuple of field values per sample, in the digest struct's order."""

    digest: str
    list_id: int
    timestamp_ns: int
    data: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class CustomCrc:
    """Parameters of crc16_custom or crc32_custom, as simple_switch has them."""

    polynomial: int
    initial: int
    final_xor: int
    data_reflected: bool
    remainder_reflected: bool


@dataclass(frozen=True, slots=True)
class Output:
    """A packet that left the switch, and when, in microseconds of the switch's clock."""

    port: int
    data: bytes
    time_us: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Member:
    member_id: int
    action: ActionCall


@dataclass(frozen=True, slots=True)
class Group:
    """members: (member id, weight). watched: (member id, port): while the link of that port is down, the
    member is not chosen."""

    group_id: int
    members: tuple[tuple[int, int], ...] = field(default=())
    max_size: int = 0
    watched: tuple[tuple[int, int], ...] = field(default=())


@dataclass(frozen=True, slots=True)
class WireTable:
    """How p4.v1.TableEntry names a table's parts. fields: id and kind ("exact", "lpm" …) of each key, in the
    program's order; actions: id, name and the parameters' ids in order, of those that entries may have.
    may_modify: a MODIFY concerns the action alone."""

    id: int
    name: str
    fields: tuple[tuple[int, str], ...]
    actions: tuple[tuple[int, str, tuple[int, ...]], ...]
    may_modify: bool


class EntryWriter(Protocol):
    """Writes what is plain of a serialized p4.v1.WriteRequest, update by update, and leaves the rest."""

    def write(self, request: bytes, cursor: int, most: int) -> tuple[int, int]:
        """Does updates from the byte `cursor` on until `most` are done or one is not for it, because it is
        wrong or more than a key and an action. How many it did, and where it stopped."""

    def skip(self, request: bytes, cursor: int) -> int:
        """Return where the update behind the one at `cursor` begins."""


class DataPlane(Protocol):
    """Errors are DataPlaneError. Indices out of range: OUT_OF_RANGE; unknown names: NOT_FOUND."""

    program: Program

    # tables
    def insert(self, entry: TableEntry) -> None: ...
    def modify(self, entry: TableEntry) -> None: ...
    def delete(self, entry: TableEntry) -> None: ...  # matches and priority decide
    def find(self, entry: TableEntry) -> TableEntry: ...  # the same matches and priority
    def entries(self, table: str) -> Iterator[TableEntry]: ...
    def entry_writer(self, tables: Sequence[WireTable]) -> EntryWriter: ...
    def set_default(self, table: str, action: ActionCall | None) -> None: ...  # None: as in the program
    def default(self, table: str) -> ActionCall: ...
    def idle_time_ns(self, entry: TableEntry) -> int: ...  # since the entry's last hit

    # counters, meters, registers; `entry` None in the direct forms: the default action's
    def direct_counter(self, entry: TableEntry) -> CounterValue: ...
    def direct_counters(self, table: str) -> Iterator[tuple[TableEntry, CounterValue]]: ...  # one sweep
    def set_direct_counter(self, entry: TableEntry, value: CounterValue) -> None: ...
    def counter(self, name: str, index: int) -> CounterValue: ...
    def counters(self, name: str, first: int = 0, count: int | None = None) -> Sequence[CounterValue]: ...
    def set_counter(self, name: str, index: int, value: CounterValue) -> None: ...
    def meter(self, name: str, index: int) -> MeterConfig | None: ...
    def set_meter(self, name: str, index: int, config: MeterConfig | None) -> None: ...
    def direct_meter(self, entry: TableEntry) -> MeterConfig | None: ...
    def set_direct_meter(self, entry: TableEntry, config: MeterConfig | None) -> None: ...
    def meter_counts(self, name: str, index: int) -> MeterCounts: ...
    def set_meter_counts(self, name: str, index: int, counts: MeterCounts) -> None: ...
    def direct_meter_counts(self, entry: TableEntry) -> MeterCounts: ...
    def set_direct_meter_counts(self, entry: TableEntry, counts: MeterCounts) -> None: ...
    def register(self, name: str, index: int) -> int: ...
    def set_register(self, name: str, index: int, value: int) -> None: ...

    # action profiles and selectors
    def insert_member(self, profile: str, member: Member) -> None: ...
    def modify_member(self, profile: str, member: Member) -> None: ...
    def delete_member(self, profile: str, member_id: int) -> None: ...
    def members(self, profile: str) -> Iterator[Member]: ...
    def insert_group(self, profile: str, group: Group) -> None: ...
    def modify_group(self, profile: str, group: Group) -> None: ...
    def delete_group(self, profile: str, group_id: int) -> None: ...
    def groups(self, profile: str) -> Iterator[Group]: ...

    # parser value sets
    def value_set(self, name: str) -> tuple[Matches, ...]: ...
    def set_value_set(self, name: str, members: Iterable[Matches]) -> None: ...  # all of them at once

    # packet replication
    def set_multicast_group(self, group: int, replicas: Iterable[Replica] | None) -> None: ...  # None deletes
    def multicast_groups(self) -> Mapping[int, tuple[Replica, ...]]: ...
    def set_clone_session(self, session: int, config: CloneSession | None) -> None: ...
    def clone_sessions(self) -> Mapping[int, CloneSession]: ...

    # digests
    def set_digest(self, digest: str, config: DigestConfig | None) -> None: ...
    def digests(self) -> dict[str, DigestConfig]: ...
    def acknowledge_digest(self, digest: str, list_id: int) -> None: ...

    # events, packets
    def packet_out(self, data: bytes) -> None:
        """Into the CPU port: data starts with the packet_out header, if the program has one."""

    def wait_events(self, timeout_s: float) -> list[Output | DigestList | TableEntry]:
        """Blocks until something happened: packets for the CPU port (packet_in header in front),
        due digest lists, and entries whose idle timeout ran out. Empty after `timeout_s`.
        Queues are bounded; what did not fit is counted."""

    def interrupt_wait(self) -> None:
        """A `wait_events` that goes on returns at once with what there is, else the next one."""

    def paused(self) -> AbstractContextManager[None]:
        """While inside, no packet is processed; those that come wait."""

    def reset(self) -> None:
        """Back to the state after loading (RECONCILE_AND_COMMIT of another program makes a new one)."""
