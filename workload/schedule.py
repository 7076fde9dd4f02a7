"""Schedulers that choose the node of a request: `random` (the default), `round_robin`, `balanced`,
`locality`, `sessions`, `pinned`, `spread`, or Mooncake's `conductor`.

All but the last plan ahead: they look only at the requests, so a trace can be shared out before it is run.
The conductor (`workload.conductor`) decides when a request comes, by the state of nodes and storage.
"""

from __future__ import annotations

import random
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from workload.recency import Recency
from workload.trace import Request

SESSIONS = "sessions"
LOCALITY_BLOCKS = 20_000
FEW_NODES = 8
"""Largest number of nodes that are compared one by one, instead of all in the order of their work."""


class ScheduleError(ValueError):
    """Scheduler that does not exist, or a number of nodes that can't be."""


class Route(NamedTuple):
    """Decision about where a request goes."""

    node: int
    fetch: bool = True
    """Whether the node should ask the network for blocks that it does not hold."""
    number: int = 0
    """Number by which the request's server reports that its prefill has ended."""
    ttft_s: float = 0.0
    """Estimated seconds to the first token; 0 if the scheduler does not estimate."""


class PlannedScheduler(Protocol):
    """Scheduler that assigns requests to nodes 0..nodes-1 by the requests alone, in order of arrival."""

    def assign(self, request: Request) -> Route:
        """Return the route to the node that serves `request`."""

    def grow(self, nodes: int) -> None:
        """Use `nodes` nodes from now on, which are more than before.

        The new nodes hold nothing. They count as having been sent as much work as the node that was sent
        least.
        """


class RandomScheduler:
    """Scheduler that takes each node with equal chance, as a load balancer without regard to locality."""

    def __init__(self, nodes: int, seed: int) -> None:
        self._nodes = nodes
        self._random = random.Random(seed)

    def assign(self, request: Request) -> Route:
        return Route(self._random.randrange(self._nodes))

    def grow(self, nodes: int) -> None:
        self._nodes = nodes


class RoundRobinScheduler:
    """Scheduler that takes each node in turn."""

    def __init__(self, nodes: int, seed: int) -> None:
        self._nodes = nodes
        self._next = seed % nodes

    def assign(self, request: Request) -> Route:
        node = self._next
        self._next = (node + 1) % self._nodes
        return Route(node)

    def grow(self, nodes: int) -> None:
        self._nodes = nodes


class BalancedScheduler:
    """Scheduler that takes the node that was sent the fewest tokens: load balancing blind to locality."""

    def __init__(self, nodes: int, seed: int) -> None:
        self._random = random.Random(seed)
        self._tokens = [0] * nodes

    def assign(self, request: Request) -> Route:
        sent = [(tokens, self._random.random(), node) for node, tokens in enumerate(self._tokens)]
        _, _, node = min(sent)
        self.sent(node, request.input_tokens)
        return Route(node)

    def sent(self, node: int, tokens: int) -> None:
        """Note that another scheduler sent so many tokens to a node."""
        self._tokens[node] += tokens

    def grow(self, nodes: int) -> None:
        self._tokens += [min(self._tokens)] * (nodes - len(self._tokens))


class SessionScheduler:
    """Scheduler that takes the session's node; for a new session, the one that was sent the fewest tokens."""

    def __init__(self, nodes: int, seed: int) -> None:
        self._balanced = BalancedScheduler(nodes, seed)
        self._node_of: dict[int, int] = {}

    def assign(self, request: Request) -> Route:
        if request.place is None:
            raise ScheduleError(
                f"the scheduler {SESSIONS!r} needs a trace that says which requests are of one session: "
                "choose another, such as locality"
            )
        node = self._node_of.get(request.place.session)
        route = self._balanced.assign(request) if node is None else Route(node)
        if node is not None:
            self._balanced.sent(node, request.input_tokens)
        self._node_of[request.place.session] = route.node
        return route

    def grow(self, nodes: int) -> None:
        self._balanced.grow(nodes)


