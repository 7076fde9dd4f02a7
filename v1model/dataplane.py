"""Control interface of a loaded program, for the P4Runtime server, the library form and the tests.

Names are the IR's (fully qualified control-plane names); values are Python ints. Nothing here depends on
protobuf, gRPC or C. `v1model.switch.Switch` implements the interface.

Every call is atomic against packets: a packet sees the state before it or after it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from v1model.ir import ActionCall, Key, KeyMatch, Program, Table

MAX_PRIORITY = (1 << 31) - 1  # P4Runtime's, where the higher wins; BMv2's is this minus it
MAX_REPLICAS = 1 << 16  # of a multicast group or clone session: copies that one packet becomes


class DataPlaneError(Exception):
    """Refused control call. `code` is one of gRPC's canonical names.

    They are ALREADY_EXISTS, NOT_FOUND, INVALID_ARGUMENT, RESOURCE_EXHAUSTED, PERMISSION_DENIED, OUT_OF_RANGE,
    FAILED_PRECONDITION and UNIMPLEMENTED.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class CounterValue:
    packets: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class MeterConfig:
    """Two-rate three-colour meter (RFC 2698): rates in units/s, bursts in units (packets or bytes)."""

    cir: int
    cburst: int
    pir: int
    pburst: int


Matches = tuple["KeyMatch | None", ...]  # one for each key, None for don't-care and for selector keys


def matched(table: Table, matches: Matches) -> list[tuple[Key, KeyMatch | None]]:
    """Return the keys that take a match, with their matches: all except selector keys."""
    pairs = zip(table.keys, matches, strict=True)
    return [(key, match) for key, match in pairs if key.match_kind != "selector"]


def placed(table: Table, matches: Iterable[KeyMatch | None]) -> Matches:
    """Return the matches of the keys that take one, with an empty place for each selector key."""
    given = iter(matches)
    return tuple(None if key.match_kind == "selector" else next(given) for key in table.keys)


@dataclass(frozen=True, slots=True)
class MeterCounts:
    """Packets and bytes that a meter has counted, by colour."""

    green: CounterValue = CounterValue()
    yellow: CounterValue = CounterValue()
    red: CounterValue = CounterValue()


class TableEntry(NamedTuple):
    """Table entry. `matches` has one for each key, None for don't-care.

    `action` is an ActionCall; in a table with an action profile `member` or `group` is an id instead.
    `priority` is 0 where the keys need none.
    """

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
    """Configuration of a digest: max_list_size 0 is BMv2's 1,024, max_timeout_ns 0 none, ack_timeout_ns 0 no
    cache.
    """

    max_timeout_ns: int = 0
    max_list_size: int = 0
    ack_timeout_ns: int = 0


@dataclass(frozen=True, slots=True)
class DigestList:
    """List of digest samples; `data` has one tuple of field values a sample, in the digest struct's order."""

    digest: str
    list_id: int
    timestamp_ns: int
    data: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class CustomCrc:
    """Parameters of crc16_custom or crc32_custom, as in simple_switch."""

    polynomial: int
    initial: int
    final_xor: int
    data_reflected: bool
    remainder_reflected: bool


@dataclass(frozen=True, slots=True)
class Output:
    """Packet that left the switch, with the time in microseconds of the switch's clock."""

    port: int
    data: bytes
    time_us: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Member:
    member_id: int
    action: ActionCall


@dataclass(frozen=True, slots=True)
class Group:
    """Group of an action selector. `members` are (member id, weight).

    `watched` are (member id, port): the member is not chosen while the link of the port is down.
    """

    group_id: int
    members: tuple[tuple[int, int], ...] = field(default=())
    max_size: int = 0
    watched: tuple[tuple[int, int], ...] = field(default=())


@dataclass(frozen=True, slots=True)
class WireTable:
    """Names of a table's parts in p4.v1.TableEntry.

    `fields` are id and kind ("exact", "lpm" …) of each key, in the program's order. `actions` are id, name
    and parameter ids, in order, of the actions of entries. `may_modify` says that a MODIFY changes only the
    action.
    """

    id: int
    name: str
    fields: tuple[tuple[int, str], ...]
    actions: tuple[tuple[int, str, tuple[int, ...]], ...]
    may_modify: bool


class EntryWriter(Protocol):
    """Writer of the plain updates of a serialized p4.v1.WriteRequest; it leaves the others."""

    def write(self, request: bytes, cursor: int, most: int) -> tuple[int, int]:
        """Do updates from the byte `cursor` on; returns how many were done, and where it stopped.

        It stops after `most` updates, or at one that is wrong or more than a key and an action.
        """

    def skip(self, request: bytes, cursor: int) -> int:
        """Return where the update after the one at `cursor` begins."""


class DataPlane(Protocol):
    """Control interface. Errors are DataPlaneError: OUT_OF_RANGE for indices, NOT_FOUND for unknown names."""

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
        """Wait for events and return them; empty after `timeout_s`.

        Events are packets for the CPU port (with packet_in header), due digest lists, and entries whose idle
        timeout is over. Queues are bounded; events that did not fit are counted.
        """

    def wait_events(self, timeout_s: float) -> list[Output | DigestList | TableEntry]:
        """Wait for events and return them; empty after `timeout_s`.

        Events are packets for the CPU port (with packet_in header), due digest lists, and entries whose idle
        timeout is over. Queues are bounded; events that did not fit are counted.
        """

    def interrupt_wait(self) -> None:
        """Process no packet during the block; packets that arrive wait."""

    def paused(self) -> AbstractContextManager[None]:
        """Process no packet during the block; those that arrive wait."""

    def reset(self) -> None:
        """Restore the state after loading (RECONCILE_AND_COMMIT of another program makes a new one)."""
