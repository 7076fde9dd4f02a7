"""Everything on a switch that is not the pool index: roles, routes, hosts, the group of waiters, digests.

It follows from the configuration alone. What the switch has is read back and only the difference written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from google.rpc import code_pb2
from p4.v1 import p4runtime_pb2

from controller.config import ROLES
from controller.errors import SwitchError
from controller.p4_constants import (
    CPU_PORT,
    HOSTS,
    HOT_MISS,
    MERGE_SETTINGS,
    MULTICAST_WAITERS,
    PORT_ROLES,
    ROLE_CONTROL,
    ROUTES,
    SUBSCRIPTION,
)
from controller.p4info import Prefix

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from controller.config import SwitchConfig
    from controller.p4info import Program
    from controller.p4runtime_client import SwitchClient

Entity = p4runtime_pb2.Entity
Update = p4runtime_pb2.Update

DIGEST_LIST_SIZE: Final = 32
DIGEST_TIMEOUT_NS: Final = 5_000_000
"""A hot block should be in the pool before the burst that made it hot is over."""


def sync_base_state(client: SwitchClient, program: Program, config: SwitchConfig, merging: bool) -> None:
    """Make the switch's base state what the configuration says; raises SwitchError if it refuses."""
    wanted = {_identity(entity): entity for entity in _wanted(program, config)}
    present = {_identity(entity): entity for entity in client.read(_wildcards(program))}
    updates = [_update(Update.DELETE, entity) for key, entity in present.items() if key not in wanted]
    for key, entity in wanted.items():
        if key not in present:
            updates.append(_update(Update.INSERT, entity))
        elif _content(present[key]) != _content(entity):
            updates.append(_update(Update.MODIFY, entity))
    # A default entry always exists, so setting it is always a modification.
    merge = program.entry(MERGE_SETTINGS, {}, "merge", on=merging)
    updates.append(_update(Update.MODIFY, Entity(table_entry=merge)))
    _write(client, updates)
    for digest in (HOT_MISS, SUBSCRIPTION):
        _enable_digest(client, program, digest)


def _wanted(program: Program, config: SwitchConfig) -> Iterator[Any]:
    entries = [program.entry(PORT_ROLES, {"ingress_port": CPU_PORT}, "set_role", role=ROLE_CONTROL)]
    for port in config.ports:
        match = {"ingress_port": port.port}
        entries.append(program.entry(PORT_ROLES, match, "set_role", role=ROLES[port.role]))
        if port.host is not None:
            host = {"mac": port.host.mac, "ipv4": int(port.host.ipv4)}
            entries.append(program.entry(HOSTS, {"egress_port": port.port}, "address", **host))
    own = Prefix(int(config.controller.ipv4), 32)
    hop = {"next_hop": config.controller.mac, "port": CPU_PORT}
    entries.append(program.entry(ROUTES, {"dst_addr": own}, "forward", **hop))
    for route in config.routes:
        prefix = Prefix(int(route.prefix.network_address), route.prefix.prefixlen)
        hop = {"next_hop": route.next_hop, "port": route.port}
        entries.append(program.entry(ROUTES, {"dst_addr": prefix}, "forward", **hop))
    yield from (Entity(table_entry=entry) for entry in entries)
    yield multicast_group(MULTICAST_WAITERS, (port.port for port in config.ports))


def multicast_group(group_id: int, ports: Iterable[int]) -> Any:
    """The entity of a multicast group."""
    entity = Entity()
    group = entity.packet_replication_engine_entry.multicast_group_entry
    group.multicast_group_id = group_id
    for port in ports:
        group.replicas.add(egress_port=port, instance=1)
    return entity


def _wildcards(program: Program) -> Iterator[Any]:
    for table in (PORT_ROLES, ROUTES, HOSTS):
        yield Entity(table_entry=p4runtime_pb2.TableEntry(table_id=program.table_id(table)))
    entity = Entity()
    entity.packet_replication_engine_entry.multicast_group_entry.multicast_group_id = 0
    yield entity


def _identity(entity: Any) -> tuple[object, ...]:
    """What tells entries apart; numbers, because servers differ in the length of their bytestrings."""
    if not entity.HasField("table_entry"):
        return ("group", entity.packet_replication_engine_entry.multicast_group_entry.multicast_group_id)
    entry = entity.table_entry
    matches = (
        (match.field_id, _number(match.exact.value or match.lpm.value), match.lpm.prefix_len)
        for match in entry.match
    )
    return (entry.table_id, *sorted(matches))


def _content(entity: Any) -> tuple[object, ...]:
    """What may be modified."""
    if not entity.HasField("table_entry"):
        group = entity.packet_replication_engine_entry.multicast_group_entry
        return tuple(sorted((_replica_port(replica), replica.instance) for replica in group.replicas))
    action = entity.table_entry.action.action
    return (action.action_id, *sorted((param.param_id, _number(param.value)) for param in action.params))


def _replica_port(replica: Any) -> int:
    return _number(replica.port) if replica.port else int(replica.egress_port)


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _update(kind: int, entity: Any) -> Any:
    return Update(type=kind, entity=entity)


def _enable_digest(client: SwitchClient, program: Program, name: str) -> None:
    entity = Entity()
    entity.digest_entry.digest_id = program.digest_id(name)
    settings = entity.digest_entry.config
    settings.max_list_size, settings.max_timeout_ns = DIGEST_LIST_SIZE, DIGEST_TIMEOUT_NS
    # No acknowledgements: a switch that waits for them withholds equal digests, or even packets.
    settings.ack_timeout_ns = 0
    (code,) = client.write_updates([_update(Update.INSERT, entity)])
    if code == code_pb2.ALREADY_EXISTS:
        _write(client, [_update(Update.MODIFY, entity)])
    elif code != code_pb2.OK:
        raise SwitchError(f"digest {name}: {code_pb2.Code.Name(code)}")


def _write(client: SwitchClient, updates: list[Any]) -> None:
    for update, code in zip(updates, client.write_updates(updates), strict=True):
        if code != code_pb2.OK:
            what = str(update).replace("\n", " ")
            raise SwitchError(f"base state: {code_pb2.Code.Name(code)} for {what}")
