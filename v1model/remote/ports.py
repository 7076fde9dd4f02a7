"""Lines of `show_ports`: the ports of a running switch and its dropped packets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_DROPS = ("oversize_drops", "beyond_mtu_drops", "transmit_drops", "kernel_drops")


def show_ports(statistics: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each port with its packets and drops, each used queue, and each cause of drops."""
    for number, port in statistics["ports"].items():
        drops = ", ".join(f"{port[name]} {name.removesuffix('_drops')}" for name in _DROPS if port[name])
        received, sent = port["received_packets"], port["sent_packets"]
        error = f", {port['error']}" if port["error"] else ""
        line = f"{number}: {port['interface']}, {received} packets in, {sent} out, dropped: {drops or 'none'}"
        yield line + error
    for number, queues in statistics.get("queues", {}).items():
        for priority, queue in queues.items():
            counted = f"{queue['sent']} sent, {queue['dropped']} dropped, {queue['marked']} marked"
            yield f"{number}: priority {priority}, {queue['packets']} packets wait, {counted}"
    for cause, packets in statistics["drops"].items():
        if packets:
            yield f"dropped by the switch: {packets} {cause}"
