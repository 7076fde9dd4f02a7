"""Network of an emulation, whose links the kernel shapes."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.emulated.machine import Carrier
from simulator.events import Loop
from simulator.link import AT_ONCE_S, Link, Passage
from simulator.messages import Put, Sizes
from simulator.network import Network
from topologies.fabric import Fabric


class Shaper(Link):
    """Token bucket: a packet has left when its turn comes. After idling, as many leave at once as take
    `burst_s` at the link's rate."""

    __slots__ = ("_burst_s",)

    def __init__(self, name: str, bytes_per_s: float, latency_s: float, burst_s: float) -> None:
        super().__init__(name, bytes_per_s, latency_s)
        self._burst_s = burst_s

    def send(self, now_s: float, size_bytes: float, head_bytes: float, tail_s: float = 0.0) -> Passage:
        begin_s = max(self.free_s, now_s)
        self.longest_wait_s = max(self.longest_wait_s, begin_s - now_s)
        self.sent_bytes += size_bytes
        first_s = min(head_bytes, size_bytes) / self.bytes_per_s
        self.free_s = max(self.free_s, now_s - self._burst_s) + size_bytes / self.bytes_per_s
        end_s = max(begin_s, self.free_s - first_s, tail_s)
        return begin_s + self.latency_s, end_s + self.latency_s


class EmulatedNetwork(Network):
    """Network whose links are shapers if the machine has a burst; acknowledgements and PUTs pass link by
    link."""

    def __init__(
        self,
        loop: Loop,
        fabric: Fabric,
        sizes: Sizes,
        latency_s: float,
        requests_first: bool,
        carrier: Carrier,
    ) -> None:
        self._burst_s = carrier.machine.link_burst_s
        super().__init__(loop, fabric, sizes, latency_s, requests_first)

    def _link(self, name: str, bytes_per_s: float, latency_s: float) -> Link:
        if not self._burst_s:
            return super()._link(name, bytes_per_s, latency_s)
        return Shaper(name, bytes_per_s, latency_s, self._burst_s)

    def acknowledge(self, store: str, sender: str, fragments: int) -> float:
        if self._requests_first:
            return super().acknowledge(store, sender, fragments)
        now_s, tail_s = self._loop.now, 0.0
        for link in self._way(store, sender):
            _, tail_s = link.send(now_s, fragments * self._request_bytes, self._request_bytes, tail_s)
        return tail_s

    def _pass(self, way: Sequence[Link], first: int, put: Put, tail_s: float) -> None:
        head_s, last = self._loop.now, len(way) - 1
        for place in range(first, len(way)):
            link = way[place]
            waits = link.free_s > head_s + AT_ONCE_S
            head_s, tail_s = link.send(head_s, put.fragments * self._value_bytes, self._value_bytes, tail_s)
            if self._takers:
                self._show(link, put)
            if waits and place < last:
                self._loop.at(head_s, self._pass, way, place + 1, put, tail_s)
                return
        self._loop.at(tail_s, self.keepers[put.block.home], put)
