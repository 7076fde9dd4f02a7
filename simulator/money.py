"""Hourly cost of a scenario's hardware in dollars, spread over its years."""

from __future__ import annotations

from dataclasses import dataclass

from scenario import Scenario
from scenario.tables import SWITCH_ROUTERS

HOURS_PER_YEAR = 8760.0


@dataclass(frozen=True, slots=True)
class Bill:
    """Dollars per hour, by part."""

    nodes: float
    dram: float
    """Local DRAM of the nodes for blocks, as far as it serves only its own node."""
    storage: float
    fabric: float
    """Switches, and the nodes' network adapters."""
    pool: float
    """Extra cost of switches that do more than forward."""

    @property
    def cache(self) -> float:
        """Return the cost of a cache beyond the nodes' own memory."""
        return self.storage + self.pool

    @property
    def total(self) -> float:
        """Return the sum of all parts."""
        return self.nodes + self.dram + self.storage + self.fabric + self.pool


def bill(scenario: Scenario, switches: int) -> Bill:
    """Return the bill of a scenario whose fabric has `switches` switches."""
    prices, nodes, storage = scenario.prices, scenario.nodes, scenario.storage
    hours = prices.years * HOURS_PER_YEAR
    storage_dollars = pool_dollars = 0.0
    dram_dollars = nodes.count * nodes.dram_gb * prices.dram_per_gb
    fabric_dollars = nodes.count * prices.nic + switches * prices.switch
    if nodes.gate == "never":
        pass  # nothing is fetched or written, so nobody would buy what holds it
    elif storage.kind == "stores":
        memory = storage.dram_gb * prices.dram_per_gb + storage.ssd_gb * prices.ssd_per_gb
        storage_dollars = storage.count * (prices.store_server + prices.nic + memory)
    elif storage.kind == "peers":
        own_dollars = nodes.count * min(storage.own_gb, nodes.dram_gb) * prices.dram_per_gb
        storage_dollars, dram_dollars = dram_dollars - own_dollars, own_dollars
    else:
        storage_dollars = _direct_dollars(scenario)
    if nodes.gate != "never" and scenario.switched and scenario.pool.memory != "none":
        pool_dollars = _pool_dollars(scenario, switches, scenario.pool.memory == "dram")
    if nodes.gate != "never" and storage.kind != "stores" and scenario.direct.front in ("merge", "pool"):
        pool_dollars = _pool_dollars(scenario, switches, scenario.direct.front == "pool")
    if not pool_dollars and scenario.workload.scheduler in SWITCH_ROUTERS:
        pool_dollars = _pool_dollars(scenario, switches, False)  # these switches are programmable, too
    if nodes.gate != "never" and scenario.model.decoding == "smartnic":
        storage_dollars += nodes.count * (prices.smartnic - prices.nic)
    return Bill(
        nodes=(nodes.count + scenario.decoders.count) * prices.node_per_hour,
        dram=dram_dollars / hours,
        storage=storage_dollars / hours,
        fabric=fabric_dollars / hours,
        pool=pool_dollars / hours,
    )


def _pool_dollars(scenario: Scenario, switches: int, attached: bool) -> float:
    """Return the dollars of a pool in every switch, with attached memory or without."""
    prices = scenario.prices
    attached_gb = scenario.pool.size_gb if attached else 0.0
    return switches * (prices.pool_fixed + attached_gb * prices.pool_per_gb)


def _direct_dollars(scenario: Scenario) -> float:
    """Return the dollars of a directly read pool: memory, and for CXL the switch and two adapters a server
    (as in Beluga)."""
    prices, direct = scenario.prices, scenario.direct
    memory = direct.size_gb * prices.dram_per_gb
    if not direct.interleaved:
        return memory
    servers = -(-scenario.nodes.count // direct.nodes_per_adapter)
    return memory + 2 * servers * prices.cxl_adapter + prices.cxl_switch * -(-servers // 16)
