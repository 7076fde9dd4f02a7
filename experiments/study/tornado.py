"""Sensitivity at the decision point: each price and each cost parameter halved and doubled.

The decision is between a pool and its strongest rivals of about the same price. What is shown is how much of
the mean wait, and how many dollars an hour, the pool is ahead: waiting is priced at a node's second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from experiments.intervals import Interval, mean_interval
from experiments.simulator.money import bill
from experiments.simulator.scenario import Prices, Scenario
from experiments.study.point import Point
from experiments.study.sample import MEAN, P99, Sample, ratio
from experiments.study.systems import Setting, system

NODES, STORES = 32, 2
RIVALS = (("stores", 4), ("distributed", 2))
"""System and storage nodes: what costs as much as 2 storage nodes and a pool, and what is cheapest."""
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


def tornado_points(centre: Setting, quick: bool) -> Iterator[Point]:
    """The pool and its rivals at each change that a simulation must tell."""
    setting = replace(centre, nodes=NODES, stores=STORES)
    names = list(PARAMETERS)[:2] if quick else list(PARAMETERS)
    changes = {BASE: ("", 1.0)} | {
        f"{PARAMETERS[name]} {word}": (name, factor) for name in names for word, factor in FACTORS.items()
    }
    for label, (name, factor) in changes.items():
        for kind, stores in (("switch", STORES), *RIVALS):
            mine = replace(setting, stores=stores)
            yield Point("tornado", label, kind, mine, changed(system(kind, mine), name, factor))


def changed(scenario: Scenario, path: str, factor: float) -> Scenario:
    """A scenario with one number multiplied; a share stays a share. No path: the scenario itself."""
    if not path:
        return scenario
    table, name = path.split(".")
    value = getattr(getattr(scenario, table), name) * factor
    if name == "prefill_utilisation":
        value = min(1.0, value)
    return scenario.changed(**{table: {name: value}})


@dataclass(frozen=True, slots=True)
class Bar:
    """One change, and how far the pool is ahead of a rival then; below 0 it is behind."""

    change: str
    rival: str
    seeds: int
    net_dollars: Interval
    """An hour: the waiting that it saves, priced, less what it costs more."""
    faster: Interval
    """Share of the rival's mean first token; equal for prices."""
    tail: Interval
    """The same of p99."""


def bars(found: Mapping[str, Mapping[str, tuple[Point, Sample]]]) -> list[Bar]:
    """Change -> system -> sample: all bars, those of the prices included, as far as they were played."""
    base = found.get(BASE, {})
    rivals = [kind for kind, _ in RIVALS if kind in base and "switch" in base]
    made = []
    for change, samples in found.items():
        there = [kind for kind in rivals if kind in samples and "switch" in samples]
        made += [_bar(change, samples["switch"], samples[kind]) for kind in there]
    for price in fields(Prices):
        for word, factor in FACTORS.items():
            prices = {price.name: getattr(Prices(), price.name) * factor}
            label = f"{PRICES[price.name]} {word}"
            made += [_bar(label, base["switch"], base[kind], prices) for kind in rivals]
    return made


def _bar(
    change: str,
    pool: tuple[Point, Sample],
    rival: tuple[Point, Sample],
    prices: Mapping[str, float] | None = None,
) -> Bar:
    costs = [bill(point.scenario.changed(prices=dict(prices or {})), 1).cache for point, _ in (pool, rival)]
    second = pool[0].scenario.changed(prices=dict(prices or {})).prices.node_per_hour / 3600
    net = []
    for mine, other in zip(pool[1].runs, rival[1].runs, strict=True):
        hourly = other["completed"] * 3600 / other["duration_s"]
        gained_s = other["ttft_s"]["mean"] - mine["ttft_s"]["mean"]
        net.append(gained_s * hourly * second - (costs[0] - costs[1]))
    sooner, tail = (1 - ratio(pool[1], rival[1], *path) for path in (MEAN, P99))
    return Bar(change, rival[0].label, len(net), mean_interval(net), sooner, tail)


def swings(made: Sequence[Bar], rival: str) -> list[tuple[str, Bar, Bar]]:
    """What is changed -> halved, doubled; the widest swing first. A change of which only one was played is
    left out."""
    mine = {bar.change: bar for bar in made if bar.rival == rival}
    names = [change.removesuffix(" halved") for change in mine if change.endswith(" halved")]
    both = [name for name in names if f"{name} doubled" in mine]
    rows = [(name, mine[f"{name} halved"], mine[f"{name} doubled"]) for name in both]
    return sorted(rows, key=lambda row: -abs(row[1].net_dollars.mean - row[2].net_dollars.mean))
