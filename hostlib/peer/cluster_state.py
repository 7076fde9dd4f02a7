"""State of nodes, storage and pools that a router knows from their reports (workload.conductor.Cluster)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any

from hostlib.client.backlogs import Backlogs
from hostlib.process.lines import keys_in
from hostlib.protocol.errors import LineError
from hostlib.protocol.members import Members
from hostlib.protocol.wire import VALUE_FRAME_BYTES, fragment_count
from workload.conductor import transfer_s
from workload.cost import CostModel
from workload.keys import KeySpace
from workload.scale import ScaleModel
from workload.trace import Request

MAX_STORED_KEYS = 1_000_000
CHAINS_CACHED = 4096


@dataclass
class _Node:
    held: set[bytes] = field(default_factory=set)
    link_free_s: float = 0.0
    """Time at which what the node has asked for will have come."""
    homes: Backlogs = field(default_factory=Backlogs)


class ClusterState:
    """State of `nodes` nodes, in seconds of the emulation, by the clock `now_s`."""

    def __init__(
        self,
        nodes: int,
        members: Members,
        key_space: KeySpace,
        cost: CostModel,
        scale: ScaleModel,
        link_bit_s: float,
        now_s: Callable[[], float],
    ) -> None:
        self.nodes = nodes
        self._nodes = [_Node() for _ in range(nodes)]
        self._pools: dict[str, set[bytes]] = {}
        self._stored: OrderedDict[bytes, None] = OrderedDict()
        """By recency of the report; the oldest are forgotten."""
        self._members, self._cost, self._scale = members, cost, scale
        self._fragment_s = 8 * VALUE_FRAME_BYTES / link_bit_s
        fragments = fragment_count(scale.block_bytes(cost.block_bytes)) * cost.stored_share
        self._block_s = max(1.0, fragments) * self._fragment_s
        self._now_s = now_s

        @lru_cache(CHAINS_CACHED)
        def chain(blocks: tuple[int, ...]) -> tuple[bytes, ...]:
            return tuple(key_space.chain(blocks))

        self._chain = chain

    def now_s(self) -> float:
        return self._now_s()

    def held_blocks(self, node: int, request: Request) -> int:
        held = self._nodes[node].held
        return _prefix(self._chain(request.blocks), held.__contains__)

    def stored_blocks(self, request: Request) -> int:
        return _prefix(self._chain(request.blocks), lambda key: key in self._stored or self._pooled(key))

    def transfer_s(self, node: int, request: Request, first: int, end: int) -> float:
        asker, now_s = self._nodes[node], self._now_s()
        keys = self._chain(request.blocks)[first:end]
        homes = [None if self._pooled(key) else self._members.order(key)[0].address for key in keys]
        link_s = max(0.0, asker.link_free_s - now_s)
        return transfer_s(homes, self._block_s, link_s, lambda home: asker.homes.wait_s(home, now_s))

    def prefill_s(self, request: Request, held_blocks: int) -> float:
        return self._scale.duration_s(self._cost.request_prefill_s(request.input_tokens, held_blocks))

    def stored(self, keys: Iterable[bytes]) -> None:
        """Note that storage nodes hold these blocks."""
        for key in keys:
            self._stored[key] = None
            self._stored.move_to_end(key)
        for key in list(islice(self._stored, max(0, len(self._stored) - MAX_STORED_KEYS))):
            del self._stored[key]

    def node_reports(self, node: int, message: dict[str, Any]) -> None:
        """Take a node's message (hostlib.node.routed); raises LineError for values that cannot be."""
        of, now_s = self._nodes[node], self._now_s()
        of.held.update(keys_in(message, "held"))
        of.held.difference_update(keys_in(message, "gone"))
        self.stored(keys_in(message, "stored"))
        for key in keys_in(message, "lost"):
            self._stored.pop(key, None)
        try:
            if "waiting_fragments" in message:
                of.link_free_s = now_s + float(message["waiting_fragments"]) * self._fragment_s
            for home, wait_s in message.get("home_s", {}).items():
                of.homes.report(home, float(wait_s), now_s)
        except (TypeError, ValueError, AttributeError) as error:
            raise LineError(f"not a report of a node's load: {error}") from None

    def switch_reports(self, switch: str, message: dict[str, Any]) -> None:
        """Take note of what a switch's pool holds now (controller.pool.residents)."""
        pool = self._pools.setdefault(switch, set())
        pool.update(keys_in(message, "held"))
        pool.difference_update(keys_in(message, "gone"))

    def pooled_blocks(self) -> int:
        """Return the number of blocks in the pools of all switches."""
        return sum(map(len, self._pools.values()))

    def _pooled(self, key: bytes) -> bool:
        return any(key in pool for pool in self._pools.values())


def _prefix(chain: Sequence[bytes], there: Callable[[bytes], bool]) -> int:
    return next((at for at, key in enumerate(chain) if not there(key)), len(chain))
