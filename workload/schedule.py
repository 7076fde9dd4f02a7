"""Which node serves a request: `random` (the default), `round_robin`, `balanced`, `locality`, or Mooncake's
`conductor`.

All but the last are planned: they look at nothing but the requests, so a trace can be shared out before it is
played. The conductor (`workload.conductor`) decides when a request comes, by the state of nodes and storage.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple, Protocol

from workload.trace import Request

LOCALITY_BLOCKS = 20_000


class ScheduleError(ValueError):
    """A scheduler or a number of nodes that does not exist."""


class Route(NamedTuple):
    """Where a request goes."""

    node: int
    fetch: bool = True
    """Whether the node should ask the network for what it does not hold."""
    number: int = 0
    """By which whoever served it says that its prefill has ended."""
    ttft_s: float = 0.0
    """Estimated time to the first token; 0 where nobody estimates."""


class Scheduler(Protocol):
    """Assigns requests to nodes 0..nodes-1, called in order of arrival."""

    def assign(self, request: Request) -> Route | None:
        """The node that serves `request`; None: nobody, it would take too long."""


class PlannedScheduler(Protocol):
    """A scheduler that needs the requests alone, and refuses none."""

    def assign(self, request: Request) -> Route:
        """The node that serves `request`."""


class RandomScheduler:
    """Any node with equal chance: what a load balancer without regard to locality does."""

    def __init__(self, nodes: int, seed: int) -> None:
        self._nodes = nodes
        self._random = random.Random(seed)

    def assign(self, request: Request) -> Route:
        return Route(self._random.randrange(self._nodes))


class RoundRobinScheduler:
    """Each node in turn."""

    def __init__(self, nodes: int, seed: int) -> None:
        self._nodes = nodes
        self._next = seed % nodes

    def assign(self, request: Request) -> Route:
        node = self._next
        self._next = (node + 1) % self._nodes
        return Route(node)


class BalancedScheduler:
    """The node that was sent the fewest tokens, whatever it holds: load balancing blind to locality."""

    def __init__(self, nodes: int, seed: int) -> None:
        self._random = random.Random(seed)
        self._tokens = [0] * nodes

    def assign(self, request: Request) -> Route:
        sent = [(tokens, self._random.random(), node) for node, tokens in enumerate(self._tokens)]
        _, _, node = min(sent)
        self._tokens[node] += request.input_tokens
        return Route(node)


class LocalityScheduler:
    """The node that has least to do, where a prefix it was sent lately is nothing to do."""

    def __init__(self, nodes: int, seed: int) -> None:
        self._random = random.Random(seed)
        self._seen: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(nodes)]
        self._computed_tokens = [0] * nodes

    def assign(self, request: Request) -> Route:
        costs = []
        for node, computed_tokens in enumerate(self._computed_tokens):
            new_share = 1 - self._prefix(node, request) / len(request.blocks)
            costs.append(
                (computed_tokens + round(new_share * request.input_tokens), self._random.random(), node)
            )
        computed_tokens, _, node = min(costs)
        self._computed_tokens[node] = computed_tokens
        self._remember(node, request)
        return Route(node)

    def _prefix(self, node: int, request: Request) -> int:
        seen = self._seen[node]
        for depth, block in enumerate(request.blocks):
            if block not in seen:
                return depth
        return len(request.blocks)

    def _remember(self, node: int, request: Request) -> None:
        seen = self._seen[node]
        for block in request.blocks:
            seen[block] = None
            seen.move_to_end(block)
        while len(seen) > LOCALITY_BLOCKS:
            seen.popitem(last=False)


PLANNED: dict[str, Callable[[int, int], PlannedScheduler]] = {
    "random": RandomScheduler,
    "round_robin": RoundRobinScheduler,
    "balanced": BalancedScheduler,
    "locality": LocalityScheduler,
}
CONDUCTOR = "conductor"
SCHEDULERS = (*PLANNED, CONDUCTOR)


def make_scheduler(name: str, nodes: int, seed: int = 0) -> PlannedScheduler:
    """A planned scheduler by name; raises ScheduleError that lists those that exist."""
    if name not in PLANNED:
        raise ScheduleError(f"no scheduler {name!r} that plans ahead: choose one of {', '.join(PLANNED)}")
    if nodes < 1:
        raise ScheduleError("there must be at least one node")
    return PLANNED[name](nodes, seed)
