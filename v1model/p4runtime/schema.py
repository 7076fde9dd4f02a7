"""Contents of a pipeline's P4Info by id, checked against its program."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from v1model.binding.selectors import SelectorLimits
from v1model.dataplane import DataPlaneError
from v1model.p4runtime.actions import ActionTranslator
from v1model.p4runtime.matches import KeyTranslator
from v1model.p4runtime.p4data import DataTranslator
from v1model.p4runtime.tables import TableTranslator
from v1model.p4runtime.values import CodecFactory

if TYPE_CHECKING:
    from v1model import ir
    from v1model.dataplane import WireTable
    from v1model.protos.p4.config.v1 import p4info_pb2

T = TypeVar("T")


@dataclass(frozen=True)
class ArrayInfo:
    """Indexed counter, meter or register."""

    id: int
    name: str
    size: int
    data: DataTranslator | None = None  # registers only


@dataclass(frozen=True)
class ProfileInfo:
    """Action profile, or action selector (`has_selector`)."""

    id: int
    name: str
    has_selector: bool
    limits: SelectorLimits
    table: TableTranslator  # any of its tables: they all have the same actions


@dataclass(frozen=True)
class DigestInfo:
    id: int
    name: str
    data: DataTranslator


@dataclass(frozen=True)
class ValueSetInfo:
    """Parser's value set."""

    id: int
    name: str
    keys: KeyTranslator


class Schema:
    """Translators of one pipeline. Raises DataPlaneError if the P4Info is not the program's."""

    def __init__(self, p4info: p4info_pb2.P4Info, program: ir.Program) -> None:
        self.codecs = CodecFactory(p4info.type_info)
        self._check_ids(p4info)
        tables = {table.name: table for table in program.tables}
        actions = {action.name: action for action in program.actions}
        self.actions = {
            info.preamble.id: ActionTranslator(
                info, _known(actions, info.preamble.name, "action"), self.codecs
            )
            for info in p4info.actions
        }
        self.tables = {
            info.preamble.id: TableTranslator(
                info, _known(tables, info.preamble.name, "table"), self.actions, self.codecs
            )
            for info in p4info.tables
        }
        self.tables_by_name = {table.name: table for table in self.tables.values()}
        self._read_externs(p4info, {extern.name: extern for extern in program.externs})
        self._read_digests(p4info, {digest.name: digest for digest in program.digests})
        self._read_value_sets(p4info, {value_set.name: value_set for value_set in program.value_sets})

    def table(self, table_id: int) -> TableTranslator:
        return _by_id(self.tables, table_id, "table")

    def array(self, arrays: dict[int, ArrayInfo], array_id: int, kind: str) -> ArrayInfo:
        return _by_id(arrays, array_id, kind)

    def profile(self, profile_id: int) -> ProfileInfo:
        return _by_id(self.profiles, profile_id, "action profile")

    def digest(self, digest_id: int) -> DigestInfo:
        return _by_id(self.digests, digest_id, "digest")

    def value_set(self, value_set_id: int) -> ValueSetInfo:
        return _by_id(self.value_sets, value_set_id, "value set")

    def wire_tables(self) -> list[WireTable]:
        """Return the tables whose entries need no translation, for the data plane's writer."""
        return [wire for table in self.tables.values() if (wire := table.as_wire()) is not None]

    def _read_externs(self, p4info: p4info_pb2.P4Info, externs: dict[str, ir.ExternInstance]) -> None:
        self.counters = {info.preamble.id: _array(info, externs) for info in p4info.counters}
        self.meters = {info.preamble.id: _array(info, externs) for info in p4info.meters}
        self.registers = {
            info.preamble.id: _array(
                info, externs, DataTranslator(info.type_spec, p4info.type_info, self.codecs)
            )
            for info in p4info.registers
        }
        counted = {info.direct_table_id for info in p4info.direct_counters}
        metered = {info.direct_table_id for info in p4info.direct_meters}
        for table in self.tables.values():
            table.has_direct_counter, table.has_direct_meter = table.id in counted, table.id in metered
        self.profiles = {
            info.preamble.id: ProfileInfo(
                info.preamble.id,
                _known(externs, info.preamble.name, "action profile").name,
                info.with_selector,
                replace(
                    SelectorLimits.of(_known(externs, info.preamble.name, "action profile")),
                    max_group_size=info.max_group_size,
                ),
                self.table(info.table_ids[0]),
            )
            for info in p4info.action_profiles
            if info.table_ids
        }
        profile_ids = {
            info.preamble.id: self.profiles.get(info.preamble.id) for info in p4info.action_profiles
        }
        for table_info in p4info.tables:
            self.tables[table_info.preamble.id].profile = profile_ids.get(table_info.implementation_id)

    def _read_digests(self, p4info: p4info_pb2.P4Info, digests: dict[str, ir.Digest]) -> None:
        self.digests = {
            info.preamble.id: DigestInfo(
                info.preamble.id,
                _known(digests, info.preamble.name, "digest").name,
                DataTranslator(info.type_spec, p4info.type_info, self.codecs),
            )
            for info in p4info.digests
        }
        self.digests_by_name = {digest.name: digest for digest in self.digests.values()}

    def _read_value_sets(self, p4info: p4info_pb2.P4Info, value_sets: dict[str, ir.ValueSet]) -> None:
        self.value_sets = {
            info.preamble.id: ValueSetInfo(
                info.preamble.id,
                info.preamble.name,
                KeyTranslator(
                    f"value set {info.preamble.name}",
                    info.match,
                    _known(value_sets, info.preamble.name, "value set").keys,
                    self.codecs,
                ),
            )
            for info in p4info.value_sets
        }

    @staticmethod
    def _check_ids(p4info: p4info_pb2.P4Info) -> None:
        seen: dict[int, str] = {}
        for kind in (
            p4info.tables,
            p4info.actions,
            p4info.counters,
            p4info.meters,
            p4info.registers,
            p4info.digests,
            p4info.value_sets,
        ):
            for info in kind:
                other = seen.setdefault(info.preamble.id, info.preamble.name)
                if other != info.preamble.name or not info.preamble.id:
                    raise DataPlaneError(
                        "INVALID_ARGUMENT", f"P4Info: {info.preamble.name} has the id of {other or 'nothing'}"
                    )


def _array(
    info: p4info_pb2.Counter | p4info_pb2.Meter | p4info_pb2.Register,
    externs: dict[str, ir.ExternInstance],
    data: DataTranslator | None = None,
) -> ArrayInfo:
    extern = _known(externs, info.preamble.name, "extern")
    return ArrayInfo(info.preamble.id, extern.name, extern.size, data)


def _known(things: dict[str, T], name: str, kind: str) -> T:
    if name not in things:
        raise DataPlaneError("INVALID_ARGUMENT", f"P4Info's {kind} {name} is not in the program")
    return things[name]


def _by_id(things: dict[int, T], thing_id: int, kind: str) -> T:
    if thing_id not in things:
        raise DataPlaneError(
            "INVALID_ARGUMENT", f"the P4Info has no {kind} with id {thing_id} (0x{thing_id:08x})"
        )
    return things[thing_id]
