"""Decoders apart from the nodes that prefill; KV moves to one of them before the first token.

Nodes and decoders are in racks. KV that leaves a rack passes the rack's uplink, and the downlink of the rack
that it enters. The decoder is chosen when the prefill has ended: in turn, by load (the fewest tokens), or by
network. The latter, NetKV's addition (arXiv 2606.03910), takes the soonest first token: transfer over the
links as they are now, plus one step. It chooses a decoder without room for the KV only if none has room.
"""

from __future__ import annotations

from itertools import chain

from scenario import GB, GBIT_BYTES
from scenario.hardware import Decoders
from simulator.events import Loop, Steps
from simulator.gpu import Gpu
from simulator.link import Link
from workload.cost import CostModel


class _Rack:
    """Links between a rack and the rest."""

    def __init__(self, name: str, bytes_per_s: float) -> None:
        self.up, self.down = Link(f"{name} up", bytes_per_s, 0.0), Link(f"{name} down", bytes_per_s, 0.0)


class DecoderPool:
    """All decoders and the links of the KV that moves to them, at `link_gbit_s` each."""

    def __init__(
        self, loop: Loop, cost: CostModel, options: Decoders, nodes: int, link_gbit_s: float
    ) -> None:
        self._loop, self._options, self._nodes = loop, options, nodes
        self._token_bytes = cost.model.kv_bytes_per_token
        rate = link_gbit_s * GBIT_BYTES
        self._tokens = options.running_gb * GB / self._token_bytes
        self.gpus = [Gpu(loop, cost, True, self._tokens, 1) for _ in range(options.count)]
        self._held = [0.0] * options.count
        """Tokens of the requests that each decoder has or waits for."""
        self._out = [Link(f"node {n} to decoders", rate, 0.0) for n in range(nodes)]
        self._in = [Link(f"decoder {n} in", rate, 0.0) for n in range(options.count)]
        load = options.load_gbyte_s * GB
        self._loads = [Link(f"decoder {n} load", load, 0.0) for n in range(options.count)] if load else []
        uplink = (options.uplink_gbit_s or link_gbit_s * (nodes + options.count)) * GBIT_BYTES
        self._racks = [_Rack(f"rack {n}", uplink) for n in range(options.racks)]
        self._turn = 0

    @property
    def links(self) -> list[Link]:
        """Return the links of all nodes, decoders and racks."""
        racks = chain.from_iterable((rack.up, rack.down) for rack in self._racks)
        return [*self._out, *self._in, *racks]

    def choose(self, node: int, tokens: int) -> int:
        """Choose the decoder of a request of `tokens` tokens, which count as its load from now on.

        Returns the decoder's index.
        """
        places = range(self._options.count)
        if self._options.placing == "round_robin":
            self._turn += 1
            chosen = self._turn % self._options.count
        elif self._options.placing == "load":
            chosen = min(places, key=lambda place: (self._held[place], place))
        else:
            chosen = min(places, key=lambda place: (*self._expected(node, place, tokens), place))
        self._held[chosen] += tokens
        return chosen

    def bring(self, node: int, decoder: int, tokens: int, moved_tokens: int) -> Steps:
        """Wait for room at the decoder, then for the KV."""
        yield from self.gpus[decoder].admit(tokens)
        now_s, size_bytes = self._loop.now, moved_tokens * self._token_bytes
        tail_s = now_s
        for link in self._way(node, decoder):
            _, tail_s = link.send(now_s, size_bytes, size_bytes, tail_s)
        yield tail_s - now_s
        if self._loads:
            now_s = self._loop.now
            yield self._loads[decoder].send(now_s, size_bytes, size_bytes)[1] - now_s

    def decode(self, decoder: int, tokens: int, output_tokens: int, context_tokens: int) -> Steps:
        """Decode the tokens after the first, then free the room."""
        yield from self.gpus[decoder].decode(output_tokens, context_tokens)
        self.gpus[decoder].leave(tokens)
        self._held[decoder] -= tokens

    def _expected(self, node: int, decoder: int, tokens: int) -> tuple[bool, float]:
        """Return whether the decoder lacks room, and the seconds until the first token."""
        now_s = self._loop.now
        waits_s = max(
            link.wait_s(now_s) + tokens * self._token_bytes / link.bytes_per_s
            for link in self._way(node, decoder)
        )
        full = self._held[decoder] + tokens > self._tokens
        return full, waits_s + self.gpus[decoder].step_s

    def _way(self, node: int, decoder: int) -> list[Link]:
        racks = self._options.racks
        here, there = node * racks // self._nodes, decoder * racks // self._options.count
        between = [] if here == there else [self._racks[here].up, self._racks[there].down]
        return [self._out[node], *between, self._in[decoder]]
