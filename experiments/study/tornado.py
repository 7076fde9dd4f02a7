"""Sensitivity at the decision point: each price and each cost parameter halved and doubled.

The decision is between a pool and its strongest rivals: of about the same price, or the same without the
pool. The result is the share of the mean wait, and the dollars an hour, by which the pool is ahead in steady
state. Waiting is priced at a node's second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from commands.intervals import Interval, mean_interval
from experiments.study.benefit import saved_an_hour_s
from experiments.study.point import Point
from experiments.study.sample import STEADY, STEADY_P99, Sample, ratio
from experiments.study.systems import Setting, system
from scenario import Scenario
from scenario.hardware import Prices
from simulator.money import bill

NODES, STORES = 32, 2
RIVALS = {
    "switch": (("stores", 4), ("distributed", 2)),
    "lent_pool": (("lent", 2),),
    "answered_pool": (("lent", 2),),
}
"""Rivals with their storage nodes, by pool.

The rivals of 2 storage nodes and a pool cost about as much: 4 storage nodes, and DRAM that nodes read from
one another. The rival of a pool in front of lent DRAM, with an idealised or a real switch, is lent DRAM.
"""
BOUNDED = ("model.prefill_utilisation", "direct.peer_share")
"""Parameters that stay shares: doubled, they are 1 at most."""
FACTORS = {"halved": 0.5, "doubled": 2.0}
PARAMETERS = {
    "model.prefill_utilisation": "speed of prefill",
    "network.link_gbit_s": "rate of links",
    "network.latency_us": "latency of a hop",
    "pool.size_gb": "size of the pool",
    "pool.memory_gbyte_s": "rate of the pool's memory",
    "pool.memory_latency_us": "latency of the pool's memory",
    "control.write_latency_s": "latency of table updates",
    "control.digest_latency_s": "latency of digests",
    "control.digest_cpu_s": "time of a digest at the controller",
    "direct.block_s": "cost of an RDMA read",
    "direct.peer_share": "share of a link that RDMA reads get",
    "workload.load": "load",
}
PRICES = {
    "node_per_hour": "price of a node's hour, so of waiting",
    "dram_per_gb": "price of DRAM",
    "ssd_per_gb": "price of SSDs",
    "store_server": "price of a storage node without memory",
    "nic": "price of a network adapter",
    "smartnic": "price of an adapter that decodes",
    "switch": "price of a switch",
    "pool_per_gb": "price of memory at a switch",
    "pool_fixed": "price of a pool beyond switch and memory",
    "cxl_adapter": "price of a CXL adapter",
    "cxl_switch": "price of a CXL switch",
    "years": "years of use",
}
BASE = "as assumed"
QUICK_PARAMETERS = ("model.prefill_utilisation", "direct.peer_share")


def tornado_points(centre: Setting, quick: bool) -> Iterator[Point]:
    """Yield the pool and its rivals at each change that needs a simulation."""
    setting = replace(centre, nodes=NODES, stores=STORES)
    names = QUICK_PARAMETERS if quick else tuple(PARAMETERS)
    rivals = dict.fromkeys(rival for mine in RIVALS.values() for rival in mine)
    changes = {BASE: ("", 1.0)} | {
        f"{PARAMETERS[name]} {word}": (name, factor) for name in names for word, factor in FACTORS.items()
    }
    for label, (name, factor) in changes.items():
        for kind, stores in (*((pool, STORES) for pool in RIVALS), *rivals):
            mine = replace(setting, stores=stores)
            yield Point("tornado", label, kind, mine, changed(system(kind, mine), name, factor))


def changed(scenario: Scenario, path: str, factor: float) -> Scenario:
    """Return a scenario with one number multiplied; a share is 1 at most. Without a
    path, return the scenario."""
    if not path:
        return scenario
    table, name = path.split(".")
    value = getattr(getattr(scenario, table), name) * factor
    if path in BOUNDED:
        value = min(1.0, value)
    return scenario.changed(**{table: {name: value}})


@dataclass(frozen=True, slots=True)
class Bar:
    """One change, and how far the pool is ahead of a rival then; below 0 it is behind."""

    change: str
    pool: str
    rival: str
    seeds: int
    net_dollars: Interval
    """Dollars an hour, as in the second half: the waiting that it saves, priced, less what it costs more."""
    faster: Interval
    """Share of the rival's mean first token in the second half; prices do not change it."""
    tail: Interval
    """Share of the rival's p99."""

    @property
    def pair(self) -> str:
        """Return the names of the pool and its rival."""
        return f"{self.pool} against {self.rival}"


def bars(found: Mapping[str, Mapping[str, tuple[Point, Sample]]]) -> list[Bar]:
    """Return all bars from change -> system -> sample, with those of the prices, as far
    as they were simulated."""
    base = found.get(BASE, {})
    pairs = [(pool, rival) for pool, rivals in RIVALS.items() for rival, _ in rivals]
    pairs = [(pool, rival) for pool, rival in pairs if {pool, rival} <= base.keys()]
    found_bars = []
    for change, samples in found.items():
        there = [(pool, rival) for pool, rival in pairs if {pool, rival} <= samples.keys()]
        found_bars += [_bar(change, samples[pool], samples[rival]) for pool, rival in there]
    for price in fields(Prices):
        for word, factor in FACTORS.items():
            prices = {price.name: getattr(Prices(), price.name) * factor}
            label = f"{PRICES[price.name]} {word}"
            found_bars += [_bar(label, base[pool], base[rival], prices) for pool, rival in pairs]
    return found_bars


def _bar(
    change: str,
    pool: tuple[Point, Sample],
    rival: tuple[Point, Sample],
    prices: Mapping[str, float] | None = None,
) -> Bar:
    costs = [bill(point.scenario.changed(prices=dict(prices or {})), 1).cache for point, _ in (pool, rival)]
    second = pool[0].scenario.changed(prices=dict(prices or {})).prices.node_per_hour / 3600
    net = [
        saved_an_hour_s(mine, other, STEADY) * second - (costs[0] - costs[1])
        for mine, other in zip(pool[1].runs, rival[1].runs, strict=True)
    ]
    sooner, tail = (1 - ratio(pool[1], rival[1], *path) for path in (STEADY, STEADY_P99))
    return Bar(change, pool[0].label, rival[0].label, len(net), mean_interval(net), sooner, tail)


def swings(found_bars: Sequence[Bar], pair: str) -> list[tuple[str, Bar, Bar]]:
    """Return each changed assumption with its bars halved and doubled, the widest swing first.

    Assumptions of which only one was simulated are left out.
    """
    mine = {bar.change: bar for bar in found_bars if bar.pair == pair}
    names = [change.removesuffix(" halved") for change in mine if change.endswith(" halved")]
    both = [name for name in names if f"{name} doubled" in mine]
    rows = [(name, mine[f"{name} halved"], mine[f"{name} doubled"]) for name in both]
    return sorted(rows, key=lambda row: -abs(row[1].net_dollars.mean - row[2].net_dollars.mean))
