"""One-shot action selector programming: a table entry that brings its own action set.

The set becomes a group and members with ids of their own range, hidden from controllers. The message is
stored, because a read must return it as it was written (P4Runtime 1.4, "One Shot Action Selector
Programming").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.dataplane import DataPlaneError, Group, Member
from v1model.p4runtime.entity import invalid
from v1model.p4runtime.watch import watched_port
from v1model.protos.p4.v1 import p4runtime_pb2

if TYPE_CHECKING:
    from v1model.dataplane import DataPlane
    from v1model.p4runtime.schema import ProfileInfo
    from v1model.p4runtime.table_entities import EntryKey
    from v1model.p4runtime.tables import TableTranslator

FIRST_OWN_ID = 1 << 31


class ActionSets:
    """Groups and members behind one-shot entries."""

    def __init__(self, data_plane: DataPlane) -> None:
        self._data_plane = data_plane
        self._next_id = FIRST_OWN_ID
        self._sets: dict[int, tuple[str, list[int], p4runtime_pb2.ActionProfileActionSet]] = {}
        self._groups: dict[EntryKey, int] = {}

    def is_used(self, profile: str) -> bool:
        """Return whether entries with action sets use this profile, which then refuses members and groups."""
        return any(name == profile for name, _, _ in self._sets.values())

    def create(self, table: TableTranslator, message: p4runtime_pb2.ActionProfileActionSet) -> int:
        """Make members and a group; returns its id. `bind` or `discard` must follow."""
        profile = table.profile
        if profile is None or not profile.has_selector:
            raise invalid(f"table {table.name} has no action selector: it takes no action sets")
        self._check(profile, message)
        calls = [table.decode_action(item.action) for item in message.action_profile_actions]
        group_id = self._new_id()
        member_ids: list[int] = []
        self._sets[group_id] = profile.name, member_ids, message
        try:
            for call in calls:
                member_id = self._new_id()
                self._data_plane.insert_member(profile.name, Member(member_id, call))
                member_ids.append(member_id)
            weights = [item.weight for item in message.action_profile_actions]
            members = tuple(zip(member_ids, weights, strict=True))
            watched = zip(member_ids, map(watched_port, message.action_profile_actions), strict=True)
            watches = tuple((member_id, port) for member_id, port in watched if port is not None)
            self._data_plane.insert_group(profile.name, Group(group_id, members, watched=watches))
        except DataPlaneError:
            del self._sets[group_id]
            self._delete_members(profile.name, member_ids)
            raise
        return group_id

    def bind(self, key: EntryKey, group_id: int | None) -> None:
        """Record that the entry at `key` uses this group (or none), and delete its former group."""
        if not self._sets:
            return
        old = self._groups.pop(key, None)
        if group_id is not None and group_id in self._sets:
            self._groups[key] = group_id
        self.discard(old)

    def discard(self, group_id: int | None) -> None:
        """Delete a group that no entry uses. Controllers' groups are left alone."""
        if group_id is None or group_id not in self._sets:
            return
        profile, member_ids, _ = self._sets.pop(group_id)
        self._data_plane.delete_group(profile, group_id)
        self._delete_members(profile, member_ids)

    def find(self, key: EntryKey) -> p4runtime_pb2.ActionProfileActionSet | None:
        """Return the message that the entry at `key` was written with, or None."""
        group_id = self._groups.get(key)
        return self._sets[group_id][2] if group_id is not None else None

    def _check(self, profile: ProfileInfo, message: p4runtime_pb2.ActionProfileActionSet) -> None:
        items = message.action_profile_actions
        limit = profile.limits.max_group_size
        profile.limits.check([item.weight for item in items], limit, "max_group_size", "INVALID_ARGUMENT")
        # The two are never mixed, so one member is enough to know.
        some = next(iter(self._data_plane.members(profile.name)), None)
        if some is not None and some.member_id < FIRST_OWN_ID:
            raise invalid(
                f"{profile.name} is used with members and groups: action sets can't be mixed with them"
            )

    def _new_id(self) -> int:
        self._next_id += 1
        return self._next_id - 1

    def _delete_members(self, profile: str, member_ids: list[int]) -> None:
        for member_id in member_ids:
            self._data_plane.delete_member(profile, member_id)
