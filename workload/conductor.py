"""Mooncake's conductor, which chooses a request's node by cached prefix, queue, transfer and prefill time.

After "KVCache-centric scheduling" of Mooncake (arXiv 2407.00079, section 6 and algorithm 1). The conductor
estimates the time to first token at each node and takes the smallest. If that exceeds the objective, it
rejects the request.

    best = blocks of the longest prefix that any node or the storage holds
    best <= threshold * own prefix:  the node computes behind what it holds   queue + prefill(own prefix)
    else it fetches the rest first   max(queue, transfer) + prefill(best that storage holds)

The queue is, as in the paper, the sum of the prefills sent there before, less the time that has passed. A
node fetches while its GPU is busy with other requests, hence the maximum; the paper has a sum (an option). A
node keeps what it fetches, so blocks in demand get copies at several nodes (the paper's hot-spot migration).
Blocks that queued requests will have computed count as held: otherwise a burst behind one prefix would be
scattered before its first request is done. The cluster defines "storage": storage nodes and pool or, as in
the paper, the memory of the other nodes. Decoding runs elsewhere in this project's model, so the conductor
chooses no decoding node, and TBT rejects nothing.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from workload.schedule import Route
from workload.trace import Request


class Cluster(Protocol):
    """Knowledge of a conductor about nodes and storage at this moment. All seconds are of the same kind."""

    nodes: int

    def now_s(self) -> float:
        """Return the time in seconds."""

    def held_blocks(self, node: int, request: Request) -> int:
        """Return how many of the request's first blocks are in the node's own memory."""

    def stored_blocks(self, request: Request) -> int:
        """Return how many of the request's first blocks the pool or a storage node holds."""

    def transfer_s(self, node: int, request: Request, first: int, end: int) -> float:
        """Return the seconds to fetch the blocks [first, end) behind all that links and homes have to
        send."""

    def prefill_s(self, request: Request, held_blocks: int) -> float:
        """Return the seconds to compute the request behind its first `held_blocks`."""


@dataclass(frozen=True, slots=True)
class ConductorOptions:
    """Options of the conductor."""

    balancing_threshold: float = 1.5
    """Factor by which the best prefix must exceed the node's own for the node to fetch it; the paper names
    none."""
    overlapped: bool = True
    """Whether a transfer runs while the GPU is busy with other requests; if not, the two times add up as in
    the paper."""
    ttft_slo_s: float | None = None
    """Longest estimated seconds to the first token of an accepted request; None accepts all."""


@dataclass(slots=True)
class ConductorStats:
    """Counters of the conductor: requests, and blocks where the name says so."""

    assigned: int = 0
    rejected: int = 0
    fetching: int = 0
    """Requests sent to a node with the advice to fetch."""
    held_blocks: int = 0
    """Blocks that the chosen nodes held, as far as the conductor knew."""
    replicated_blocks: int = 0
    """Blocks that a node fetches although another node's memory holds them: hot blocks that get another
    copy."""


@dataclass(slots=True)
class _Queue:
    """Prefills of a node that have not ended, as estimated."""

    waiting_s: dict[int, float] = field(default_factory=dict)
    blocks: dict[int, tuple[int, ...]] = field(default_factory=dict)
    coming: Counter[int] = field(default_factory=Counter)
    """Blocks that the prefills will leave in the node's memory, each with the number of prefills that do."""
    free_s: float = 0.0
    """Time in seconds at which all of them will have ended."""

    def add(self, number: int, blocks: tuple[int, ...], prefill_s: float, now_s: float) -> None:
        self.waiting_s[number], self.blocks[number] = prefill_s, blocks
        self.coming.update(blocks)
        self.free_s = max(self.free_s, now_s) + prefill_s

    def ended(self, number: int, now_s: float) -> None:
        del self.waiting_s[number]
        self.coming -= Counter(self.blocks.pop(number))
        self.free_s = now_s + sum(self.waiting_s.values())


class Conductor:
    """Mooncake's conductor as a scheduler; its caller reports the end of each route's prefill."""

    def __init__(self, cluster: Cluster, options: ConductorOptions | None = None, seed: int = 0) -> None:
        self.stats = ConductorStats()
        self._cluster = cluster
        self._options = options or ConductorOptions()
        self._random = random.Random(seed)
        self._queues = [_Queue() for _ in range(cluster.nodes)]
        self._nodes: dict[int, int] = {}
        """Node of each route whose prefill has not ended, by the route's number."""
        self._next = 0

    def assign(self, request: Request) -> Route | None:
        """Return the route to the node with the soonest expected first token, or None if that is too late."""
        held = [self._held(node, request) for node in range(self._cluster.nodes)]
        stored = self._cluster.stored_blocks(request)
        plans = [self._plan(request, node, held, stored) for node in range(self._cluster.nodes)]
        best = min(plans, key=lambda plan: (plan.ttft_s, self._random.random()))
        slo_s = self._options.ttft_slo_s
        if slo_s is not None and best.ttft_s > slo_s:
            self.stats.rejected += 1
            return None
        self._note(best, request, held, stored)
        return best

    def prefilled(self, number: int) -> None:
        """Note that the prefill of the route with this number has ended or will never happen."""
        node = self._nodes.pop(number, None)
        if node is not None:
            self._queues[node].ended(number, self._cluster.now_s())

    def queue_s(self, node: int) -> float:
        """Return how many seconds the node's GPU is still busy with the requests sent there."""
        return max(0.0, self._queues[node].free_s - self._cluster.now_s())

    def _held(self, node: int, request: Request) -> int:
        held, coming = self._cluster.held_blocks(node, request), self._queues[node].coming
        while held < len(request.blocks) and request.blocks[held] in coming:
            held += 1
        return held

    def _plan(self, request: Request, node: int, held: Sequence[int], stored: int) -> Route:
        own, queue_s = held[node], self.queue_s(node)
        if max(stored, *held) <= self._options.balancing_threshold * own or stored <= own:
            return Route(
                node, fetch=False, number=self._next, ttft_s=queue_s + self._cluster.prefill_s(request, own)
            )
        transfer_s = self._cluster.transfer_s(node, request, own, stored)
        waits_s = max(queue_s, transfer_s) if self._options.overlapped else queue_s + transfer_s
        ttft_s = waits_s + self._cluster.prefill_s(request, stored)
        return Route(node, fetch=True, number=self._next, ttft_s=ttft_s)

    def _note(self, route: Route, request: Request, held: Sequence[int], stored: int) -> None:
        own = held[route.node]
        prefill_s = self._cluster.prefill_s(request, stored if route.fetch else own)
        self._queues[route.node].add(route.number, request.blocks, prefill_s, self._cluster.now_s())
        self._nodes[route.number] = route.node
        self._next += 1
        self.stats.assigned += 1
        self.stats.held_blocks += own
        if route.fetch:
            self.stats.fetching += 1
            self.stats.replicated_blocks += max(0, min(stored, max(held)) - own)


def transfer_s(
    homes: Sequence[Hashable], block_s: float, link_s: float, home_s: Callable[[Hashable], float]
) -> float:
    """Return the seconds to fetch one block from each of `homes` (None stands for the pool) over one link.

    `block_s` is the time of one block on a link, `link_s` and `home_s` what waits at the node's link and at a
    home. Blocks of one home come one after the other, behind what waits there; all share the node's link.
    """
    ready_s: dict[Hashable, float] = {}
    for home in homes:
        if home is not None:
            ready_s[home] = (ready_s[home] if home in ready_s else home_s(home)) + block_s
    return max(link_s + len(homes) * block_s, max(ready_s.values(), default=0.0))
