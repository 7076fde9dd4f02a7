"""Action profiles and selectors: members and groups under the control plane's ids."""

from __future__ import annotations

import array
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from v1model.backend.program import profile_data_bytes
from v1model.backend.unit import ARRAYS
from v1model.binding.actions import ActionPacker
from v1model.binding.library import PORTS
from v1model.binding.selectors import SelectorLimits
from v1model.dataplane import DataPlaneError, Group, Member, TableEntry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from v1model.binding.library import Handle
    from v1model.ir import ExternInstance, Program

NO_WATCH = 0xFFFFFFFF  # runtime/profile.h


@dataclass(slots=True)
class Numbers:
    """Small dense handles for ids; freed handles are used again."""

    handles: dict[int, int] = field(default_factory=dict)
    free: list[int] = field(default_factory=list)

    def take(self, identity: int) -> int:
        handle = self.free.pop() if self.free else len(self.handles)
        self.handles[identity] = handle
        return handle

    def give(self, identity: int) -> None:
        self.free.append(self.handles.pop(identity))


@dataclass(slots=True)
class Profile:
    number: int
    instance: ExternInstance
    actions: ActionPacker | None
    members: dict[int, Member] = field(default_factory=dict)
    groups: dict[int, Group] = field(default_factory=dict)
    member_handles: Numbers = field(default_factory=Numbers)
    group_handles: Numbers = field(default_factory=Numbers)
    held: Counter[tuple[str, int]] = field(default_factory=Counter)  # by table entries and groups

    def hold_members(self, group: Group, times: int) -> None:
        for member_id, _ in group.members:
            self.held["member", member_id] += times

    def clear(self) -> None:
        self.members.clear()
        self.groups.clear()
        self.held.clear()
        self.member_handles, self.group_handles = Numbers(), Numbers()


