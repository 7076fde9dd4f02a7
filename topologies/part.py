"""The part of a fabric that one server carries, where a network lies on several.

A link whose ends are on two servers is a VXLAN tunnel: the kernel puts each frame into a UDP datagram between
the servers. Each end is an interface like any other, which sends at its link's rate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

VXLAN_PORT = 4789
"""UDP port that tunnels use (RFC 7348)."""
VXLAN_BYTES = 50
"""What a tunnel adds to each packet: the frame's own Ethernet header, VXLAN, UDP and IPv4 headers."""
MAX_NETWORK_ID = (1 << 24) - 1


@dataclass(frozen=True, slots=True)
class Tunnel:
    """This server's end of a link to another server."""

    vertex: str
    peer: str
    """What is at the other end."""
    network_id: int
    """Tells this tunnel from all others between the two servers."""
    local: str
    """Address of this server, as the other one reaches it."""
    remote: str

    def commands(self, made_as: str, interface: str, pid: int) -> Iterator[str]:
        """Return commands that make this end and move it to the namespace of process `pid`.

        `made_as` is its name until it is moved: the servers' own network has it so long.
        """
        yield (
            f"ip link add {made_as} type vxlan id {self.network_id} local {self.local} remote {self.remote} "
            f"dstport {VXLAN_PORT} nolearning noudpcsum"
        )
        yield f"ip link set dev {made_as} netns {pid} name {interface}"


@dataclass(frozen=True, slots=True)
class Part:
    """Hosts and switches of one server, and its tunnels to others."""

    vertices: frozenset[str]
    tunnels: tuple[Tunnel, ...] = ()
