"""Part of a fabric that one server carries if a network spans several.

A link between two servers is a VXLAN tunnel: the kernel puts each frame into a UDP datagram. Each end is an
interface like any other, which sends at its link's rate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

VXLAN_PORT = 4789
"""UDP port of the tunnels (RFC 7348)."""
VXLAN_BYTES = 50
"""Bytes that a tunnel adds to each packet: the frame's Ethernet header, VXLAN, UDP and IPv4 headers."""
MAX_NETWORK_ID = (1 << 24) - 1


@dataclass(frozen=True, slots=True)
class Tunnel:
    """End, on this server, of a link to another server."""

    vertex: str
    peer: str
    """Name of the host or switch at the other end."""
    network_id: int
    """Number that no other tunnel between the two servers has."""
    local: str
    """Address of this server, as the other one reaches it."""
    remote: str

    def commands(self, old_name: str, interface: str, pid: int) -> Iterator[str]:
        """Yield the commands that make this end and move it to the namespace of process `pid`.

        `old_name` is its name in the server's own network, until it is moved.
        """
        yield (
            f"ip link add {old_name} type vxlan id {self.network_id} local {self.local} remote {self.remote} "
            f"dstport {VXLAN_PORT} nolearning noudpcsum"
        )
        yield f"ip link set dev {old_name} netns {pid} name {interface}"


@dataclass(frozen=True, slots=True)
class Part:
    """Hosts and switches of one server, and its tunnels to others."""

    vertices: frozenset[str]
    tunnels: tuple[Tunnel, ...] = ()
