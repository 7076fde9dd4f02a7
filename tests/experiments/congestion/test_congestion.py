"""make congestion: who asks whom, what a point shows, and one point on a real network."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from commands.command import Screen
from commands.options import read
from commands.verbosity import QUIET
from experiments.congestion.__main__ import CongestionOptions, blocks_of, play
from experiments.congestion.patterns import (
    BOTH,
    HITS,
    STORE_TO_NODES,
    STORES_TO_NODE,
    Flow,
    Group,
    Keys,
    groups,
)
from experiments.congestion.result import Burst, evaluate
from hostlib.protocol.homes import home_of

NODES = ("n1", "n2", "n3")
STORES = {"s1": "10.0.1.1", "s2": "10.0.1.2", "s3": "10.0.1.3"}


@pytest.mark.parametrize(("given", "blocks"), [((), 8), (("--link-mbit", "20"), 32), (("--blocks", "3"), 3)])
def test_a_burst_takes_as_long_on_a_faster_link(given: tuple[str, ...], blocks: int) -> None:
    assert blocks_of(read(CongestionOptions, given, "", "")) == blocks


@pytest.mark.parametrize("pattern", [STORES_TO_NODE, STORE_TO_NODES, BOTH, HITS])
def test_all_blocks_of_a_flow_are_at_its_storage_node_and_no_other_flows(pattern: str) -> None:
    flows = [f for group in groups(pattern, NODES, tuple(STORES), Keys(STORES, 1), 4) for f in group.flows]
    names = {address: name for name, address in STORES.items()}
    for flow in flows:
        assert {names[home_of(key, list(names))] for key in flow.keys} == {flow.store}
    keys = [key for flow in flows for key in flow.keys]
    assert len(set(keys)) == len(keys)


def test_each_shared_link_is_asked_for_as_much() -> None:
    for pattern in (STORES_TO_NODE, STORE_TO_NODES):
        (group,) = groups(pattern, NODES, tuple(STORES), Keys(STORES, 1), 4)
        assert sum(len(flow.keys) for flow in group.flows) == 4 * len(NODES)
    to_node, of_store = groups(BOTH, NODES, tuple(STORES), Keys(STORES, 1), 4)
    assert {flow.node for flow in to_node.flows} == {"n1"}
    assert {flow.store for flow in of_store.flows} == {"s1"}
    assert "s1" not in {flow.store for flow in to_node.flows}


def burst(drops: int = 0, **block_ms: list[float]) -> Burst:
    report: dict[str, Any] = {"from_pool": 0, "retransmits": 0, "errors": {}, "corrupt": 0}
    return Burst({node: report | {"block_ms": times} for node, times in block_ms.items()}, drops, 0.5)


GROUP = Group("s1", (Flow("n1", "s1", (b"a", b"b")), Flow("n2", "s1", (b"c", b"d"))))


def test_throughput_is_of_the_link_and_fairness_of_the_nodes() -> None:
    rate_bit_s = 8 * 634 * 4 * 10  # ten bursts of these four values a second
    point = evaluate(STORE_TO_NODES, "none", [GROUP], burst(n1=[50, 100], n2=[40, 100]), 1, rate_bit_s)
    assert (point.throughput, point.jain, point.loss, point.missed_goals()) == (1.0, 1.0, 0.0, [])
    point = evaluate(STORE_TO_NODES, "none", [GROUP], burst(1, n1=[10, 20], n2=[90, 200]), 1, rate_bit_s)
    assert (point.throughput, point.loss) == (0.5, 0.125)
    assert point.jain == pytest.approx((100 + 10) ** 2 / (2 * (100**2 + 10**2)), abs=1e-4)
    assert len(point.missed_goals()) == 3


def test_hits_that_wait_for_a_busy_home_miss_the_goal() -> None:
    hits = Group("n3", (Flow("n3", "s1", (b"e",)),))
    alone = burst(n3=[10.0])
    for held_up, missed in ((19.0, 0), (21.0, 1)):
        beside = burst(n1=[50, 100], n2=[50, 100], n3=[held_up])
        point = evaluate(HITS, "both", [hits, GROUP], beside, 1, 1e9, alone)
        assert point.hits_p99_ms == (10.0, held_up)
        assert len(point.missed_goals()) == missed


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_storage_nodes_fill_a_nodes_link_and_lose_little_on_a_real_network(tmp_path: Path) -> None:
    options = CongestionOptions(
        patterns=(STORES_TO_NODE,), modes=("none",), nodes=2, stores=2, blocks=20, fragments=8,
        results=tmp_path,
    )  # fmt: skip
    (point,) = play(Screen(QUIET), options)
    assert (point.errors, point.corrupt, point.from_pool) == (0, 0, 0)
    assert point.loss < 0.01
    assert 0.5 < point.throughput <= 1.1  # what of it is the machine's, `make congestion` shows
