"""Random control-plane state: entries for every table, replication, digests, meters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.backend.layout import value_width
from v1model.dataplane import (
    CloneSession,
    DataPlane,
    DataPlaneError,
    DigestConfig,
    Group,
    Member,
    MeterConfig,
    Replica,
    TableEntry,
)

if TYPE_CHECKING:
    import random

ENTRIES = 32  # for each table
MEMBERS = 8  # for each action profile


class Filler:
    def __init__(self, plane: DataPlane, rng: random.Random) -> None:
        self._plane, self._rng = plane, rng
        self._actions = {action.name: action for action in plane.program.actions}

    def fill(self) -> None:
        for table in self._plane.program.tables:
            if table.implementation:
                self._fill_profile(table)
            for _ in range(ENTRIES):
                self._insert(table)
        for number in range(1, 8):
            replicas = [Replica(self._rng.randrange(512), i) for i in range(self._rng.randrange(5))]
            self._plane.set_multicast_group(number, replicas)
            self._plane.set_clone_session(number, CloneSession(tuple(replicas), self._rng.choice((0, 60))))
        for digest in self._plane.program.digests:
            self._plane.set_digest(digest.name, DigestConfig(max_list_size=1))
        for instance in self._plane.program.externs:
            if instance.kind == "meter" and instance.size:
                self._plane.set_meter(instance.name, 0, MeterConfig(1000, 10, 2000, 20))

    def _call(self, table: ir.Table) -> ir.ActionCall | None:
        usable = [action.action for action in table.actions if not action.default_only]
        if not usable:
            return None
        action = self._actions[self._rng.choice(usable)]
        return ir.ActionCall(action.name, tuple(self._rng.getrandbits(p.type.width) for p in action.params))

    def _fill_profile(self, table: ir.Table) -> None:
        for number in range(MEMBERS):
            call = self._call(table)
            if call is not None:
                self._try(self._plane.insert_member, table.implementation, Member(number, call))
        members = tuple((number, 1) for number in range(self._rng.randrange(MEMBERS)))
        self._try(self._plane.insert_group, table.implementation, Group(1, members))

    def _insert(self, table: ir.Table) -> None:
        matches = tuple(self._match(key) for key in table.keys)
        priority = self._rng.randrange(1, 100)
        if not table.implementation:
            entry = TableEntry(table.name, matches, self._call(table), priority)
        elif self._rng.random() < 0.5:
            entry = TableEntry(table.name, matches, None, priority, member=self._rng.randrange(MEMBERS))
        else:
            entry = TableEntry(table.name, matches, None, priority, group=1)
        self._try(self._plane.insert, entry)

    def _match(self, key: ir.Key) -> ir.KeyMatch | None:
        """Return a random match; small values, which packets are likely to have, are as frequent as any."""
        width = value_width(key.expression.type)
        value = self._rng.choice((self._rng.randrange(min(8, 1 << width)), self._rng.getrandbits(width or 1)))
        value &= (1 << width) - 1
        match key.match_kind:
            case "exact":
                return ir.KeyMatch(value)
            case "lpm":
                return ir.KeyMatch(value, prefix_length=self._rng.randint(0, width))
            case "ternary":
                return ir.KeyMatch(value, mask=self._rng.getrandbits(width or 1) & ((1 << width) - 1))
            case "range":
                return ir.KeyMatch(value, high=self._rng.randint(value, (1 << width) - 1))
            case "optional":
                return self._rng.choice((None, ir.KeyMatch(value)))
        return None

    @staticmethod
    def _try(call: object, *arguments: object) -> None:
        """Call a function of the switch; a refusal (a duplicate, a full or const table) is ignored."""
        assert callable(call)
        try:
            call(*arguments)
        except DataPlaneError:
            return
