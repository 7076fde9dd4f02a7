"""Class of a whole scenario."""

from dataclasses import field, replace
from typing import Any, Self

from pydantic.dataclasses import dataclass

from commands.declarations import DECLARED
from scenario.emulation import EmulationTable
from scenario.hardware import Decoders, Prices, Routing
from scenario.machine import Machine
from scenario.tables import SWITCHES, Control, Direct, Model, Network, Nodes, Pool, Storage, Workload

GB = 1e9
GBIT_BYTES = 1e9 / 8


@dataclass(frozen=True, slots=True, config=DECLARED)
class Scenario:
    """All tables of a scenario; emulator and simulator each read those that they have."""

    name: str = "scenario"
    """Name of the scenario in tables."""
    source: str = ""
    """Source of the figures."""
    workload: Workload = field(default_factory=Workload)
    model: Model = field(default_factory=Model)
    nodes: Nodes = field(default_factory=Nodes)
    decoders: Decoders = field(default_factory=Decoders)
    routing: Routing = field(default_factory=Routing)
    network: Network = field(default_factory=Network)
    storage: Storage = field(default_factory=Storage)
    pool: Pool = field(default_factory=Pool)
    control: Control = field(default_factory=Control)
    direct: Direct = field(default_factory=Direct)
    prices: Prices = field(default_factory=Prices)
    machine: Machine = field(default_factory=Machine)
    emulation: EmulationTable = field(default_factory=EmulationTable)

    @property
    def lends(self) -> bool:
        """Return whether nodes answer each other's GETs, past the network's switches."""
        return self.storage.kind == "peers" and self.direct.front == SWITCHES

    @property
    def switched(self) -> bool:
        """Return whether GETs pass switches that could have a pool."""
        return self.storage.kind == "stores" or self.lends

    def changed(self, **tables: dict[str, Any]) -> Self:
        """Return a copy with other values in some tables: changed(nodes={"count": 16})."""
        return replace(
            self, **{name: replace(getattr(self, name), **values) for name, values in tables.items()}
        )