class LocalityScheduler:
    """Scheduler that takes the node with the least work, which recently sent prefixes reduce; ties are
    random."""

    def __init__(self, nodes: int, seed: int) -> None:
        self._random = random.Random(seed)
        self._nodes = nodes
        self._seen: list[Recency[int]] = [Recency() for _ in range(nodes)]
        self._seen_at: dict[int, int] = {}
        """Bits by block: bit n is set if `_seen[n]` has the block. This compares hundreds of nodes at
        once."""
        self._tokens = [0] * nodes
        self._by_tokens = [(0, node) for node in range(nodes)]
        """Pairs (tokens sent, node), ascending."""

    def assign(self, request: Request) -> Route:
        tie_breaks = _TieBreaks(self._random, self._nodes)
        best = (1 << 62, 0.0, 0)
        for depth, group in self._by_prefix(request):
            new_share = 1 - depth / len(request.blocks)
            new_tokens = round(new_share * request.input_tokens)
            if group.bit_count() <= FEW_NODES:
                for node in _bits(group):
                    best = min(best, (self._tokens[node] + new_tokens, tie_breaks.of(node), node))
                continue
            for tokens, node in self._by_tokens:
                if tokens + new_tokens > best[0]:
                    break
                if group >> node & 1:
                    best = min(best, (tokens + new_tokens, tie_breaks.of(node), node))
        tokens, _, node = best
        del self._by_tokens[bisect_left(self._by_tokens, (self._tokens[node], node))]
        self._tokens[node] = tokens
        insort(self._by_tokens, (tokens, node))
        self._remember(node, request)
        return Route(node)

    def grow(self, nodes: int) -> None:
        tokens, _ = self._by_tokens[0]
        for node in range(self._nodes, nodes):
            self._seen.append(Recency())
            self._tokens.append(tokens)
            insort(self._by_tokens, (tokens, node))
        self._nodes = nodes

    def _by_prefix(self, request: Request) -> Iterator[tuple[int, int]]:
        """Yield (first blocks that were sent there lately, bits of the nodes with exactly that many)."""
        holders = (1 << self._nodes) - 1
        for depth, block in enumerate(request.blocks):
            further = holders & self._seen_at.get(block, 0)
            if further != holders:
                yield depth, holders ^ further
            if not further:
                return
            holders = further
        yield len(request.blocks), holders

    def _remember(self, node: int, request: Request) -> None:
        seen, seen_at, bit = self._seen[node], self._seen_at, 1 << node
        for block in request.blocks:
            if not seen.used(block):
                seen.use(block)
                seen_at[block] = seen_at.get(block, 0) | bit
        while len(seen) > LOCALITY_BLOCKS:
            block = seen.evict()
            seen_at[block] ^= bit
            if not seen_at[block]:
                del seen_at[block]


TIE_BREAK_BITS = 64


