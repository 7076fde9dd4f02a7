"""Controller of a running network: its configuration from the fabric, and its process."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from ipaddress import IPv4Network
from pathlib import Path
from types import MappingProxyType

from commands.precedence import LOW_PRIORITY_COMMAND, put_session_last
from controller.addressing import Mac
from controller.config import (
    ClientTls,
    Config,
    Host,
    PoolSize,
    Port,
    Route,
    SwitchConfig,
    config_text,
    limits_of_link,
)
from emulator.processes import Events, LineProcess
from topologies.certificates import SERVER_NAME, Certificates
from topologies.engines import Artifacts
from topologies.fabric import STORE, Endpoint, Fabric
from topologies.fabric import Port as FabricPort
from topologies.running import RunningNetwork


def start_controller(
    config: Config, network: RunningNetwork, directory: Path, events: Events | None = None
) -> LineProcess:
    """Start the controller with its files in `directory`; it says "ready" when the switches are set up."""
    path, result = directory / "controller.json", directory / "controller.result.json"
    path.write_text(config_text(config))
    command = [sys.executable, "-m", "controller", "--config", str(path), "--results", str(result)]
    return LineProcess(
        "controller",
        [*LOW_PRIORITY_COMMAND, *command],
        directory / "controller.log",
        network.popen_here,
        events,
    )


def lower_priority(controller: LineProcess) -> None:
    """Give a controller that is ready less CPU precedence than the hosts.

    On a machine of its own it would take no CPU from them.
    """
    put_session_last(controller.process.pid)


NO_TENANTS: Mapping[str, tuple[int, ...]] = MappingProxyType({})


def switch_configs(
    network: RunningNetwork,
    artifacts: Artifacts,
    pool: PoolSize,
    tenants: Mapping[str, tuple[int, ...]] = NO_TENANTS,
) -> tuple[SwitchConfig, ...]:
    """Return the controller's configuration of each switch, all with pools of the same size.

    `tenants` has the numbers of the tenants by host.
    """
    tls = _tls(network.certificates)
    return tuple(
        switch_config(network.fabric, name, artifacts, pool, tenants, network.address(name), tls)
        for name in network.fabric.switches
    )


def switch_config(
    fabric: Fabric,
    name: str,
    artifacts: Artifacts,
    pool: PoolSize,
    tenants: Mapping[str, tuple[int, ...]],
    address: str = "",
    tls: ClientTls | None = None,
) -> SwitchConfig:
    """Return the controller's configuration of one switch, which it reaches at `address`."""
    return SwitchConfig(
        name=name,
        device_id=fabric.device_id(name),
        grpc_address=address,
        p4info=artifacts.p4info,
        device_config=artifacts.device_config,
        controller=_host(fabric.controller(name)),
        ports=tuple(_port(fabric, port, tenants.get(port.peer, ())) for port in fabric.ports(name)),
        routes=tuple(
            Route(IPv4Network(route.destination), route.port, Mac.parse(route.next_hop))
            for route in fabric.routes(name)
        ),
        pool=pool,
        stores=tuple(fabric.hosts[name].ipv4 for name in fabric.answering),
        tls=tls,
    )


def _port(fabric: Fabric, port: FabricPort, tenants: tuple[int, ...]) -> Port:
    role = STORE if port.peer in fabric.answering else port.peer_kind
    host = _host(fabric.hosts[port.peer]) if port.peer in fabric.hosts else None
    return Port(port.number, role, host, tenants=tenants, limits=limits_of_link(role, port.rate_bit_s))


def _tls(certificates: Certificates | None) -> ClientTls | None:
    if certificates is None:
        return None
    return ClientTls(
        certificates.authority, certificates.client_certificate, certificates.client_key, SERVER_NAME
    )


def _host(endpoint: Endpoint) -> Host:
    return Host(Mac.parse(endpoint.mac), endpoint.ipv4)
