"""The controller: its own worker for a switch, driven by virtual time instead of a thread."""

from __future__ import annotations

import asyncio
from functools import partial
from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING, Final

from controller.config import Config, Host, PoolSize, Port, PushOptions, Route, SwitchConfig
from controller.errors import SwitchError
from controller.membership import Membership, first_epoch
from controller.p4runtime.session import Session
from controller.policies import make_policy
from controller.pool.pool import Pool
from controller.pool.residual_value import ResidualValue
from controller.worker import Clocks, SwitchWorker
from experiments.simulate_faults.network import mac
from experiments.simulate_faults.switch import DEVICE_ID, InProcessClient, SimulatedSwitch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from topologies.engines import Artifacts

ADDRESS: Final = "10.255.0.1"
DEFINES: Final = {"POOL_SLOTS": 256, "POOL_BLOCKS": 64, "PENDING_CELLS": 256, "SKETCH_CELLS": 1024}
POOL: Final = PoolSize(DEFINES["POOL_BLOCKS"], DEFINES["POOL_SLOTS"], 8)
MESSAGE_S: Final = 0.0005
"""How long a message of the switch takes to the controller."""
WALL_S: Final = 1_800_000_000.0


def switch_config(artifacts: Artifacts, stores: Mapping[int, str], nodes: Mapping[int, str]) -> SwitchConfig:
    """Return the switch with these hosts, by port; nodes belong to the tenants of `tenant_of`."""
    hosts = {**stores, **nodes}
    ports = tuple(
        Port(
            number,
            "store" if number in stores else "node",
            Host(mac(number), IPv4Address(address)),
            () if number in stores else (tenant_of(number),),
        )
        for number, address in hosts.items()
    )
    routes = tuple(Route(IPv4Network(address), number, mac(number)) for number, address in hosts.items())
    return SwitchConfig(
        "s1", DEVICE_ID, "", artifacts.p4info, artifacts.device_config,
        Host(mac(0xFD), IPv4Address(ADDRESS)), ports, routes, POOL,
        tuple(sorted(IPv4Address(address) for address in stores.values())),
    )  # fmt: skip


def tenant_of(port: int) -> int:
    """Return the tenant of the node at a port: two of three share one, so that writers meet."""
    return 8 if port % 4 == 3 else 7


class Controllers:
    """The controller processes of one run: none, one or several at a time."""

    def __init__(self, config: SwitchConfig, replicas: int, switch: SimulatedSwitch, seed: int) -> None:
        self.wall_offset_s = 0.0
        """How far the machine's clock is off."""
        self.alive: list[Control] = []
        """In the order in which they were started."""
        self._config, self._replicas, self._switch, self._seed = config, replicas, switch, seed
        self._started = 0
        self.start()

    def start(self) -> Control:
        """Start one more controller, that knows nothing of the others."""
        self._started += 1  # of two controllers, the one that was started last is the primary one
        made = Control(self._config, self._replicas, self._switch, self._seed, self._started, self.wall_s)
        self.alive.append(made)
        return made

    def stop(self, control: Control) -> None:
        """Stop as if killed; the switch goes on as it is."""
        if control in self.alive:
            self.alive.remove(control)
            control.stop()

    def wall_s(self) -> float:
        """Return the time by the machine's clock, in seconds."""
        return WALL_S + asyncio.get_running_loop().time() + self.wall_offset_s

    @property
    def last(self) -> Control | None:
        """Whom the switch obeys, sooner or later."""
        return self.alive[-1] if self.alive else None


class Control:
    """One controller process."""

    def __init__(
        self,
        switch_config: SwitchConfig,
        replicas: int,
        switch: SimulatedSwitch,
        seed: int,
        number: int,
        wall_s: Callable[[], float],
    ) -> None:
        self._switch = switch
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        config = Config(
            (switch_config,), policy="lru", replicas=replicas, push=PushOptions() if seed % 2 else None
        )
        self.membership = Membership(switch_config.stores, replicas, first_epoch(wall_s()))
        session = Session(switch_config, number << 32, config.merging, self._connect)
        thresholds = config.thresholds
        capacity = max(1, POOL.whole_blocks - thresholds.spare_blocks(POOL.whole_blocks))
        cost = config.costs.cost_model()
        policy = make_policy(
            config.policy, capacity, seed=seed, cost=cost, link_bit_s=config.costs.link_bit_s
        )
        residual = ResidualValue(cost, config.costs.link_bit_s, config.costs.speed)
        pool = Pool(
            POOL, thresholds, switch_config.stores, policy, session.adapter, residual, push=config.push
        )
        hosts = [port.host.ipv4 for port in switch_config.ports if port.host is not None]
        clocks = Clocks(wall_s, self._loop.time, lambda: 0.0)
        self._worker = SwitchWorker("s1", session, pool, self.membership, hosts, clocks)
        self._step()

    def stop(self) -> None:
        """Stop as if killed; the switch goes on as it is."""
        if self._timer is not None:
            self._timer.cancel()
        self._worker.disconnect()

    @property
    def resident(self) -> Mapping[bytes, Any]:
        """Blocks in the pool, as the controller thinks."""
        return self._worker.pool.resident

    @property
    def pushed(self) -> int:
        """Blocks that it had pushed."""
        return self._worker.pool.counts.pushes

    def _connect(self, *arguments: Any) -> Any:
        device_id, address, election_id, on_message, *rest = arguments
        heard = partial(self._heard, on_message)
        return InProcessClient(self._switch, device_id, address, election_id, heard, *rest)

    def _heard(self, take: Any, message: Any) -> None:
        take(message)
        self._step_in(MESSAGE_S)

    def _step_in(self, delay_s: float) -> None:
        when_s = self._loop.time() + delay_s
        if self._timer is not None:
            if not self._timer.cancelled() and self._timer.when() <= when_s:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(when_s, self._step)

    def _step(self) -> None:
        self._timer = None
        worker = self._worker
        try:
            if not worker.connected:
                worker.connect()
            worker.step(0.0)
        except SwitchError as error:
            worker.complain(error)
            self._step_in(worker.disconnect())
            return
        self._step_in(worker.patience_s)
