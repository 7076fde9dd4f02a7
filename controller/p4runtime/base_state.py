"""Everything on a switch that is not the pool index: ports, tenants, stores, routes, meters, groups, digests.

It follows from the configuration alone. What the switch has is read back and only the difference written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from controller.config import DEFAULT_LIMITS, ROLES, Limits
from controller.errors import SwitchError
from controller.p4_constants import (
    CONTROLLER_METER,
    CPU_PORT,
    HOSTS,
    HOT_MISS,
    MERGE_SETTINGS,
    MULTICAST_WAITERS,
    PORT_ROLES,
    PORT_TENANTS,
    PUT_METER,
    RECEIVERS,
    REQUEST_METER,
    ROLE_CONTROL,
    ROUTES,
    SPECIAL_METER,
    STORES,
    SUBSCRIPTION,
)
from controller.p4runtime.p4info import Prefix
from v1model.protos.google.rpc import code_pb2
from v1model.protos.p4.v1 import p4runtime_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from controller.config import Port, SwitchConfig
    from controller.p4runtime.p4info import Program
    from controller.p4runtime.p4runtime_client import SwitchClient

Entity = p4runtime_pb2.Entity
Update = p4runtime_pb2.Update

DIGEST_LIST_SIZE: Final = 128
DIGEST_TIMEOUT_NS: Final = 100_000_000
"""A hot block should be in the pool before it is asked for again; but a list, and the Write that follows it,
cost both sides as much as forty digests in it, and at 400 digests a second 10 ms gather no more than come at
once. What a tenth of a second makes of the hits is in docs/emulation.md."""

BURST_S: Final = 0.5
"""Seconds of its rate that a port which was silent may send at once."""


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
    updates += (_update(Update.MODIFY, meter) for meter in _meters(program, config))
    _write(client, updates)
    for digest in (HOT_MISS, SUBSCRIPTION):
        _enable_digest(client, program, digest)


def _wanted(program: Program, config: SwitchConfig) -> Iterator[Any]:
    cpu = {"role": ROLE_CONTROL, "address": 0}
    entries = [program.entry(PORT_ROLES, {"ingress_port": CPU_PORT}, "set_role", **cpu)]
    for port in config.ports:
        entries += _port_entries(program, port)
    for number, store in enumerate(config.stores, 1):
        to = config.port_to(store)
        if to is not None:
            entries += (program.entry(table, {"store": number}, "leads_to", to=to) for table in STORES)
    own = Prefix(int(config.controller.ipv4), 32)
    hop = {"next_hop": config.controller.mac, "port": CPU_PORT}
    entries.append(program.entry(ROUTES, {"dst_addr": own}, "forward", **hop))
    for route in config.routes:
        prefix = Prefix(int(route.prefix.network_address), route.prefix.prefixlen)
        hop = {"next_hop": route.next_hop, "port": route.port}
        entries.append(program.entry(ROUTES, {"dst_addr": prefix}, "forward", **hop))
    yield from (Entity(table_entry=entry) for entry in entries)
    yield multicast_group(MULTICAST_WAITERS, (port.port for port in config.ports))


def _port_entries(program: Program, port: Port) -> Iterator[Any]:
    """Yield entries that say what a port may send, and how packets to it are addressed."""
    address = int(port.host.ipv4) if port.host is not None else 0
    role = {"role": ROLES[port.role], "address": address}
    yield program.entry(PORT_ROLES, {"ingress_port": port.port}, "set_role", **role)
    for tenant in port.tenants:
        yield program.entry(PORT_TENANTS, {"ingress_port": port.port, "tenant": tenant}, "NoAction")
        yield program.entry(RECEIVERS, {"egress_port": port.port, "tenant": tenant}, "NoAction")
    if port.host is not None:
        host = {"mac": port.host.mac, "ipv4": address}
        yield program.entry(HOSTS, {"egress_port": port.port}, "address", **host)


def _meters(program: Program, config: SwitchConfig) -> Iterator[Any]:
    """Yield the rates of each port. Meters always exist, so these are modifications."""
    for port in config.ports:
        limits = port.limits or DEFAULT_LIMITS.get(port.role, Limits())
        for meter, rate in (
            (REQUEST_METER, limits.requests_per_s),
            (SPECIAL_METER, limits.special_per_s),
            (PUT_METER, limits.puts_per_s),
            (CONTROLLER_METER, limits.controller_per_s),
        ):
            entity = Entity()
            entry = entity.meter_entry
            entry.meter_id, entry.index.index = program.meter_id(meter), port.port
            if rate is not None:
                burst = max(1, round(rate * BURST_S))
                entry.config.cir = entry.config.pir = rate
                entry.config.cburst = entry.config.pburst = burst
            yield entity


def multicast_group(group_id: int, ports: Iterable[int]) -> Any:
    """Return the entity of a multicast group."""
    entity = Entity()
    group = entity.packet_replication_engine_entry.multicast_group_entry
    group.multicast_group_id = group_id
    for port in ports:
        group.replicas.add(egress_port=port, instance=1)
    return entity


def _wildcards(program: Program) -> Iterator[Any]:
    for table in (PORT_ROLES, PORT_TENANTS, RECEIVERS, ROUTES, HOSTS, *STORES):
        yield Entity(table_entry=p4runtime_pb2.TableEntry(table_id=program.table_id(table)))
    entity = Entity()
    entity.packet_replication_engine_entry.multicast_group_entry.multicast_group_id = 0
    yield entity


def _identity(entity: Any) -> tuple[object, ...]:
    """Return what identifies an entity. Bytestrings become numbers, as servers differ in their lengths."""
    if not entity.HasField("table_entry"):
        return ("group", entity.packet_replication_engine_entry.multicast_group_entry.multicast_group_id)
    entry = entity.table_entry
    matches = (
        (match.field_id, _number(match.exact.value or match.lpm.value), match.lpm.prefix_len)
        for match in entry.match
    )
    return (entry.table_id, *sorted(matches))


def _content(entity: Any) -> tuple[object, ...]:
    """Return the part of an entity that may be modified."""
    if not entity.HasField("table_entry"):
        group = entity.packet_replication_engine_entry.multicast_group_entry
        return tuple(sorted((_replica_port(replica), replica.instance) for replica in group.replicas))
    action = entity.table_entry.action.action
    return (action.action_id, *sorted((param.param_id, _number(param.value)) for param in action.params))


def _replica_port(replica: Any) -> int:
    return _number(replica.port) if replica.port else int(replica.egress_port)


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _update(kind: Update.Type, entity: Any) -> Any:
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
