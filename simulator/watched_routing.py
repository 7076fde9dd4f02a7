"""Load that a router counts for nodes that compute with GPUs: what it sent them and they have not done."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from simulator.prefix_routing import LiveRouter
from workload.schedule import Route
from workload.trace import Request


class WatchedNode:
    """Load of a worker, counted by what it was sent (prefix_routing.Worker)."""

    def __init__(self) -> None:
        self.on_load: Callable[[], None] = lambda: None
        self._tokens = 0

    @property
    def load_tokens(self) -> int:
        """Return the tokens that it has to compute and, if it decodes, to answer."""
        return self._tokens

    def add(self, tokens: int) -> None:
        """Add to the load, or subtract from it."""
        self._tokens += tokens
        self.on_load()


class WatchedRouter:
    """Router that counts its workers' load by what it sends them.

    Tokens to compute count until the answer's first token is there. If nodes decode themselves, tokens to
    answer count until the last one is there.
    """

    def __init__(
        self,
        router: LiveRouter,
        workers: Sequence[WatchedNode],
        computed_tokens: Callable[[int, Request], int],
        decode: bool,
    ) -> None:
        """Watch a router; `computed_tokens` returns the tokens of a request that a node neither holds nor can
        fetch."""
        self._router, self._workers, self._computed_tokens = router, workers, computed_tokens
        self._decode = decode
        self._left: dict[int, tuple[int, int, int]] = {}
        """Worker, tokens to compute and tokens to answer of each request, by its number."""

    def assign(self, request: Request) -> Route:
        """Return the route of the request."""
        route = self._router.assign(request)
        computed = self._computed_tokens(route.node, request)
        answered = request.output_tokens if self._decode else 0
        self._left[route.number] = (route.node, computed, answered)
        self._workers[route.node].add(computed + answered)
        return route

    def prefilled(self, number: int) -> None:
        """Note that the first token of a request is there."""
        self._router.prefilled(number)
        node, computed, _ = self._left[number]
        self._workers[node].add(-computed)

    def answered(self, number: int) -> None:
        """Note that the last token of a request is there."""
        self._router.answered(number)
        node, _, answered = self._left.pop(number)
        self._workers[node].add(-answered)