class Profiles:
    """All action profiles and selectors of a switch."""

    def __init__(self, handle: Handle, program: Program) -> None:
        self._handle = handle
        instances = [instance for instance in program.externs if ARRAYS[instance.kind] == "profile"]
        self._profiles = {
            instance.name: Profile(number, instance, _actions(program, instance))
            for number, instance in enumerate(instances)
        }

    def clear(self) -> None:
        for profile in self._profiles.values():
            profile.clear()

    def _profile(self, name: str) -> Profile:
        if name not in self._profiles:
            known = ", ".join(self._profiles) or "none"
            raise DataPlaneError("NOT_FOUND", f"no action profile {name}; there are: {known}")
        return self._profiles[name]

    # --- what table entries hold ----------------------------------------------------------------

    def member_handle(self, profile: str, member_id: int) -> int:
        handles = self._profile(profile).member_handles.handles
        if member_id not in handles:
            raise DataPlaneError("NOT_FOUND", f"action profile {profile}: no member {member_id}")
        return handles[member_id]

    def group_handle(self, profile: str, group_id: int) -> int:
        handles = self._profile(profile).group_handles.handles
        if group_id not in handles:
            raise DataPlaneError("NOT_FOUND", f"action profile {profile}: no group {group_id}")
        return handles[group_id]

    def hold(self, profile: str, entry: TableEntry) -> None:
        for key in _held(entry) if profile else ():
            self._profile(profile).held[key] += 1

    def release(self, profile: str, entry: TableEntry) -> None:
        for key in _held(entry) if profile else ():
            self._profile(profile).held[key] -= 1

    # --- members --------------------------------------------------------------------------------

    def insert_member(self, name: str, member: Member) -> None:
        profile = self._profile(name)
        if member.member_id in profile.members:
            raise DataPlaneError("ALREADY_EXISTS", f"action profile {name}: member {member.member_id} exists")
        if profile.instance.size and len(profile.members) >= profile.instance.size:
            raise DataPlaneError(
                "RESOURCE_EXHAUSTED", f"action profile {name} is full: {profile.instance.size} members"
            )
        number, data = _packed(profile, member)
        self._set_member(profile, profile.member_handles.take(member.member_id), number, data)
        profile.members[member.member_id] = member

    def modify_member(self, name: str, member: Member) -> None:
        profile = self._profile(name)
        handle = self.member_handle(name, member.member_id)
        number, data = _packed(profile, member)
        self._set_member(profile, handle, number, data)
        profile.members[member.member_id] = member

    def _set_member(self, profile: Profile, handle: int, number: int, data: bytes) -> None:
        if self._handle.call("set_member", profile.number, handle, number, data):
            raise DataPlaneError("RESOURCE_EXHAUSTED", f"action profile {profile.instance.name}: no memory")

    def delete_member(self, name: str, member_id: int) -> None:
        profile = self._profile(name)
        handle = self.member_handle(name, member_id)
        if profile.held["member", member_id]:
            raise DataPlaneError(
                "FAILED_PRECONDITION", f"action profile {name}: member {member_id} is in use"
            )
        self._handle.call("delete_member", profile.number, handle)
        profile.member_handles.give(member_id)
        del profile.members[member_id]

    def has_watches(self) -> bool:
        """Return whether any member depends on a port's link."""
        return any(group.watched for profile in self._profiles.values() for group in profile.groups.values())

    def members(self, name: str) -> Iterator[Member]:
        return iter(list(self._profile(name).members.values()))

    # --- groups ---------------------------------------------------------------------------------

    def insert_group(self, name: str, group: Group) -> None:
        profile = self._profile(name)
        if profile.instance.kind != "action_selector":
            raise DataPlaneError("INVALID_ARGUMENT", f"action profile {name} has no selector, so no groups")
        if group.group_id in profile.groups:
            raise DataPlaneError("ALREADY_EXISTS", f"action profile {name}: group {group.group_id} exists")
        shares = self._shares(profile, group)
        self._set_group(profile, profile.group_handles.take(group.group_id), shares)
        profile.groups[group.group_id] = group
        profile.hold_members(group, 1)

    def modify_group(self, name: str, group: Group) -> None:
        profile = self._profile(name)
        handle = self.group_handle(name, group.group_id)
        self._set_group(profile, handle, self._shares(profile, group))
        profile.hold_members(profile.groups[group.group_id], -1)
        profile.groups[group.group_id] = group
        profile.hold_members(group, 1)

    def _shares(self, profile: Profile, group: Group) -> list[tuple[int, int, int]]:
        """Return (handle, weight, watched port) of each member, ordered by creation as in simple_switch."""
        weights = [weight for _, weight in group.members]
        SelectorLimits.of(profile.instance).check(weights, group.max_size)
        shares = []
        watched = dict(group.watched)
        if any(not 0 <= port < PORTS for port in watched.values()):
            raise DataPlaneError("INVALID_ARGUMENT", f"group {group.group_id} watches a port that can't be")
        for member_id, weight in group.members:
            handle = self.member_handle(profile.instance.name, member_id)
            shares.append((handle, weight, watched.get(member_id, NO_WATCH)))
        return sorted(shares)

    def _set_group(self, profile: Profile, handle: int, shares: list[tuple[int, int, int]]) -> None:
        columns = [array.array("I", [share[i] for share in shares]).tobytes() for i in range(3)]
        if self._handle.call("set_group", profile.number, handle, *columns, len(shares)):
            raise DataPlaneError("RESOURCE_EXHAUSTED", f"action profile {profile.instance.name}: no memory")

    def delete_group(self, name: str, group_id: int) -> None:
        profile = self._profile(name)
        handle = self.group_handle(name, group_id)
        if profile.held["group", group_id]:
            raise DataPlaneError("FAILED_PRECONDITION", f"action profile {name}: group {group_id} is in use")
        self._set_group(profile, handle, [])
        profile.group_handles.give(group_id)
        profile.hold_members(profile.groups.pop(group_id), -1)

    def groups(self, name: str) -> Iterator[Group]:
        return iter(list(self._profile(name).groups.values()))


def _actions(program: Program, instance: ExternInstance) -> ActionPacker | None:
    """Return the packer of a profile's actions: its tables have the same actions in the same order."""
    users = [table for table in program.tables if table.implementation == instance.name]
    return ActionPacker(program, users[0], profile_data_bytes(program, instance)) if users else None


def _packed(profile: Profile, member: Member) -> tuple[int, bytes]:
    if profile.actions is None:
        raise DataPlaneError(
            "INVALID_ARGUMENT", f"action profile {profile.instance.name} belongs to no table"
        )
    return profile.actions.pack(member.action)


def _held(entry: TableEntry) -> list[tuple[str, int]]:
    held = []
    if entry.member is not None:
        held.append(("member", entry.member))
    if entry.group is not None:
        held.append(("group", entry.group))
    return held
