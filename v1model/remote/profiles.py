"""Commands of simple_switch_CLI for action profiles and selectors, and for tables that use them."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from v1model.dataplane import Group, Member
from v1model.stf.names import find_whole
from v1model.stf.parser import parse_number
from v1model.thrift.values import FIRST_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from v1model import ir
    from v1model.remote.data_plane import RemoteDataPlane
    from v1model.remote.tables import TableCommands

# Former names in simple_switch_CLI, which scripts still use.
_OLD_NAMES = {
    "table_indirect_create_member": "act_prof_create_member",
    "table_indirect_delete_member": "act_prof_delete_member",
    "table_indirect_modify_member": "act_prof_modify_member",
    "table_indirect_create_group": "act_prof_create_group",
    "table_indirect_delete_group": "act_prof_delete_group",
    "table_indirect_add_member_to_group": "act_prof_add_member_to_group",
    "table_indirect_remove_member_from_group": "act_prof_remove_member_from_group",
    "table_dump_member": "act_prof_dump_member",
    "table_dump_group": "act_prof_dump_group",
}


class ProfileCommands:
    """Commands for members and groups.

    A handle is an id minus 1, so it is valid in other sessions too; a new one is the smallest free one.
    """

    def __init__(
        self, data_plane: RemoteDataPlane, tables: TableCommands, say: Callable[[str], None]
    ) -> None:
        self._data_plane, self._tables, self._say = data_plane, tables, say
        self.commands: dict[str, Callable[[Sequence[str]], None]] = {
            "act_prof_create_member": self._create_member,
            "act_prof_modify_member": self._modify_member,
            "act_prof_delete_member": self._delete_member,
            "act_prof_create_group": self._create_group,
            "act_prof_delete_group": self._delete_group,
            "act_prof_add_member_to_group": self._add_to_group,
            "act_prof_remove_member_from_group": self._remove_from_group,
            "act_prof_dump": self._dump,
            "act_prof_dump_member": self._dump_member,
            "act_prof_dump_group": self._dump_group,
            "table_indirect_add": lambda words: tables.add_indirect(words, "member"),
            "table_indirect_add_with_group": lambda words: tables.add_indirect(words, "group"),
            "table_indirect_delete": tables.commands["table_delete"],
        }
        for old, name in _OLD_NAMES.items():
            self.commands[old] = self.commands[name]

    def _profile(self, name: str) -> ir.ExternInstance:
        kinds = ("action_profile", "action_selector")
        externs = self._data_plane.program.externs
        return find_whole([extern for extern in externs if extern.kind in kinds], name, "action profile")

    def _call(self, profile: ir.ExternInstance, action: str, params: Sequence[str]) -> ir.ActionCall:
        for table in self._data_plane.program.tables:
            if table.implementation == profile.name:
                return self._tables.call(table, action, params)
        raise ValueError(f"no table uses {profile.name}")

    def _create_member(self, words: Sequence[str]) -> None:
        """Run act_prof_create_member PROFILE ACTION PARAMETER..."""
        profile = self._profile(words[0])
        own_id = _free(member.member_id for member in self._data_plane.members(profile.name))
        call = self._call(profile, words[1], words[2:])
        self._data_plane.insert_member(profile.name, Member(own_id, call))
        self._say(f"Member has been created with handle {own_id - FIRST_ID}")

    def _modify_member(self, words: Sequence[str]) -> None:
        """Run act_prof_modify_member PROFILE ACTION HANDLE PARAMETER..."""
        profile = self._profile(words[0])
        call = self._call(profile, words[1], words[3:])
        self._data_plane.modify_member(profile.name, Member(_own_id(words[2]), call))

    def _delete_member(self, words: Sequence[str]) -> None:
        self._data_plane.delete_member(self._profile(words[0]).name, _own_id(words[1]))

    def _create_group(self, words: Sequence[str]) -> None:
        profile = self._profile(words[0])
        own_id = _free(group.group_id for group in self._data_plane.groups(profile.name))
        self._data_plane.insert_group(profile.name, Group(own_id))
        self._say(f"Group has been created with handle {own_id - FIRST_ID}")

    def _delete_group(self, words: Sequence[str]) -> None:
        self._data_plane.delete_group(self._profile(words[0]).name, _own_id(words[1]))

    def _add_to_group(self, words: Sequence[str]) -> None:
        """Run act_prof_add_member_to_group PROFILE MEMBER GROUP [WEIGHT]."""
        profile, member, group = self._of_group(words)
        if member in dict(group.members):
            raise ValueError(f"group {words[2]} has member {words[1]} already")
        weight = parse_number(words[3]) if len(words) > 3 else 1
        self._set_members(profile, group, (*group.members, (member, weight)))

    def _remove_from_group(self, words: Sequence[str]) -> None:
        profile, member, group = self._of_group(words)
        if member not in dict(group.members):
            raise ValueError(f"group {words[2]} has no member {words[1]}")
        self._set_members(profile, group, tuple(one for one in group.members if one[0] != member))

    def _of_group(self, words: Sequence[str]) -> tuple[str, int, Group]:
        profile = self._profile(words[0]).name
        return profile, _own_id(words[1]), self._group(profile, words[2])

    def _group(self, profile: str, handle: str) -> Group:
        for group in self._data_plane.groups(profile):
            if group.group_id == _own_id(handle):
                return group
        raise ValueError(f"{profile} has no group with handle {handle}; act_prof_dump shows them")

    def _set_members(self, profile: str, group: Group, members: tuple[tuple[int, int], ...]) -> None:
        watched = tuple(one for one in group.watched if one[0] in dict(members))
        self._data_plane.modify_group(profile, replace(group, members=members, watched=watched))

    def _dump(self, words: Sequence[str]) -> None:
        profile = self._profile(words[0])
        for member in self._data_plane.members(profile.name):
            self._say(_shown_member(member))
        for group in self._data_plane.groups(profile.name):
            self._say(_shown_group(group))

    def _dump_member(self, words: Sequence[str]) -> None:
        profile = self._profile(words[0]).name
        for member in self._data_plane.members(profile):
            if member.member_id == _own_id(words[1]):
                self._say(_shown_member(member))
                return
        raise ValueError(f"{profile} has no member with handle {words[1]}; act_prof_dump shows them")

    def _dump_group(self, words: Sequence[str]) -> None:
        self._say(_shown_group(self._group(self._profile(words[0]).name, words[1])))


def _shown_member(member: Member) -> str:
    arguments = ", ".join(map(hex, member.action.arguments))
    return f"member {member.member_id - FIRST_ID}: {member.action.action}({arguments})"


def _shown_group(group: Group) -> str:
    """Return a group as text; weights of 1 and missing watched ports are left out."""
    watched = dict(group.watched)
    members = [
        f"{own_id - FIRST_ID}"
        + (f" (weight {weight})" if weight != 1 else "")
        + (f" (watches port {watched[own_id]})" if own_id in watched else "")
        for own_id, weight in group.members
    ]
    return f"group {group.group_id - FIRST_ID}: members {', '.join(members) or 'none'}"


def _own_id(text: str) -> int:
    return parse_number(text) + FIRST_ID


def _free(used: Iterable[int]) -> int:
    taken = set(used)
    return next(own_id for own_id in count(FIRST_ID) if own_id not in taken)
