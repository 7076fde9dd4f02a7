"""Classes for Mininet: hosts and switches that one script each sets up, and shaped interfaces.

This module is imported only when a network is built: tests and simulations need no Mininet.
"""

from __future__ import annotations

from subprocess import Popen
from typing import Any

from mininet.link import Intf
from mininet.node import Host, Switch

from topologies.shaping import Shape

# Failures are ignored: a kernel may have no IPv6, and a container may have a read-only /proc/sys. There, an
# interface at least gets no address of its own and so does not look for neighbours.
_NO_IPV6 = (
    "for one in all default; do (echo 1 >/proc/sys/net/ipv6/conf/$one/disable_ipv6) 2>/dev/null || :; done"
)
_NO_ADDRESS = "ip link set dev {} addrgenmode none 2>/dev/null || :"


class _Scripted:
    """Node whose commands are collected and run as one script.

    Each command alone would be a round trip to the node's shell. The scripts of all nodes run at the same
    time.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.setup = ["set -e", _NO_IPV6]
        super().__init__(*arguments, **options)

    def _popen(self, command: list[str], **options: Any) -> Popen[Any]:
        """Start the node's shell in its own network namespace, and in no other kind of namespace.

        Mininet mounts /sys anew for each node. Sandboxes refuse that, and Mininet would then wait forever.
        """
        if "-cdn" in command:
            command = ["unshare", "--net", "--", *("-cd" if word == "-cdn" else word for word in command)]
        return Popen(command, **options)


class ScriptedHost(_Scripted, Host):  # type: ignore[misc] # mininet ships no types
    """Host with one interface."""

    def config(self, mac: str, ip: str, **_: Any) -> dict[str, Any]:
        """Add commands that give the interface its addresses."""
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
    """Namespace with ports; the engine's process forwards, not the kernel."""

    def start(self, controllers: Any) -> None:
        """Do nothing: `Network.start_switches` starts the switches."""


class ShapedInterface(Intf):  # type: ignore[misc] # mininet ships no types
    """End of a link; its node runs the commands later, together with all others."""

    def config(
        self, shape: Shape, *, gro: bool = False, txo: bool = True, rxo: bool = True, **_: Any
    ) -> dict[str, Any]:
        """Add commands that set the interface's MTU, offloads and shape."""
        settings = {"gro": gro, "tx": txo, "rx": rxo}
        offloads = " ".join(f"{name} {'on' if on else 'off'}" for name, on in settings.items())
        self.node.setup += [
            _NO_ADDRESS.format(self.name),
            f"ip link set dev {self.name} mtu {shape.mtu_bytes} up",
            f"ethtool -K {self.name} {offloads} >/dev/null",
            *shape.commands(self.name),
        ]
        return {}
