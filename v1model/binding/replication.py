"""Multicast groups and clone sessions."""

from __future__ import annotations

import struct
from types import MappingProxyType
from typing import TYPE_CHECKING

from v1model.dataplane import MAX_REPLICAS, CloneSession, DataPlaneError, Replica

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sized

    from v1model.binding.library import Handle

MULTICAST_GROUPS, CLONE_SESSIONS = 1 << 16, 1 << 15  # runtime/replication.h
MAX_ALL_REPLICAS = 1 << 20  # in all groups and sessions: some 200 MB
_REPLICA = struct.Struct("=2H")


class Replication:
    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._groups: dict[int, tuple[Replica, ...]] = {}
        self._sessions: dict[int, CloneSession] = {}
        self._replicas = 0

    def clear(self) -> None:
        self._replicas = 0
        self._groups.clear()
        self._sessions.clear()

    def set_multicast_group(self, group: int, replicas: Iterable[Replica] | None) -> None:
        if not 0 < group < MULTICAST_GROUPS:
            raise DataPlaneError(
                "INVALID_ARGUMENT", f"multicast group {group} is not within 1..{MULTICAST_GROUPS - 1}"
            )
        wanted = None if replicas is None else tuple(replicas)
        count = self._count(wanted or (), self._groups.get(group, ()))
        packed = _pack(wanted)
        if self._handle.call("set_multicast_group", group, packed, len(wanted or ())):
            raise DataPlaneError("RESOURCE_EXHAUSTED", f"no memory for multicast group {group}")
        if wanted is None:
            self._groups.pop(group, None)
        else:
            self._groups[group] = wanted
        self._replicas = count

    def multicast_groups(self) -> Mapping[int, tuple[Replica, ...]]:
        return MappingProxyType(self._groups)

    def set_clone_session(self, session: int, config: CloneSession | None) -> None:
        if not 0 <= session < CLONE_SESSIONS:
            raise DataPlaneError(
                "INVALID_ARGUMENT", f"clone session {session} is not within 0..{CLONE_SESSIONS - 1}"
            )
        replicas = None if config is None else config.replicas
        before = self._sessions.get(session)
        count = self._count(replicas or (), before.replicas if before else ())
        length = config.packet_length_bytes if config else 0
        packed = _pack(replicas)
        if self._handle.call("set_clone_session", session, packed, len(replicas or ()), length):
            raise DataPlaneError("RESOURCE_EXHAUSTED", f"no memory for clone session {session}")
        if config is None:
            self._sessions.pop(session, None)
        else:
            self._sessions[session] = config
        self._replicas = count

    def clone_sessions(self) -> Mapping[int, CloneSession]:
        return MappingProxyType(self._sessions)

    def _count(self, wanted: Sized, before: Sized) -> int:
        """Return the number of all replicas after a change of one group or session; raises DataPlaneError."""
        count = self._replicas - len(before) + len(wanted)
        if len(wanted) > MAX_REPLICAS or (count > MAX_ALL_REPLICAS and len(wanted) > len(before)):
            raise DataPlaneError(
                "RESOURCE_EXHAUSTED",
                f"{len(wanted)} replicas; a group or session has at most {MAX_REPLICAS}, all together "
                f"{MAX_ALL_REPLICAS}",
            )
        return count


def _pack(replicas: tuple[Replica, ...] | None) -> bytes | None:
    if replicas is None:
        return None
    for replica in replicas:
        if not 0 <= replica.port < 1 << 16 or not 0 <= replica.instance < 1 << 16:
            raise DataPlaneError("INVALID_ARGUMENT", f"{replica}: port and instance are 16-bit numbers")
    return b"".join(_REPLICA.pack(replica.port, replica.instance) for replica in replicas)
