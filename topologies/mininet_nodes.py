"""What Weir gives Mininet: hosts and switches that are set up by one script each, and shaped interfaces.

Imported when a network is built, and not before: tests and simulations need no Mininet.
"""

from __future__ import annotations

from subprocess import Popen
from typing import Any

from mininet.link import Intf
from mininet.node import Host, Switch

from topologies.shaping import Shape

# What is not there is not switched off: a kernel may have no IPv6, and a container a read-only /proc/sys.
# There an interface at least gets no address of its own, so that it does not look for neighbours.
_NO_IPV6 = (
    "for one in all default; do (echo 1 >/proc/sys/net/ipv6/conf/$one/disable_ipv6) 2>/dev/null || :; done"
)
_NO_ADDRESS = "ip link set dev {} addrgenmode none 2>/dev/null || :"


class _Scripted:
    """A node whose commands are gathered and run as one script: each by itself would be a round trip to
    the node's shell, and there are many. The scripts of all nodes run at the same time."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.setup = ["set -e", _NO_IPV6]
        super().__init__(*arguments, **options)

    def _popen(self, command: list[str], **options: Any) -> Popen[Any]:
        """Start the node's shell in a network namespace of its own, and in no other.

        Mininet's own way mounts /sys anew for each node, which sandboxes refuse; it would then wait forever.
        """
        if "-cdn" in command:
            command = ["unshare", "--net", "--", *("-cd" if word == "-cdn" else word for word in command)]
        return Popen(command, **options)


class ScriptedHost(_Scripted, Host):  # type: ignore[misc] # mininet ships no types
    """A host with one interface."""

    def config(self, mac: str, ip: str, **_: Any) -> dict[str, Any]:
        """Address the interface."""
        interface = self.defaultIntf()
        interface.mac, (interface.ip, interface.prefixLen) = mac, ip.split("/")
        own = f"dev {interface.name}"
        self.setup += [
            "ip link set dev lo up",
            f"ip link set {own} address {mac}",
            f"ip address add {ip} {own}",
        ]
        return {}


class NamespaceSwitch(_Scripted, Switch):  # type: ignore[misc] # mininet ships no types
    """A namespace with ports: forwarding is done by the engine's process, not by the kernel."""

    def start(self, controllers: Any) -> None:
        """Nothing to do: `Network.start_switches` does it."""


class ShapedInterface(Intf):  # type: ignore[misc] # mininet ships no types
    """One end of a link; its node runs the commands later, with all others."""

    def config(
        self, shape: Shape, *, gro: bool = False, txo: bool = True, rxo: bool = True, **_: Any
    ) -> dict[str, Any]:
        """Offloads, and how it sends."""
        settings = {"gro": gro, "tx": txo, "rx": rxo}
        offloads = " ".join(f"{name} {'on' if on else 'off'}" for name, on in settings.items())
        self.node.setup += [
            _NO_ADDRESS.format(self.name),
            f"ip link set dev {self.name} mtu {shape.mtu_bytes} up",
            f"ethtool -K {self.name} {offloads} >/dev/null",
            *shape.commands(self.name),
        ]
        return {}