class _TieBreaks:
    """Random numbers of all nodes, equal to as many calls of `random`; few of them are ever computed."""

    def __init__(self, draw: random.Random, nodes: int) -> None:
        drawn = draw.getrandbits(TIE_BREAK_BITS * nodes)
        self._drawn = drawn.to_bytes(TIE_BREAK_BITS // 8 * nodes, "little")

    def of(self, node: int) -> float:
        """Return the node's number in [0, 1), from the upper 27 and 26 bits of two 32-bit numbers."""
        first = TIE_BREAK_BITS // 8 * node
        drawn = int.from_bytes(self._drawn[first : first + TIE_BREAK_BITS // 8], "little")
        return ((drawn & 0xFFFFFFFF) >> 5) * 2**-27 + (drawn >> 38) * 2**-53


def _bits(group: int) -> Iterator[int]:
    while group:
        node = group.bit_length() - 1
        yield node
        group ^= 1 << node


KNOWN_AFTER_S = 0.03
"""Seconds after which a router knows that a node holds a prefix: about when the request is answered."""


class PinnedScheduler:
    """Scheduler that takes the node known to hold the longest prefix, else each node in turn.

    Of several such nodes it takes the first. Routers that look only at prefixes do this: SGLang's, and the
    L7-PA of KVSwitch's evaluation.
    """

    def __init__(self, nodes: int, seed: int) -> None:
        self._turns = RoundRobinScheduler(nodes, seed)
        self._tokens = [0] * nodes
        self._held_at: dict[int, list[int]] = {}
        """Nodes that are known to hold a block, by block."""
        self._answers: deque[tuple[float, int, Request]] = deque()
        """Prefixes that will become known: (time in seconds, node, request)."""
        self.known_after_s = KNOWN_AFTER_S

    def assign(self, request: Request) -> Route:
        while self._answers and self._answers[0][0] <= request.arrival_s:
            _, node, answered = self._answers.popleft()
            for block in answered.blocks:
                held_at = self._held_at.setdefault(block, [])
                if node not in held_at:
                    held_at.append(node)
        holders: list[int] = []
        for block in request.blocks:
            known = self._held_at.get(block, [])
            further = [node for node in holders if node in known] if holders else known
            if not further:
                break
            holders = further
        node = self._choose(holders) if holders else self._turns.assign(request).node
        self._tokens[node] += request.input_tokens
        self._answers.append((request.arrival_s + self.known_after_s, node, request))
        return Route(node)

    def grow(self, nodes: int) -> None:
        self._turns.grow(nodes)
        self._tokens += [min(self._tokens)] * (nodes - len(self._tokens))

    def _choose(self, holders: list[int]) -> int:
        return min(holders)


class SpreadScheduler(PinnedScheduler):
    """Scheduler like `PinnedScheduler` that, of several holders, takes the one that was sent the fewest
    tokens.

    This is KVSwitch's weighted choice among a prefix's holders without the delay of its load reports.
    """

    def _choose(self, holders: list[int]) -> int:
        return min(holders, key=lambda node: (self._tokens[node], node))


PLANNED: dict[str, Callable[[int, int], PlannedScheduler]] = {
    "random": RandomScheduler,
    "round_robin": RoundRobinScheduler,
    "balanced": BalancedScheduler,
    "locality": LocalityScheduler,
    SESSIONS: SessionScheduler,
    "pinned": PinnedScheduler,
    "spread": SpreadScheduler,
}
CONDUCTOR = "conductor"
SCHEDULERS = (*PLANNED, CONDUCTOR)


def share_out(
    requests: Sequence[Request], scheduler: PlannedScheduler, nodes: int, joining: int, joins_at: float
) -> Iterator[tuple[Request, int]]:
    """Yield each request with its node; the last `joining` of `nodes` join after the share `joins_at` of
    requests."""
    joins = joining_place(len(requests), joins_at) if joining else -1
    for place, request in enumerate(requests):
        if place == joins:
            scheduler.grow(nodes)
        yield request, scheduler.assign(request).node


def joining_place(requests: int, share: float) -> int:
    """Return the index of the first request that joining nodes may serve, if they join after `share` of
    all."""
    return min(requests - 1, int(share * requests))


def make_scheduler(name: str, nodes: int, seed: int = 0, pace: float = 1.0) -> PlannedScheduler:
    """Return the planned scheduler of that name; raises ScheduleError if there is none.

    `pace` multiplies the scheduler's own times.
    """
    if name not in PLANNED:
        raise ScheduleError(f"no scheduler {name!r} that plans ahead: choose one of {', '.join(PLANNED)}")
    if nodes < 1:
        raise ScheduleError("there must be at least one node")
    scheduler = PLANNED[name](nodes, seed)
    if isinstance(scheduler, PinnedScheduler):
        scheduler.known_after_s *= pace
    return scheduler
