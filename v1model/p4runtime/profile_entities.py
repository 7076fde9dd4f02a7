"""Members and groups of action profiles and selectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.dataplane import Group, Member
from v1model.p4runtime.action_sets import FIRST_OWN_ID
from v1model.p4runtime.entity import DELETE, INSERT, invalid
from v1model.p4runtime.watch import encode_watch, watched_port
from v1model.protos.p4.v1 import p4runtime_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from v1model.dataplane import DataPlane
    from v1model.p4runtime.action_sets import ActionSets
    from v1model.p4runtime.entity import Answer
    from v1model.p4runtime.schema import ProfileInfo, Schema


class _ProfileHandler:
    """Base of the handlers of members and groups."""

    def __init__(self, schema: Schema, data_plane: DataPlane, action_sets: ActionSets) -> None:
        self._schema, self._data_plane, self._action_sets = schema, data_plane, action_sets

    def _to_write(self, profile_id: int, own_id: int) -> ProfileInfo:
        profile = self._schema.profile(profile_id)
        if not 0 < own_id < FIRST_OWN_ID:
            raise invalid(f"{profile.name}: id {own_id} is not in 1 to {FIRST_OWN_ID - 1}")
        if self._action_sets.is_used(profile.name):
            raise invalid(
                f"{profile.name} is used with action sets: members and groups can't be mixed with them"
            )
        return profile

    def _to_read(self, profile_id: int) -> Iterable[ProfileInfo]:
        return [self._schema.profile(profile_id)] if profile_id else self._schema.profiles.values()


class MemberHandler(_ProfileHandler):
    """Handler of p4.v1.ActionProfileMember."""

    def write(self, update_type: int, message: p4runtime_pb2.ActionProfileMember) -> None:
        profile = self._to_write(message.action_profile_id, message.member_id)
        if update_type == DELETE:
            self._data_plane.delete_member(profile.name, message.member_id)
            return
        if not message.HasField("action"):
            raise invalid(f"{profile.name}: member {message.member_id} needs an action")
        member = Member(message.member_id, profile.table.decode_action(message.action))
        if update_type == INSERT:
            self._data_plane.insert_member(profile.name, member)
        else:
            self._data_plane.modify_member(profile.name, member)

    def read(self, message: p4runtime_pb2.ActionProfileMember, answer: Answer) -> Iterator[None]:
        for profile in self._to_read(message.action_profile_id):
            for member in list(self._data_plane.members(profile.name)):
                yield
                if member.member_id >= FIRST_OWN_ID or message.member_id not in (0, member.member_id):
                    continue
                entity = answer.add()
                entity.action_profile_member.action_profile_id = profile.id
                entity.action_profile_member.member_id = member.member_id
                profile.table.encode_action(member.action, entity.action_profile_member.action)


class GroupHandler(_ProfileHandler):
    """Handler of p4.v1.ActionProfileGroup."""

    def __init__(self, schema: Schema, data_plane: DataPlane, action_sets: ActionSets) -> None:
        super().__init__(schema, data_plane, action_sets)
        # Groups whose watched ports were given as (deprecated) numbers; reads return them in the same form.
        self._with_numbers: set[tuple[str, int]] = set()

    def _mark(self, profile: ProfileInfo, message: p4runtime_pb2.ActionProfileGroup) -> None:
        key = profile.name, message.group_id
        if any(member.WhichOneof("watch_kind") == "watch" for member in message.members):
            self._with_numbers.add(key)
        else:
            self._with_numbers.discard(key)

    def write(self, update_type: int, message: p4runtime_pb2.ActionProfileGroup) -> None:
        profile = self._to_write(message.action_profile_id, message.group_id)
        if not profile.has_selector:
            raise invalid(f"{profile.name} is an action profile without a selector: it has no groups")
        if update_type == DELETE:
            self._data_plane.delete_group(profile.name, message.group_id)
            return
        group = _decode_group(profile, message)
        self._mark(profile, message)
        if update_type == INSERT:
            self._data_plane.insert_group(profile.name, group)
            return
        for old in self._data_plane.groups(profile.name):
            if old.group_id == group.group_id and old.max_size != group.max_size:
                raise invalid(
                    f"{profile.name}: max_size of group {group.group_id} is {old.max_size} for good"
                )
        self._data_plane.modify_group(profile.name, group)

    def read(self, message: p4runtime_pb2.ActionProfileGroup, answer: Answer) -> Iterator[None]:
        for profile in self._to_read(message.action_profile_id):
            if not profile.has_selector:
                continue
            for group in list(self._data_plane.groups(profile.name)):
                yield
                if group.group_id >= FIRST_OWN_ID or message.group_id not in (0, group.group_id):
                    continue
                entity = answer.add()
                entity.action_profile_group.action_profile_id = profile.id
                entity.action_profile_group.group_id = group.group_id
                entity.action_profile_group.max_size = group.max_size
                watched = dict(group.watched)
                for member_id, weight in group.members:
                    member = entity.action_profile_group.members.add(member_id=member_id, weight=weight)
                    if (port := watched.get(member_id)) is not None:
                        as_bytes = (profile.name, group.group_id) not in self._with_numbers
                        encode_watch(port, member, as_bytes=as_bytes)


def _decode_group(profile: ProfileInfo, message: p4runtime_pb2.ActionProfileGroup) -> Group:
    members = [(member.member_id, member.weight) for member in message.members]
    ports = [(member.member_id, watched_port(member)) for member in message.members]
    watched = tuple((member_id, port) for member_id, port in ports if port is not None)
    if len({member_id for member_id, _ in members}) < len(members):
        raise invalid(f"{profile.name}: group {message.group_id} names a member twice (use its weight)")
    limit, size = profile.limits.max_group_size, message.max_size
    if size < 0 or (limit and not 0 < size <= limit):
        raise invalid(f"{profile.name}: max_size {size} is not in {1 if limit else 0} to {limit or 'any'}")
    profile.limits.check([weight for _, weight in members], size)
    return Group(message.group_id, tuple(members), size, watched)
