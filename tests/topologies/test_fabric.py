"""Fabrics: addresses, ports, routes, and what is refused before anything is built."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies.errors import TopologyError
from topologies.fabric import NODE, STORE, SWITCH, WAITER_PORTS, Fabric
from topologies.registry import TOPOLOGIES, make_topology
from topologies.star import star


def two_switches() -> Fabric:
    graph = nx.Graph()
    for name, kind in (("s1", SWITCH), ("s2", SWITCH), ("node1", NODE), ("node2", NODE), ("store1", STORE)):
        graph.add_node(name, kind=kind)
    for one, other in (("node1", "s1"), ("node2", "s1"), ("s1", "s2"), ("store1", "s2")):
        graph.add_edge(one, other, rate_bit_s=1e6)
    return Fabric("two", graph)


def test_star_has_one_port_for_each_host() -> None:
    fabric = star(8, 2, 40e6)
    ports = fabric.ports("s1")
    assert [port.number for port in ports] == list(range(1, 11))
    assert [port.peer for port in ports] == [*fabric.nodes, *fabric.stores]
    assert {port.rate_bit_s for port in ports} == {40e6}


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_links_of_hosts_may_have_rates_of_their_own(name: str) -> None:
    usual = make_topology(name, 4e6).with_queues(requests_first=True)
    slow = usual.with_link_rates({"store2": 1e6})
    assert slow.link_rate_bit_s("store2") == 1e6
    assert slow.requests_first
    rates = {host: fabric.link_rate_bit_s(host) for fabric in (usual, slow) for host in usual.hosts}
    assert set(rates.values()) == {4e6, 1e6}
    assert usual.link_rate_bit_s("store2") == 4e6
    assert {switch: slow.routes(switch) for switch in slow.switches} == {
        switch: usual.routes(switch) for switch in usual.switches
    }


@given(nodes=st.integers(1, 50), stores=st.integers(1, 13))
def test_every_switch_routes_to_every_host_by_its_own_port(nodes: int, stores: int) -> None:
    fabric = star(nodes, stores, 1e6)
    by_port = {port.number: port.peer for port in fabric.ports("s1")}
    by_address = {host.ipv4: name for name, host in fabric.hosts.items()}
    assert {by_address[route.destination]: by_port[route.port] for route in fabric.routes("s1")} == {
        name: name for name in fabric.hosts
    }
    assert len({host.mac for host in fabric.hosts.values()}) == nodes + stores


def test_routes_lead_over_other_switches_and_to_their_controllers() -> None:
    fabric = two_switches()
    trunk = next(port.number for port in fabric.ports("s1") if port.peer == "s2")
    to_store = next(r for r in fabric.routes("s1") if r.destination == fabric.hosts["store1"].ipv4)
    assert to_store.port == trunk
    assert fabric.controller("s2").ipv4 in {route.destination for route in fabric.routes("s1")}
    assert fabric.controller("s1").ipv4 not in {route.destination for route in fabric.routes("s1")}


def test_where_there_are_no_stores_the_nodes_answer() -> None:
    assert star(3, 2, 1e6).answering == ("store1", "store2")
    lending = make_topology("star", 1e6, nodes=3, stores=0)
    assert lending.answering == lending.nodes == ("node1", "node2", "node3")
    assert lending.stores == ()
    assert set(lending.hosts) == {port.peer for port in lending.ports("s1")} == set(lending.nodes)


def test_where_three_switches_are_no_way_between_all_nodes_there_have_to_be_stores() -> None:
    with pytest.raises(TopologyError, match="needs at least one storage node"):
        make_topology("fattree", 1e6, stores=0)


@pytest.mark.parametrize("leaves", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("spines", [1, 2, 3, 4])
def test_between_nodes_that_lend_replies_pass_the_switches_of_their_requests(
    leaves: int, spines: int
) -> None:
    fabric = make_topology("leafspine", 1e6, nodes=2 * leaves, stores=0, leaves=leaves, spines=spines)
    used = set()
    for node in fabric.nodes:
        for other in fabric.nodes:
            (first,), (last,) = fabric.graph.adj[node], fabric.graph.adj[other]
            way = hops(fabric, first, other)
            assert hops(fabric, last, node) == way[::-1]
            used.update(way[1:-1])
    if leaves > spines:
        assert used == {f"spine{index}" for index in range(1, spines + 1)}


@pytest.mark.parametrize(("nodes", "stores"), [(0, 2), (1, 0), (2, -1)])
def test_a_star_has_somebody_to_ask(nodes: int, stores: int) -> None:
    with pytest.raises(TopologyError, match=f"or 2 nodes and none, not {nodes} and {stores}"):
        star(nodes, stores, 1e6)


def test_more_ports_than_the_bitmap_holds_are_refused() -> None:
    star(WAITER_PORTS - 3, 2, 1e6)
    with pytest.raises(TopologyError, match=r"a star has 63 ports at most: .* not 62"):
        star(WAITER_PORTS - 2, 2, 1e6)


def test_waiter_ports_is_the_width_of_the_program() -> None:
    sizes = Path("p4/include/sizes.p4").read_text()
    assert re.findall(r"#define WAITER_PORTS (\d+)", sizes) == [str(WAITER_PORTS)]


def _far_lenders(graph: Any) -> None:
    """Nodes alone, two more switches between them."""
    one, other = "s1", "s2"
    graph.remove_node("store1")
    graph.add_nodes_from(["t1", "t2"], kind="switch")
    graph.remove_edge(one, other)
    graph.add_edges_from([(one, "t1"), ("t1", "t2"), ("t2", other)], rate_bit_s=1e6)
    graph.add_node("far", kind="node")
    graph.add_edge("far", other, rate_bit_s=1e6)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda graph: graph.remove_edge("s1", "s2"), "not every host can reach"),
        (lambda graph: graph.add_edge("node1", "s2", rate_bit_s=1e6), "needs exactly one link, has 2"),
        (lambda graph: graph.add_edge("node1", "s1", rate_bit_s=0.0), "needs a rate above 0"),
        (_far_lenders, "at least one storage node; nodes lend .* over leaves and spines"),
    ],
)
def test_impossible_graphs_are_refused_with_the_reason(change: Callable[[Any], object], reason: str) -> None:
    graph = two_switches().graph.copy()
    change(graph)
    with pytest.raises(TopologyError, match=reason):
        Fabric("changed", graph)


def hops(fabric: Fabric, switch: str, destination: str) -> list[str]:
    """Switches that a packet passes, as the routes say."""
    passed = [switch]
    while True:
        address = fabric.hosts[destination].ipv4
        (port,) = {route.port for route in fabric.routes(passed[-1]) if route.destination == address}
        (peer,) = {p.peer for p in fabric.ports(passed[-1]) if p.number == port}
        if peer == destination:
            return passed
        passed.append(peer)
        assert len(passed) < 10


@pytest.mark.parametrize(("name", "longest"), [("star", 1), ("leafspine", 3), ("tree", 3), ("fattree", 5)])
def test_no_way_is_longer_than_the_topology_says(name: str, longest: int) -> None:
    fabric = make_topology(name, 1e6)
    ways = [hops(fabric, switch, host) for switch in fabric.switches for host in fabric.hosts]
    assert max(map(len, ways)) == longest


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_from_every_switch_every_host_is_reached_by_a_shortest_path(name: str) -> None:
    fabric = make_topology(name, 1e6)
    for switch in fabric.switches:
        for host in fabric.hosts:
            passed = hops(fabric, switch, host)
            assert len(passed) == nx.shortest_path_length(fabric.graph, switch, host)
    assert len(fabric.nodes) == TOPOLOGIES[name].nodes
    assert len(fabric.stores) == TOPOLOGIES[name].stores


def test_requests_for_one_store_meet_in_one_spine() -> None:
    fabric = make_topology("leafspine", 1e6, leaves=3, spines=2)
    (home,) = fabric.graph.adj["store1"]
    spines = {hops(fabric, leaf, "store1")[1] for leaf in fabric.switches if leaf[0] == "l" and leaf != home}
    assert len(spines) == 1


def test_stores_behind_different_leaves_use_different_spines() -> None:
    fabric = make_topology("leafspine", 1e6)
    homes = {store: next(iter(fabric.graph.adj[store])) for store in fabric.stores}
    far = {home: "node1" if home != "leaf1" else "node16" for home in homes.values()}
    assert {hops(fabric, home, far[home])[1] for home in homes.values()} == {"spine1", "spine2"}


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_replies_pass_the_switches_of_their_requests(name: str) -> None:
    """Otherwise they would miss the pending tables that know who waits."""
    fabric = make_topology(name, 1e6)
    for node in fabric.nodes:
        for store in fabric.stores:
            (first,), (last,) = fabric.graph.adj[node], fabric.graph.adj[store]
            assert hops(fabric, last, node) == hops(fabric, first, store)[::-1]


def test_uplinks_carry_what_the_hosts_of_a_leaf_send() -> None:
    fabric = make_topology("leafspine", 1e6, nodes=16, stores=4)
    rates = {port.peer: port.rate_bit_s for port in fabric.ports("leaf1")}
    from_hosts = sum(rate for peer, rate in rates.items() if peer in fabric.hosts)
    assert rates["spine1"] + rates["spine2"] == from_hosts


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_a_fat_tree_may_have_pods_without_hosts(nodes: int) -> None:
    fabric = make_topology("fattree", 1e6, nodes, 1)
    assert len(fabric.switches) == 20
    assert {port.rate_bit_s for port in fabric.ports("edge42")} == {1e6}


@pytest.mark.parametrize("name", [name for name in TOPOLOGIES if name != "star"])
def test_no_link_between_switches_is_slower_than_a_host(name: str) -> None:
    fabric = make_topology(name, 1e6, nodes=4, stores=1)
    assert min(port.rate_bit_s for switch in fabric.switches for port in fabric.ports(switch)) == 1e6


@pytest.mark.parametrize(
    ("name", "sizes", "message"),
    [
        ("star", {"spines": 2}, "topology star has no spines: it takes no further sizes"),
        ("leafspine", {"pods": 2}, "has no pods: it takes leaves, spines"),
        ("fattree", {"pods": 3}, "an even number of pods"),
        ("leafspine", {"leaves": -1}, "at least 1"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(name: str, sizes: dict[str, int], message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        make_topology(name, 1e6, **sizes)


def test_an_unknown_topology_is_answered_with_those_that_exist() -> None:
    with pytest.raises(TopologyError, match="no topology 'moebius': choose one of star"):
        make_topology("moebius", 1e6)
