"""Calls of BMv2's services over the connection to a weir-switch, for functions that P4Runtime lacks."""

from __future__ import annotations

import io
import socket
from typing import TYPE_CHECKING, Any

from v1model.dataplane import DataPlaneError
from v1model.thrift.binary import (
    CALL,
    EXCEPTION,
    I32,
    REPLY,
    STRING,
    Reader,
    StructOf,
    Type,
    field,
    message,
    struct_of,
)
from v1model.thrift.calls import only_reads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from v1model.multicast_nodes import MulticastNodes
    from v1model.remote.session import Session

PORTS = 512
LOOPBACK, CONNECT_TIMEOUT_S = "127.0.0.1", 10.0
_MIRRORING = StructOf((I32, I32))


class OwnCalls:
    """Caller of BMv2's services, as the primary if a call changes something.

    Errors are DataPlaneError; a switch that is no weir-switch gives UNIMPLEMENTED.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def __call__(self, name: str, *arguments: tuple[Type, Any]) -> Any:
        """Return the result of `service:call`, None for void."""
        fields = [field(number, kind, value) for number, (kind, value) in enumerate(arguments, start=1)]
        call = message(name, CALL, 0, struct_of(*fields))
        data = self._session.own_call(call, only_reads=only_reads(name))
        reader = Reader(io.BytesIO(data).read)
        _, _, answer = reader.message(REPLY, EXCEPTION)
        if reader.kind == EXCEPTION:
            raise DataPlaneError("INTERNAL", answer[1].decode(errors="replace"))
        if 1 in answer:
            raise DataPlaneError("FAILED_PRECONDITION", answer[1][2].decode(errors="replace"))
        return answer.get(0)


def p4runtime_device(thrift_port: int) -> tuple[int, str]:
    """Return P4Runtime's device id and address of the switch with a Thrift port of this machine.

    Raises OSError, EOFError, or DataPlaneError if it is no weir-switch.
    """

    def take(count: int) -> bytes:
        data = stream.read(count)
        if len(data) < count:
            raise EOFError("the connection was closed")
        return data

    with socket.create_connection((LOOPBACK, thrift_port), CONNECT_TIMEOUT_S) as connection:
        connection.sendall(message("weir:p4runtime_device", CALL, 0, struct_of()))
        with connection.makefile("rb") as stream:
            reader = Reader(take)
            _, _, answer = reader.message(REPLY, EXCEPTION)
    if reader.kind == EXCEPTION:
        raise DataPlaneError("UNIMPLEMENTED", "BMv2 does not say where it serves P4Runtime: use --address")
    return int(answer[0][1]), answer[0][2].decode()


class RemoteNodes:
    """Multicast nodes that a weir-switch stores between sessions; else those of this session."""

    def __init__(self, calls: OwnCalls, own: MulticastNodes) -> None:
        self._calls, self._own = calls, own

    def create_group(self, group: int) -> None:
        self._do("mgrp_create", (I32, group), instead=lambda: self._own.create_group(group))

    def destroy_group(self, group: int) -> None:
        self._do("mgrp_destroy", (I32, group), instead=lambda: self._own.destroy_group(group))

    def create_node(self, instance: int, ports: Iterable[int]) -> int:
        ports = list(ports)
        arguments = (I32, instance), (STRING, _bit_map(ports)), (STRING, "")
        handle = self._do("node_create", *arguments, instead=lambda: self._own.create_node(instance, ports))
        return int(handle)

    def update_node(self, handle: int, ports: Iterable[int]) -> None:
        ports = list(ports)
        arguments = (I32, handle), (STRING, _bit_map(ports)), (STRING, "")
        self._do("node_update", *arguments, instead=lambda: self._own.update_node(handle, ports))

    def destroy_node(self, handle: int) -> None:
        self._do("node_destroy", (I32, handle), instead=lambda: self._own.destroy_node(handle))

    def associate(self, group: int, handle: int) -> None:
        pair = (I32, group), (I32, handle)
        self._do("node_associate", *pair, instead=lambda: self._own.associate(group, handle))

    def dissociate(self, group: int, handle: int) -> None:
        pair = (I32, group), (I32, handle)
        self._do("node_dissociate", *pair, instead=lambda: self._own.dissociate(group, handle))

    def mirror(self, session: int, group: int) -> None:
        arguments = (I32, session), (_MIRRORING, (None, group))
        self._try("mirroring_session_add", *arguments, instead=lambda: self._own.mirror(session, group))

    def mirror_to_port(self, session: int, port: int) -> None:
        arguments = (I32, session), (_MIRRORING, (port, None))
        self._try(
            "mirroring_session_add", *arguments, instead=lambda: self._own.mirror_to_port(session, port)
        )

    def end_mirror(self, session: int) -> None:
        self._try("mirroring_session_delete", (I32, session), instead=lambda: self._own.end_mirror(session))

    def _do(self, name: str, *arguments: tuple[Type, Any], instead: Callable[[], int | None]) -> Any:
        return self._try(f"bm_mc_{name}", (I32, 0), *arguments, instead=instead)

    def _try(self, name: str, *arguments: tuple[Type, Any], instead: Callable[[], int | None]) -> Any:
        """Make a call of a weir-switch, or call `instead` if the switch does not know it."""
        service = "simple_pre_lag" if name.startswith("bm_mc_") else "simple_switch"
        try:
            return self._calls(f"{service}:{name}", *arguments)
        except DataPlaneError as error:
            if error.code != "UNIMPLEMENTED":
                raise
        return instead()


def _bit_map(ports: list[int]) -> str:
    """Return ports as BMv2's text: a digit for each, that of port 0 last."""
    if any(not 0 <= port < PORTS for port in ports):
        raise ValueError(f"ports are from 0 to {PORTS - 1}")
    return "".join("1" if port in ports else "0" for port in reversed(range(max(ports, default=-1) + 1)))
