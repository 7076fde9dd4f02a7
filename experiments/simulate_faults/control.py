"""The controller: its own worker for each switch, driven by virtual time instead of a thread."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

from controller.config import Config, PoolSize, PushOptions, SwitchConfig, Thresholds
from controller.deletions import Deletions
from controller.errors import SwitchError
from controller.membership import Membership, first_epoch
from controller.p4runtime.session import Session
from controller.policies import make_policy
from controller.pool.pool import Pool
from controller.pool.residual_value import ResidualValue
from controller.worker import Clocks, SwitchWorker
from emulator.control_plane import switch_config
from experiments.simulate_faults.switch import InProcessClient, SimulatedSwitch
from hostlib.protocol import wire

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from topologies.engines import Artifacts
    from topologies.fabric import Fabric

DEFINES: Final = {"POOL_SLOTS": 256, "POOL_BLOCKS": 64, "PENDING_CELLS": 256, "SKETCH_CELLS": 1024}
POOL: Final = PoolSize(DEFINES["POOL_BLOCKS"], DEFINES["POOL_SLOTS"], 8)
MESSAGE_S: Final = 0.0005
"""Seconds that a message of the switch takes to the controller."""
WALL_S: Final = 1_800_000_000.0


def tenant_of(node: int) -> int:
    """Return the tenant of a node: three of four share one, so that writers meet."""
    return 8 if node % 4 == 2 else 7


class Controllers:
    """The controller processes of one run: none, one or several at a time."""

    def __init__(
        self,
        fabric: Fabric,
        artifacts: Artifacts,
        replicas: int,
        switches: Mapping[str, SimulatedSwitch],
        seed: int,
    ) -> None:
        self.wall_offset_s = 0.0
        """How far the machine's clock is off."""
        self.alive: list[Control] = []
        """In the order in which they were started."""
        lends = not fabric.stores
        tenants = {} if lends else {name: (tenant_of(node),) for node, name in enumerate(fabric.nodes)}
        configs = tuple(switch_config(fabric, name, artifacts, POOL, tenants) for name in fabric.switches)
        # Of one switch's seeds the harsh ones do not push, so that they repeat what they did before.
        push = PushOptions() if (seed % 2 or len(configs) > 1) and not lends else None
        thresholds = Thresholds(eviction="drop") if lends else Thresholds()
        self._config = Config(
            configs, policy="lru", replicas=replicas, push=push, seed=seed, thresholds=thresholds
        )
        self._switches = switches
        self._started = 0
        self.start()

    def start(self) -> Control:
        """Start one more controller, that knows nothing of the others."""
        self._started += 1  # of two controllers, the one that was started last is the primary one
        made = Control(self._config, self._switches, self._started, self.wall_s)
        self.alive.append(made)
        return made

    def stop(self, control: Control) -> None:
        """Stop as if killed; the switches go on as they are."""
        if control in self.alive:
            self.alive.remove(control)
            control.stop()

    def wall_s(self) -> float:
        """Return the time by the machine's clock, in seconds."""
        return WALL_S + asyncio.get_running_loop().time() + self.wall_offset_s

    @property
    def last(self) -> Control | None:
        """Return the controller that the switches obey, sooner or later."""
        return self.alive[-1] if self.alive else None


class Control:
    """One controller process."""

    def __init__(
        self,
        config: Config,
        switches: Mapping[str, SimulatedSwitch],
        number: int,
        wall_s: Callable[[], float],
    ) -> None:
        self.membership = Membership(config.switches[0].stores, config.replicas, first_epoch(wall_s()))
        deletions = Deletions(wire.numbered_from(asyncio.get_running_loop().time()))
        self._workers = {
            one.name: _Worker(config, one, switches[one.name], number, wall_s, self.membership, deletions)
            for one in config.switches
        }

    def stop(self) -> None:
        """Stop as if killed; the switches go on as they are."""
        for worker in self._workers.values():
            worker.stop()

    def resident(self, switch: str) -> Mapping[bytes, Any]:
        """Return the blocks in a switch's pool, as the controller thinks."""
        return self._workers[switch].pool.resident

    @property
    def pushed(self) -> int:
        """Blocks that it had pushed."""
        return sum(worker.pool.counts.pushes for worker in self._workers.values())


class _Worker:
    """A worker, and the timer that is its thread."""

    def __init__(
        self,
        config: Config,
        switch_config: SwitchConfig,
        switch: SimulatedSwitch,
        number: int,
        wall_s: Callable[[], float],
        membership: Membership,
        deletions: Deletions,
    ) -> None:
        self._switch = switch
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        session = _Session(switch_config, number << 32, config.merging, self._connect)
        session.on_wake = self._on_wake
        thresholds = config.thresholds
        capacity = max(1, POOL.whole_blocks - thresholds.spare_blocks(POOL.whole_blocks))
        cost = config.costs.cost_model()
        policy = make_policy(
            config.policy, capacity, seed=config.seed, cost=cost, link_bit_s=config.costs.link_bit_s
        )
        residual = ResidualValue(cost, config.costs.link_bit_s, config.costs.speed)
        self.pool = Pool(
            POOL, thresholds, switch_config.stores, policy, session.adapter, residual, push=config.push
        )
        hosts = [port.host.ipv4 for port in switch_config.ports if port.host is not None]
        clocks = Clocks(wall_s, self._loop.time, lambda: 0.0)
        self._worker = SwitchWorker(
            switch_config.name, session, self.pool, membership, hosts, clocks, len(config.switches), deletions
        )
        self._step()

    def stop(self) -> None:
        """Stop as if killed."""
        self._worker.disconnect()
        if self._timer is not None:
            self._timer.cancel()

    def _connect(self, *arguments: Any) -> Any:
        device_id, address, election_id, on_message, *rest = arguments
        heard = partial(self._heard, on_message)
        return InProcessClient(self._switch, device_id, address, election_id, heard, *rest)

    def _heard(self, take: Any, message: Any) -> None:
        take(message)
        self._step_in(MESSAGE_S)

    def _on_wake(self) -> None:
        if self._worker.connected:
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


class _Session(Session):
    """A session whose worker is no thread that could wait."""

    on_wake: Callable[[], None]

    def wake(self) -> None:
        self.on_wake()
