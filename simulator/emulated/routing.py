"""Router that is a program."""

from __future__ import annotations

from scenario.tables import Nodes, Workload
from simulator.emulated.machine import Carrier
from simulator.prefix_routing import LiveRouter
from simulator.routing import Router, SimulatedCluster
from workload.schedule import PlannedScheduler, make_scheduler


class EmulatedRouter(Router):
    """Router that learns by its own clock, which an emulation does not speed up."""

    def __init__(
        self,
        workload: Workload,
        nodes: Nodes,
        cluster: SimulatedCluster,
        live: LiveRouter | None,
        carrier: Carrier,
    ) -> None:
        super().__init__(workload, nodes, cluster, live)
        self._pace = carrier.machine.pace

    def _planned(self, nodes: int) -> PlannedScheduler:
        return make_scheduler(self._workload.scheduler, nodes, self._workload.seed, self._pace)
