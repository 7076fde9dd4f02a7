"""Arbitration of the primary (P4Runtime 1.4, "Client Arbitration and Controller Replication").

There is one election for each role. The primary is the controller whose election id is the highest that the
role has seen. If it goes, no other is promoted: a controller must ask with an id at least as high. Like BMv2,
and unlike the specification, the highest id is forgotten when the role's last controller has left. So
controllers that come one after another need not count upwards.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from v1model.dataplane import DataPlaneError
from v1model.protos.google.rpc import code_pb2
from v1model.protos.p4.v1 import p4runtime_pb2

if TYPE_CHECKING:
    from v1model.p4runtime.session import Session

ElectionId = tuple[int, int]  # high, low

MAX_CONTROLLERS = 16  # in a role, as in BMv2
MAX_ROLES = 16
MAX_ROLE_NAME = 256  # characters; each message to a controller of the role has them


def election_id(message: p4runtime_pb2.MasterArbitrationUpdate) -> ElectionId | None:
    """Return the election id, None if unset: such a controller never becomes primary."""
    if not message.HasField("election_id"):
        return None
    return message.election_id.high, message.election_id.low


@dataclass
class _Role:
    name: str
    highest: ElectionId | None = None
    primary: Session | None = None
    controllers: dict[Session, ElectionId | None] = field(default_factory=dict)


class Arbitration:
    """Controllers of one device, with their roles and election ids."""

    def __init__(self, device_id: int) -> None:
        self._device_id = device_id
        self._roles: dict[str, _Role] = {}
        self._lock = threading.Lock()

    def update(self, session: Session, message: p4runtime_pb2.MasterArbitrationUpdate) -> None:
        """Take a MasterArbitrationUpdate of a controller; an error ends its stream."""
        with self._lock:
            self._check(session, message)
            own_id = election_id(message)
            role = self._roles.setdefault(message.role.name, _Role(message.role.name))
            session.role = role.name
            role.controllers[session] = own_id
            was_primary = role.primary is session
            if own_id is not None and (role.highest is None or own_id >= role.highest):
                role.highest, role.primary = own_id, session
                self._notify_all(role)
            elif was_primary:
                role.primary = None
                self._notify_all(role)
            else:
                self._notify(role, session)

    def leave(self, session: Session) -> None:
        """Remove a controller whose stream has ended."""
        with self._lock:
            role = self._roles.get(session.role) if session.role is not None else None
            if role is None or session not in role.controllers:
                return
            del role.controllers[session]
            if not role.controllers:
                del self._roles[role.name]
            elif role.primary is session:
                role.primary = None
                self._notify_all(role)

    def is_primary(self, session: Session) -> bool:
        with self._lock:
            role = self._roles.get(session.role) if session.role is not None else None
            return role is not None and role.primary is session

    def check_primary(self, role_name: str, own_id: ElectionId | None) -> None:
        """Raise DataPlaneError unless a request by (role, election id) comes from the role's primary."""
        with self._lock:
            role = self._roles.get(role_name)
            if role is None and role_name:
                raise DataPlaneError("NOT_FOUND", f"no controller has the role {role_name[:MAX_ROLE_NAME]!r}")
            if role is None or role.primary is None or role.controllers[role.primary] != own_id:
                raise DataPlaneError("PERMISSION_DENIED", _not_primary(role, own_id))

    def primaries(self) -> list[Session]:
        """Return the primaries of all roles."""
        with self._lock:
            return [role.primary for role in self._roles.values() if role.primary]

    def _check(self, session: Session, message: p4runtime_pb2.MasterArbitrationUpdate) -> None:
        if message.device_id != self._device_id:
            code = "NOT_FOUND" if session.role is None else "FAILED_PRECONDITION"
            raise DataPlaneError(code, f"this is device {self._device_id}, not {message.device_id}")
        name = message.role.name
        if len(name) > MAX_ROLE_NAME:
            raise DataPlaneError(
                "RESOURCE_EXHAUSTED", f"a role's name has at most {MAX_ROLE_NAME} characters"
            )
        if session.role is not None and session.role != name:
            raise DataPlaneError(
                "FAILED_PRECONDITION", f"this stream has the role {session.role!r}, not {name!r}"
            )
        if message.role.HasField("config"):
            raise DataPlaneError(
                "INVALID_ARGUMENT",
                "no scheme of role.config is agreed upon: leave it out, every role has full access",
            )
        role = self._roles.get(name)
        if role is None:
            if len(self._roles) >= MAX_ROLES:
                raise DataPlaneError("RESOURCE_EXHAUSTED", f"there are {MAX_ROLES} roles already")
            return
        if session not in role.controllers and len(role.controllers) >= MAX_CONTROLLERS:
            raise DataPlaneError("RESOURCE_EXHAUSTED", f"the role has {MAX_CONTROLLERS} controllers already")
        own_id = election_id(message)
        others = (used for other, used in role.controllers.items() if other is not session)
        if own_id is not None and own_id in others:
            raise DataPlaneError(
                "INVALID_ARGUMENT", f"election id {_shown(own_id)} is used by another controller"
            )

    def _notify_all(self, role: _Role) -> None:
        # Backups first: the new primary must be notified last (steps 2.2 to 2.5 of the specification).
        for session in sorted(role.controllers, key=lambda session: session is role.primary):
            self._notify(role, session)

    def _notify(self, role: _Role, session: Session) -> None:
        message = p4runtime_pb2.StreamMessageResponse()
        arbitration = message.arbitration
        arbitration.device_id = self._device_id
        if role.name:
            arbitration.role.name = role.name
        if role.highest is not None:
            arbitration.election_id.SetInParent()
            arbitration.election_id.high, arbitration.election_id.low = role.highest
        if session is role.primary:
            arbitration.status.code, arbitration.status.message = code_pb2.OK, "Is primary"
        elif role.primary is not None:
            arbitration.status.code, arbitration.status.message = code_pb2.ALREADY_EXISTS, "Is backup"
        else:
            arbitration.status.code, arbitration.status.message = code_pb2.NOT_FOUND, "There is no primary"
        session.send(message)


def _not_primary(role: _Role | None, own_id: ElectionId | None) -> str:
    if role is None or role.primary is None:
        return "Not primary: there is no primary, send a MasterArbitrationUpdate first"
    primary_id = role.controllers[role.primary]
    assert primary_id is not None
    return f"Not primary: the primary's election id is {_shown(primary_id)}, the request's {_shown(own_id)}"


def _shown(own_id: ElectionId | None) -> str:
    return "unset" if own_id is None else str(own_id[0] << 64 | own_id[1])
