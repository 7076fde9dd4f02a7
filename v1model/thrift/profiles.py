"""Action profiles and selectors in BMv2's Thrift service. Handles are P4Runtime's ids minus 1."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from v1model.dataplane import Group, Member
from v1model.thrift.binary import I32, STRING, ListOf, StructOf
from v1model.thrift.calls import TABLE, ThriftError, call
from v1model.thrift.values import FIRST_ID, action_call, action_data, named

if TYPE_CHECKING:
    from v1model.dataplane import DataPlane
    from v1model.ir import ActionCall, ExternInstance

MEMBER = StructOf((I32, STRING, ListOf(STRING)))
GROUP = StructOf((I32, ListOf(I32)))
INVALID_MEMBER, MEMBER_IN_USE, ALREADY_IN_GROUP, NOT_IN_GROUP, INVALID_GROUP, GROUP_IN_USE = (
    10,
    11,
    12,
    13,
    14,
    15,
)
INVALID_PROFILE, NO_SELECTION = 23, 24


class Profiles:
    def __init__(self, switch: DataPlane) -> None:
        self._switch = switch

    @call(4, I32, TABLE)
    def bm_mt_act_prof_add_member(self, _context: int, profile: bytes, action: bytes, data: Any) -> int:
        found = self._profile(profile)
        taken = {member.member_id for member in self._switch.members(found.name)}
        number = _smallest_free(taken)
        self._switch.insert_member(found.name, Member(number, self._action(found, action, data)))
        return number - FIRST_ID

    @call(3, None, TABLE)
    def bm_mt_act_prof_delete_member(self, _context: int, profile: bytes, handle: int) -> None:
        found = self._profile(profile)
        self._member(found, handle)
        if any(handle + FIRST_ID in dict(group.members) for group in self._groups(found)):
            raise ThriftError(MEMBER_IN_USE, f"member {handle} is in a group")
        self._switch.delete_member(found.name, handle + FIRST_ID)

    @call(5, None, TABLE)
    def bm_mt_act_prof_modify_member(
        self, _context: int, profile: bytes, handle: int, action: bytes, data: Any
    ) -> None:
        found = self._profile(profile)
        self._member(found, handle)
        self._switch.modify_member(found.name, Member(handle + FIRST_ID, self._action(found, action, data)))

    @call(2, ListOf(MEMBER), TABLE)
    def bm_mt_act_prof_get_members(self, _context: int, profile: bytes) -> list[tuple[Any, ...]]:
        members = self._switch.members(self._profile(profile).name)
        return [self._shown(member) for member in sorted(members, key=lambda member: member.member_id)]

    @call(3, MEMBER, TABLE)
    def bm_mt_act_prof_get_member(self, _context: int, profile: bytes, handle: int) -> tuple[Any, ...]:
        return self._shown(self._member(self._profile(profile), handle))

    @call(2, I32, TABLE)
    def bm_mt_act_prof_create_group(self, _context: int, profile: bytes) -> int:
        found = self._selector(profile)
        number = _smallest_free({group.group_id for group in self._groups(found)})
        self._switch.insert_group(found.name, Group(number))
        return number - FIRST_ID

    @call(3, None, TABLE)
    def bm_mt_act_prof_delete_group(self, _context: int, profile: bytes, handle: int) -> None:
        found = self._selector(profile)
        self._switch.delete_group(found.name, self._group(found, handle).group_id)

    @call(4, None, TABLE)
    def bm_mt_act_prof_add_member_to_group(
        self, _context: int, profile: bytes, member: int, group: int
    ) -> None:
        found = self._selector(profile)
        known, added = self._group(found, group), self._member(found, member).member_id
        if added in dict(known.members):
            raise ThriftError(ALREADY_IN_GROUP, f"member {member} is in group {group} already")
        self._switch.modify_group(found.name, replace(known, members=(*known.members, (added, 1))))

    @call(4, None, TABLE)
    def bm_mt_act_prof_remove_member_from_group(
        self, _context: int, profile: bytes, member: int, group: int
    ) -> None:
        found = self._selector(profile)
        known = self._group(found, group)
        rest = tuple(pair for pair in known.members if pair[0] != member + FIRST_ID)
        if len(rest) == len(known.members):
            raise ThriftError(NOT_IN_GROUP, f"member {member} is not in group {group}")
        watched = tuple(pair for pair in known.watched if pair[0] != member + FIRST_ID)
        self._switch.modify_group(found.name, replace(known, members=rest, watched=watched))

    @call(2, ListOf(GROUP), TABLE)
    def bm_mt_act_prof_get_groups(self, _context: int, profile: bytes) -> list[tuple[int, list[int]]]:
        groups = self._groups(self._selector(profile))
        return [_shown_group(group) for group in sorted(groups, key=lambda group: group.group_id)]

    @call(3, GROUP, TABLE)
    def bm_mt_act_prof_get_group(self, _context: int, profile: bytes, handle: int) -> tuple[int, list[int]]:
        return _shown_group(self._group(self._selector(profile), handle))

    # --- what calls name

    def _profile(self, name: bytes) -> ExternInstance:
        kinds = ("action_profile", "action_selector")
        profiles = [extern for extern in self._switch.program.externs if extern.kind in kinds]
        if (found := named(profiles, name)) is None:
            raise ThriftError(INVALID_PROFILE, f"no action profile {name!r}")
        return found

    def _selector(self, name: bytes) -> ExternInstance:
        profile = self._profile(name)
        if profile.kind != "action_selector":
            raise ThriftError(NO_SELECTION, f"{profile.name} has no selector")
        return profile

    def _member(self, profile: ExternInstance, handle: int) -> Member:
        for member in self._switch.members(profile.name):
            if member.member_id == handle + FIRST_ID:
                return member
        raise ThriftError(INVALID_MEMBER, f"{profile.name} has no member {handle}")

    def _groups(self, profile: ExternInstance) -> list[Group]:
        return list(self._switch.groups(profile.name)) if profile.kind == "action_selector" else []

    def _group(self, profile: ExternInstance, handle: int) -> Group:
        for group in self._groups(profile):
            if group.group_id == handle + FIRST_ID:
                return group
        raise ThriftError(INVALID_GROUP, f"{profile.name} has no group {handle}")

    def _action(self, profile: ExternInstance, name: bytes, data: Any) -> ActionCall:
        tables = [table for table in self._switch.program.tables if table.implementation == profile.name]
        names = {action.action for table in tables for action in table.actions}
        return action_call([a for a in self._switch.program.actions if a.name in names], name, data)

    def _shown(self, member: Member) -> tuple[Any, ...]:
        data = action_data(self._switch.program.actions, member.action)
        return member.member_id - FIRST_ID, member.action.action, data


def _shown_group(group: Group) -> tuple[int, list[int]]:
    return group.group_id - FIRST_ID, [member_id - FIRST_ID for member_id, _ in group.members]


def _smallest_free(taken: set[int]) -> int:
    return next(number for number in range(FIRST_ID, len(taken) + FIRST_ID + 1) if number not in taken)
