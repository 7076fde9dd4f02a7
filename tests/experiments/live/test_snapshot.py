"""What is shown at a moment follows from the last samples and from what processes said."""

from typing import Any

from controller.p4_constants import MERGED, SERVED
from emulator.timeline import Sample
from experiments.live.snapshot import HISTORY, MOST_DECISIONS, Collector
from topologies.registry import make_topology

RATE_BIT_S = 1e6


def sample(t_s: float, **changed: Any) -> Sample:
    outcomes = {SERVED: changed.pop("served", 0), MERGED: changed.pop("merged", 0)}
    values: dict[str, Any] = {
        "link_bytes": {}, "blocks": {}, "completed": 0, "resident": 0, "hits": 0, "admitted": 0,
        "evicted": 0, "digests": 0, "outcomes": outcomes,
    }  # fmt: skip
    return Sample(t_s=t_s, **{**values, **changed})


def decided(*numbers: int) -> dict[str, Any]:
    return {
        "decisions": [{"number": number, "what": "admitted", "key": "00", "depth": 0} for number in numbers]
    }


def test_load_of_links_is_the_difference_of_samples_in_bits_a_second() -> None:
    fabric = make_topology("star", RATE_BIT_S, 1, 1)
    collector = Collector(fabric, lambda: {"s1-eth1": 3000, "node1-eth0": 500}, dict)
    for t_s, received in ((0.5, 0), (1.0, 25_000), (1.5, 50_000)):
        collector.take(sample(t_s, link_bytes={"s1-node1": (received, 0), "s1-store1": (0, received // 2)}))
    node, store = collector.latest.links
    assert (node.switch, node.peer, node.to_bit_s, node.from_bit_s) == ("s1", "node1", 400_000, 0)
    assert (node.queued_bytes, store.queued_bytes) == (3500, 0)
    assert (store.from_bit_s, store.share) == (200_000, 0.2)


def test_a_link_between_switches_is_shown_once() -> None:
    fabric = make_topology("leafspine", RATE_BIT_S, 2, 1, leaves=2, spines=1)
    links = {f"{switch}-{port.peer}": (0, 0) for switch in fabric.switches for port in fabric.ports(switch)}
    collector = Collector(fabric, dict, dict)
    collector.take(sample(0.5, link_bytes=links))
    pairs = [frozenset((link.switch, link.peer)) for link in collector.latest.links]
    assert len(pairs) == len(set(pairs)) == fabric.graph.number_of_edges()


def test_rates_of_the_switch() -> None:
    collector = Collector(make_topology("star", RATE_BIT_S, 1, 1), dict, dict)
    for number in range(2 * HISTORY):
        collector.take(sample(0.5 * number, served=50 * number, merged=10 * number, digests=number))
    rates = collector.latest.rates
    assert (rates["served"][-1], rates["merged"][-1], rates["digests"][-1]) == (100, 20, 2)
    assert len(rates["served"]) == HISTORY
    assert collector.latest.served == 50 * (2 * HISTORY - 1)


def test_each_decision_is_shown_once_and_a_new_controller_begins_again() -> None:
    said: dict[str, Any] = {"controller": {"pools": {"s1": decided(1, 2)}}}
    collector = Collector(make_topology("star", RATE_BIT_S, 1, 1), dict, lambda: said)
    for numbers in ((1, 2), (1, 2), (2, 3), (1,)):
        said["controller"]["pools"]["s1"] = decided(*numbers)
        collector.take(sample(0.5))
    assert [one["number"] for one in collector.latest.decisions] == [1, 2, 3, 1]
    for number in range(2, 100):
        said["controller"]["pools"]["s1"] = decided(number)
        collector.take(sample(0.5))
    assert len(collector.latest.decisions) == MOST_DECISIONS


def test_before_anyone_said_anything_there_is_something_to_show() -> None:
    collector = Collector(make_topology("star", RATE_BIT_S, 1, 1), dict, dict)
    collector.take(sample(0.0, outcomes={}))
    assert (collector.latest.served, collector.latest.hottest, collector.latest.backlog_ms) == (0, (), {})


def test_where_there_are_no_stores_nodes_answer() -> None:
    said = {"node1": {"backlog_ms": 7}, "node2": {"backlog_ms": 0}}
    collector = Collector(make_topology("star", RATE_BIT_S, 2, 0), dict, lambda: said)
    collector.take(sample(0.5, link_bytes={"s1-node1": (0, 0), "s1-node2": (0, 0)}))
    assert collector.latest.lends
    assert collector.latest.backlog_ms == {"node1": 7, "node2": 0}
    assert [link.peer for link in collector.latest.links] == ["node1", "node2"]


def test_the_hottest_of_all_switches_and_what_waits_in_stores() -> None:
    hot = {
        "s1": {"hottest": [{"key": "a", "depth": 1, "hits": 3}]},
        "s2": {"hottest": [{"key": "b", "depth": 2, "hits": 8}]},
    }
    said: dict[str, dict[str, Any]]
    said = {"controller": {"pools": hot}, "store1": {"backlog_ms": 12}, "node1": {"completed": 3}}
    collector = Collector(make_topology("star", RATE_BIT_S, 1, 1), dict, lambda: said)
    collector.take(sample(0.5))
    assert [(one["switch"], one["hits"]) for one in collector.latest.hottest] == [("s2", 8), ("s1", 3)]
    assert collector.latest.backlog_ms == {"store1": 12}
