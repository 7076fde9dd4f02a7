"""Shape of what an interface sends: its link's rate (HTB), a delay if one is asked for (netem), and one queue
or two, the first for the protocol's messages without a value."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass

from topologies.errors import TopologyError
from topologies.machine_check import try_in_namespace

DEFAULT_MTU_BYTES = 1500
ETHERNET_HEADER_BYTES = 14
BURST_S = 0.001
"""Seconds of the link's rate that an idle link may send at once; a fixed size would take long on a slow link.
"""
# KV_PORT, OP_AT and FIRST_OPS are the protocol's, of which this folder knows nothing else (a test compares).
KV_PORT = 22341
OP_AT = 20 + 8 + 1
"""Offset in bytes of the protocol's `op` from the start of the IPv4 header, which has no options."""
FIRST_OPS = (1, 3, 5, 6, 7, 8, 10, 13, 14)
"""GET, NOT_FOUND, PUT_ACK, REFUSED, STAT, FOUND, LIST, DELETE, DELETED: hosts' messages without a value."""
_ROOT, _LINK, _FIRST, _LAST = "5:", "5:1", "5:10", "5:11"
_LITTLE = "8bit"
"""Lowest rate that HTB takes. Each class owns only this much and borrows the rest from the link, so its
`prio` decides."""


def burst_bytes(rate_bit_s: float, mtu_bytes: int = DEFAULT_MTU_BYTES) -> int:
    """Return the bytes that a link of this rate lets through at once after it was idle."""
    return max(2 * (ETHERNET_HEADER_BYTES + mtu_bytes), round(rate_bit_s * BURST_S / 8))


@dataclass(frozen=True, slots=True)
class Shape:
    """Shape of what an interface sends."""

    rate_bit_s: float
    delay_ms: float = 0.0
    queue_packets: int | None = None
    """Largest number of packets in a queue; None means the kernel's 1000."""
    mtu_bytes: int = DEFAULT_MTU_BYTES
    """Size of the longest packet that it sends."""
    requests_first: bool = False
    """Whether the protocol's messages without a value have a queue of their own, before everything else.
    Other traffic goes with the blocks, and a switch forwards no such message that is long."""

    def commands(self, interface: str) -> Iterator[str]:
        """Yield the tc commands for an interface that has no queues yet."""
        device, rate = f"dev {interface}", f"{self.rate_bit_s:.0f}bit"
        burst = burst_bytes(self.rate_bit_s, self.mtu_bytes)
        # Without a quantum, the kernel warns of its guess.
        bounds = f"burst {burst} cburst {burst} quantum {ETHERNET_HEADER_BYTES + self.mtu_bytes}"
        leaves = (_FIRST, _LAST) if self.requests_first else (_LINK,)
        default = leaves[-1].removeprefix(_ROOT)
        yield f"tc qdisc add {device} root handle {_ROOT} htb default {default}"
        yield f"tc class add {device} parent {_ROOT} classid {_LINK} htb rate {rate} {bounds}"
        if self.requests_first:
            for order, leaf in enumerate(leaves):
                limits = f"rate {_LITTLE} ceil {rate} prio {order} {bounds}"
                yield f"tc class add {device} parent {_LINK} classid {leaf} htb {limits}"
            yield from (f"tc filter add {device} {one} flowid {_FIRST}" for one in _requests())
        for number, leaf in enumerate(leaves, 10):
            yield from self._queue(device, leaf, f"{number}:")

    def _queue(self, device: str, parent: str, handle: str) -> Iterator[str]:
        """Yield the commands for the queue in a class of HTB; with none, it has the kernel's queue."""
        if self.delay_ms:
            yield f"tc qdisc add {device} parent {parent} handle {handle} netem delay {self.delay_ms}ms"
            parent = f"{handle}1"
        if self.queue_packets is not None:
            yield f"tc qdisc add {device} parent {parent} pfifo limit {self.queue_packets}"


def _requests() -> Iterator[str]:
    """Yield the filters of messages without a value.

    They read the message, not its length: what a host hands the kernel as one packet is many messages.
    """
    for op in FIRST_OPS:
        yield (
            f"parent {_ROOT} protocol ip prio 1 u32 match ip protocol {socket.IPPROTO_UDP} 0xff "
            f"match ip dport {KV_PORT} 0xffff match u8 {op} 0xff at {OP_AT}"
        )


def require(delay_ms: float, requests_first: bool) -> None:
    """Raise TopologyError if the kernel lacks what these settings need; none is left out silently."""
    if error := try_in_namespace(Shape(1e9).commands("weir0")):
        raise TopologyError(
            f"links get their rates from the kernel's HTB, which is not here (tc: {error}): load it "
            "(modprobe sch_htb), or use a kernel that has it; those of some containers and of WSL have no "
            "queues at all"
        )
    if delay_ms and (error := try_in_namespace(["tc qdisc add dev weir0 root netem delay 1ms"])):
        raise TopologyError(
            f"a link delay of {delay_ms:g} ms needs the kernel's netem, which is not here (tc: {error}). "
            "Leave the delay out, or load sch_netem"
        )
    if requests_first and (error := try_in_namespace(Shape(1e9, requests_first=True).commands("weir0"))):
        raise TopologyError(
            "a queue for requests before that for blocks needs the kernel's HTB and u32 filters, which are "
            f"not here (tc: {error}). Leave REQUESTS_FIRST out, or load sch_htb and cls_u32"
        )
