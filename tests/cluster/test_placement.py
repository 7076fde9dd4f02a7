"""Where hosts and switches go: leaves stay whole, little crosses, and cores are respected."""

import pytest

from cluster.placement import TOLERANCE, place
from topologies.fabric import Fabric
from topologies.fattree import fat_tree
from topologies.leafspine import leaf_spine, tree
from topologies.star import star

FABRICS = [
    star(8, 2, 1e8),
    leaf_spine(16, 4, 1e8),
    leaf_spine(7, 1, 1e8, 3, 2),
    tree(16, 4, 1e8),
    fat_tree(16, 4, 1e8),
]


@pytest.mark.parametrize("fabric", FABRICS, ids=lambda fabric: f"{fabric.name}{len(fabric.graph)}")
@pytest.mark.parametrize("count", [1, 2, 3, 9])
def test_everything_is_somewhere_and_the_same_each_time(fabric: Fabric, count: int) -> None:
    cores = {f"server{number}": 4.0 for number in range(count)}
    placement = place(fabric, cores)
    assert set(placement.server_of) == set(fabric.graph)
    assert set(placement.server_of.values()) <= set(cores)
    assert sum(placement.load_share.values()) == pytest.approx(1)
    assert place(fabric, cores).server_of == placement.server_of
    for name in cores:
        assert placement.on(name) == {one for one, server in placement.server_of.items() if server == name}


def test_one_server_has_no_tunnels() -> None:
    assert place(leaf_spine(16, 4, 1e8), {"a": 2.0}).crossing == ()


@pytest.mark.parametrize("count", [2, 3])
def test_hosts_stay_with_their_leaf(count: int) -> None:
    fabric = leaf_spine(64, 8, 1e8, leaves=6, spines=2)
    placement = place(fabric, {f"server{number}": 4.0 for number in range(count)})
    for host in fabric.hosts:
        (leaf,) = fabric.graph.adj[host]
        assert placement.server_of[host] == placement.server_of[leaf]
    share = 1 / count
    assert all(load == pytest.approx(share, rel=0.35) for load in placement.load_share.values())


def test_two_halves_cross_by_one_spine_each() -> None:
    placement = place(leaf_spine(16, 4, 1e8), {"a": 2.0, "b": 2.0})
    # Two leaves and a spine on each: each leaf has one uplink to the other server.
    assert len(placement.crossing) == 4
    rates = placement.crossing_bit_s()
    assert rates == {("a", "b"): pytest.approx(4 * 2.5e8)}


def test_a_larger_server_gets_more() -> None:
    fabric = leaf_spine(64, 8, 1e8, leaves=8, spines=2)
    load = place(fabric, {"large": 6.0, "small": 2.0}).load_share
    assert load["large"] == pytest.approx(0.75, abs=0.1)


def test_hosts_of_a_star_are_spread_and_its_switch_is_not() -> None:
    fabric = star(20, 4, 1e8)
    placement = place(fabric, {"a": 4.0, "b": 4.0, "c": 4.0})
    home = placement.server_of["s1"]
    assert not {name for name in placement.on(home) if name != "s1"}  # it is more than a third by itself
    others = [placement.load_share[name] for name in ("a", "b", "c") if name != home]
    assert others[0] == pytest.approx(others[1], rel=2 * TOLERANCE)


def test_a_thousand_nodes_on_32_servers_are_placed() -> None:
    fabric = leaf_spine(1000, 32, 1e8, leaves=32, spines=8)
    placement = place(fabric, {f"server{number}": 8.0 for number in range(32)})
    assert max(placement.load_share.values()) < 2 / 32
