"""Run of all modes in turns with the same requests. Modes of the same configuration share their engines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from engines.conformance.comparison import Reply, difference
from experiments.engines import lmcache
from experiments.engines.options import LMCACHE, MOONCAKE, POOL, RECOMPUTE, STORAGE, EnginesOptions
from experiments.engines.requests import NODES, Requests
from experiments.engines.result import Damage, ModeResult, Served, evaluate

if TYPE_CHECKING:
    from experiments.engines.stage import Engine, Stage

COUNTS = ("hit_tokens", "pool_bytes", "store_bytes", "merged", "stored_bytes")

OnProgress = Callable[[str, int], None]
"""Function that is called with what is going on and the number of requests served in this mode so far."""


class Play:
    """Run of the experiment: `modes` has the results so far, `damaged` those with damaged KV."""

    def __init__(
        self, options: EnginesOptions, stage: Stage, requests: Requests, on_progress: OnProgress
    ) -> None:
        self.modes: dict[str, ModeResult] = {}
        self.damaged: Damage | None = None
        self._options, self._stage, self._requests, self._on_progress = options, stage, requests, on_progress
        self._served: dict[str, list[Served]] = {}

    def run(self) -> Iterator[str]:
        """Run all modes; yield each when it is done. Recomputing comes first, to compare others with it."""
        with self._engines({}) as alone:
            yield self._measure(RECOMPUTE, alone)
        with ExitStack() as until_the_end:
            engines: dict[str, Engine] = {}
            turns = [mode for _ in range(self._options.rounds) for mode in self._options.modes]
            last = max((at for at, mode in enumerate(turns) if mode in (STORAGE, POOL)), default=0)
            for at, mode in enumerate(turns):
                if mode in (STORAGE, POOL):
                    yield self._connected(mode, engines, until_the_end, is_last=at == last)
                elif mode == LMCACHE:
                    yield self._lmcache()
                elif mode == MOONCAKE:
                    yield self._mooncake()

    def _connected(
        self, mode: str, engines: dict[str, Engine], until_the_end: ExitStack, *, is_last: bool
    ) -> str:
        """Run a mode in which engines use Weir's connector.

        The engines start in the first such run, because they look for the network when they start, and serve
        all others too. After the last one, the KV that they load is damaged.
        """
        with self._stage.mode(mode):
            if not engines:
                transfer = {node: self._stage.connector(node) for node in NODES}
                engines.update(until_the_end.enter_context(self._engines(transfer)))
            self._measure(mode, engines)
            if is_last:
                self.damaged = self._damage(engines)
        return mode

    def _mooncake(self) -> str:
        with self._stage.mooncake() as transfer, self._engines(transfer) as engines:
            return self._measure(MOONCAKE, engines)

    def _lmcache(self) -> str:
        """Run LMCache. The counts of its servers are known only after they have ended."""
        moved: dict[str, Any] = {}
        transfer = dict.fromkeys(NODES, lmcache.transfer())
        with (
            self._stage.mode(LMCACHE),
            lmcache.servers(self._stage, moved),
            self._engines(transfer) as engines,
        ):
            served = self._serve(LMCACHE, engines)
        served.counts.update(moved)
        return self._note(LMCACHE, served)

    @contextmanager
    def _engines(self, transfer: dict[str, dict[str, Any]]) -> Iterator[dict[str, Engine]]:
        self._on_progress("starting vLLM", 0)
        with self._stage.engines(transfer) as engines:
            yield engines

    def _measure(self, mode: str, engines: dict[str, Engine]) -> str:
        return self._note(mode, self._serve(mode, engines))

    def _note(self, mode: str, served: Served) -> str:
        self._served.setdefault(mode, []).append(served)
        self.modes[mode] = evaluate(self._served[mode], self._reference)
        return mode

    @property
    def _reference(self) -> list[Reply]:
        return self._served[RECOMPUTE][0].trace

    def _serve(self, mode: str, engines: dict[str, Engine]) -> Served:
        """Serve all requests, one after the other, with engines whose own caches are emptied first."""
        replies: list[Reply] = []
        for engine in engines.values():
            engine.tell("forget", "forgot")
        before = _total(engines)
        for served, request in enumerate((*self._requests.first, *self._requests.trace), 1):
            replies += engines[request.node].serve([request], self._options.output_tokens)
            self._on_progress(mode, served)
        count = len(self._requests.first)
        return Served(replies[:count], replies[count:], _since(before, _total(engines)))

    def _damage(self, engines: dict[str, Engine]) -> Damage:
        """Repeat the last request with KV that is damaged on its way into the engine's memory."""
        request, engine = self._requests.trace[-1], engines[self._requests.trace[-1].node]
        engine.tell("forget", "forgot")
        engine.tell("damage", "damaging")
        (reply,) = engine.serve([request], self._options.output_tokens)
        return Damage(*difference(reply, self._reference[-1]))


def _total(engines: dict[str, Engine]) -> dict[str, Any]:
    total: dict[str, Any] = dict.fromkeys(COUNTS, 0) | {"failed": {}}
    for engine in engines.values():
        counts = engine.counts()
        for name in COUNTS:
            total[name] += counts.get(name, 0)
        for error, count in counts.get("failed", {}).items():
            total["failed"][error] = total["failed"].get(error, 0) + count
    return total


def _since(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    since: dict[str, Any] = {name: after[name] - before[name] for name in COUNTS}
    failed = {error: count - before["failed"].get(error, 0) for error, count in after["failed"].items()}
    since["failed"] = {error: count for error, count in failed.items() if count}
    return since
