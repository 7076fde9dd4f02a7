"""What a router hears from nodes that compute with GPUs: the load that each was sent and has not done."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from simulator.prefix_routing import LiveRouter
from workload.schedule import Route
from workload.trace import Request


class WatchedNode:
    """A worker's load by what it was sent (prefix_routing.Worker)."""

    def __init__(self) -> None:
        self.on_load: Callable[[], None] = lambda: None
        self._tokens = 0

    @property
    def load_tokens(self) -> int:
        """Tokens that it has to compute, and to answer where it does that."""
        return self._tokens

    def add(self, tokens: int) -> None:
        """So much more to do, or less."""
        self._tokens += tokens
        self.on_load()


class WatchedRouter:
    """A router whose workers count what it sends them: tokens that they have to compute until the first one
    of the answer is there, and those of the answer until the last is, where nodes decode themselves."""

    def __init__(
        self,
        router: LiveRouter,
        workers: Sequence[WatchedNode],
        computed_tokens: Callable[[int, Request], int],
        decode: bool,
    ) -> None:
        """`computed_tokens`: those of a request that a node neither holds nor can fetch."""
        self._router, self._workers, self._computed_tokens = router, workers, computed_tokens
        self._decode = decode
        self._left: dict[int, tuple[int, int, int]] = {}
        """By number of a request: its worker, tokens to compute and to answer."""

    def assign(self, request: Request) -> Route:
        """Return who serves the request."""
        route = self._router.assign(request)
        computed = self._computed_tokens(route.node, request)
        answered = request.output_tokens if self._decode else 0
        self._left[route.number] = (route.node, computed, answered)
        self._workers[route.node].add(computed + answered)
        return route

    def prefilled(self, number: int) -> None:
        """The first token is there."""
        self._router.prefilled(number)
        node, computed, _ = self._left[number]
        self._workers[node].add(-computed)

    def answered(self, number: int) -> None:
        """Learn that the last token of a request is there."""
        self._router.answered(number)
        node, _, answered = self._left.pop(number)
        self._workers[node].add(-answered)
