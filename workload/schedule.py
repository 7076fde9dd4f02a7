"""Which node serves a request: `random` (the default), `round_robin`, `locality`."""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from workload.trace import Request

LOCALITY_BLOCKS = 20_000


class ScheduleError(ValueError):
    """A scheduler or a number of nodes that does not exist."""


class Scheduler(Protocol):
    """Assigns requests to nodes 0..nodes-1, called in order of arrival."""

    def assign(self, request: Request) -> int:
        """The node that serves `request`."""


class RandomScheduler:
    """Any node with equal chance: what a load balancer without regard to locality does."""

    def __init__(self, nodes: int, seed: int) -> None:
        self._nodes = nodes
        self._random = random.Random(seed)

    def assign(self, request: Request) -> int:
        return self._random.randrange(self._nodes)


class RoundRobinScheduler:
    """Each node in turn."""

    def __init__(self, nodes: int, seed: int) -> None:
        self._nodes = nodes
        self._next = seed % nodes

    def assign(self, request: Request) -> int:
        node = self._next
        self._next = (node + 1) % self._nodes
        return node


class LocalityScheduler:
    """The node that has least to do, where a prefix it was sent lately is nothing to do."""

    def __init__(self, nodes: int, seed: int) -> None:
        self._random = random.Random(seed)
        self._seen: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(nodes)]
        self._computed_tokens = [0] * nodes

    def assign(self, request: Request) -> int:
        costs = []
        for node, computed_tokens in enumerate(self._computed_tokens):
            new_share = 1 - self._prefix(node, request) / len(request.blocks)
            costs.append(
                (computed_tokens + round(new_share * request.input_tokens), self._random.random(), node)
            )
        computed_tokens, _, node = min(costs)
        self._computed_tokens[node] = computed_tokens
        self._remember(node, request)
        return node

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


SCHEDULERS: dict[str, Callable[[int, int], Scheduler]] = {
    "random": RandomScheduler,
    "round_robin": RoundRobinScheduler,
    "locality": LocalityScheduler,
}


def make_scheduler(name: str, nodes: int, seed: int = 0) -> Scheduler:
    """A scheduler by name; raises ScheduleError that lists those that exist."""
    if name not in SCHEDULERS:
        raise ScheduleError(f"no scheduler {name!r}: choose one of {', '.join(SCHEDULERS)}")
    if nodes < 1:
        raise ScheduleError("there must be at least one node")
    return SCHEDULERS[name](nodes, seed)
