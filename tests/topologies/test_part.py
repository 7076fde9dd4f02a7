"""A server's part of a fabric: its tunnels, and what its interfaces counted."""

from topologies.network import _counted
from topologies.part import Tunnel


def test_interfaces_are_read_as_the_kernel_writes_them() -> None:
    text = (
        "Inter-|   Receive                                                |  Transmit\n"
        " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop\n"
        "    lo:       0       0    0    0    0     0          0         0        0       0    0    0\n"
        "s1-eth1: 1234567  100    0    0    0     0          0         0   765432      90    0    0\n"
    )
    assert _counted(text) == [("lo", (0, 0)), ("s1-eth1", (1234567, 765432))]


def test_a_tunnel_is_made_with_the_servers_addresses_and_moved_to_its_vertex() -> None:
    tunnel = Tunnel("leaf1", "spine2", 77, "10.0.0.1", "10.0.0.2")
    assert list(tunnel.commands("weir5t0", "leaf1-eth3", 4242)) == [
        "ip link add weir5t0 type vxlan id 77 local 10.0.0.1 remote 10.0.0.2 dstport 4789 nolearning "
        "noudpcsum",
        "ip link set dev weir5t0 netns 4242 name leaf1-eth3",
    ]
