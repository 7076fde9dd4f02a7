"""Routers that follow prefixes and learn from the workers, as in KVSwitch's evaluation.

They follow github.com/kaiitunnz/kvswitch, revision 8e87844. `LongestPrefix` is its L7-PA (l7_router.py and
l7_proxy.py). `LoadReports` is its switches with their controller (sdn_controller.py, kvswitch.p4); pinned, it
is what its `--no-per-prefix-ecmp` makes of them. A prompt's first 256 tokens and longer prefixes share one
rule. `LongestRules` is a possible extension: a rule for each prefix. As in the original, table updates take
no time but `routing.gather_s`, switches have room for all rules, and a worker that has evicted a prefix does
not report it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from random import Random
from typing import NamedTuple, Protocol

from scenario.hardware import Routing
from scenario.tables import ROUTERS
from simulator.events import Loop
from workload.schedule import Route
from workload.trace import Request

SCORE = 1.0
"""Score of a worker without load; each token of load subtracts one."""


class Worker(Protocol):
    """Node that serves requests and reports its load."""

    on_load: Callable[[], None]
    """Function that is called when the load has changed."""

    @property
    def load_tokens(self) -> int:
        """Return the computed and answered tokens of all that it has to do."""


class LiveRouter(Protocol):
    """Router that decides when a request comes."""

    def assign(self, request: Request) -> Route:
        """Return the route of the request."""

    def prefilled(self, number: int) -> None:
        """Note that the first token of a routed request is there."""

    def answered(self, number: int) -> None:
        """Note that its last token is there."""


class _Sent(NamedTuple):
    node: int
    blocks: tuple[int, ...]


class _Book:
    """Requests on their way, by number."""

    def __init__(self, block_tokens: int) -> None:
        self._block_tokens = block_tokens
        self._sent: dict[int, _Sent] = {}
        self._numbers = 0

    def full_blocks(self, request: Request) -> tuple[int, ...]:
        """Return the full blocks of a request, which a worker can hold."""
        return request.blocks[: request.input_tokens // self._block_tokens]

    def send(self, node: int, request: Request) -> Route:
        """Note where a request goes and return its route."""
        self._numbers += 1
        self._sent[self._numbers] = _Sent(node, self.full_blocks(request))
        return Route(node, number=self._numbers)

    def look(self, number: int) -> _Sent:
        """Return what was noted."""
        return self._sent[number]

    def end(self, number: int) -> _Sent:
        """Return what was noted, and forget it."""
        return self._sent.pop(number)


class LongestPrefix:
    """Router to the worker that is known to hold the longest prefix, the first of several, else to each in
    turn.

    It knows the prefixes of answered requests and forgets none.
    """

    def __init__(self, nodes: int, block_tokens: int) -> None:
        self._nodes, self._turn = nodes, 0
        self._book = _Book(block_tokens)
        self._held_at: dict[int, set[int]] = defaultdict(set)

    def assign(self, request: Request) -> Route:
        """Return the route to the longest known prefix."""
        holders: set[int] = set()
        for block in self._book.full_blocks(request):
            known = self._held_at.get(block)
            further = (holders & known if holders else known) if known else None
            if not further:
                break
            holders = further
        if holders:
            return self._book.send(min(holders), request)
        self._turn += 1
        return self._book.send((self._turn - 1) % self._nodes, request)

    def prefilled(self, number: int) -> None:
        """Do nothing: this router learns from whole answers."""

    def answered(self, number: int) -> None:
        """Note that the worker now holds the request's blocks."""
        sent = self._book.end(number)
        for block in sent.blocks:
            self._held_at[block].add(sent.node)


class LoadReports:
    """Switches that spread a prefix's requests over its holders, by weights that follow reported load.

    A hash chooses first the leaf, then the leaf's worker. Pinned, all requests of a prefix go to the leaf
    with the best score, and there to the worker with the least load.
    """

    def __init__(
        self,
        loop: Loop,
        nodes: Sequence[Worker],
        block_tokens: int,
        seed: int,
        options: Routing,
        pinned: bool = False,
    ) -> None:
        self._loop, self._workers, self._options, self._pinned = loop, nodes, options, pinned
        self._book = _Book(block_tokens)
        self._step = max(1, options.hash_tokens // block_tokens)
        self._hash_tokens = self._step * block_tokens
        self._draw = Random(seed)
        self._reported = [0] * len(nodes)
        self._reported_s = [float("-inf")] * len(nodes)
        self._refreshing = False
        self._late: set[int] = set()
        """Workers that will report as soon as they may."""
        self._exported: list[set[int]] = [set() for _ in nodes]
        """Prefixes that each worker has reported."""
        self._holders: dict[int, set[int]] = defaultdict(set)
        """Workers that hold a prompt's first `hash_tokens` tokens, by those tokens' prefix."""
        self._told_s: dict[int, list[float]] = defaultdict(list)
        """Times at which a first prefix, or a longer one that begins with it, was reported; only the spines
        count the longer ones."""
        self._first_told_s: dict[int, list[float]] = defaultdict(list)
        self._to_leaf: dict[int, list[int]] = {}
        self._to_worker: dict[tuple[int, int], list[int]] = {}
        """Worker of each bucket, by leaf and first prefix."""
        self._refresh()
        for place, node in enumerate(nodes):
            node.on_load = partial(self._on_load, place)

    def assign(self, request: Request) -> Route:
        """Return the route by the rules for the request's first prefix."""
        prefixes = self._prefixes(self._book.full_blocks(request))
        first = prefixes[0] if prefixes else None
        leaf_bucket, bucket = self._draw_bucket(), self._draw_bucket()
        leaves = self._to_leaf.get(first, self._any_leaf) if first is not None else self._any_leaf
        leaf = leaves[leaf_bucket]
        workers = self._any_worker[leaf]
        if first is not None:
            workers = self._to_worker.get((leaf, first), workers)
        return self._book.send(workers[bucket], request)

    def prefilled(self, number: int) -> None:
        """Report the prefixes that the worker did not hold before."""
        sent = self._book.look(number)
        prefixes = self._prefixes(sent.blocks)
        exported = self._exported[sent.node]
        for depth, prefix in enumerate(prefixes):
            if prefix not in exported:
                exported.add(prefix)
                self._tell(sent.node, prefixes, depth)

    def answered(self, number: int) -> None:
        """Do nothing: this router learns nothing from answers."""
        self._book.end(number)

    def _prefixes(self, blocks: Sequence[int]) -> tuple[int, ...]:
        """Return the prefixes in a request's header; a block's id stands for all before it."""
        return tuple(blocks[self._step - 1 : self._options.hashes * self._step : self._step])

    def _draw_bucket(self) -> int:
        """Draw a bucket, as a hash of the request would choose it."""
        return self._draw.randrange(self._options.buckets)

    def _share_out(self, weights: Mapping[int, float]) -> list[int]:
        """Return the owner of each bucket."""
        return shared_out(weights, self._options.buckets)

    def _tell(self, place: int, prefixes: Sequence[int], depth: int) -> None:
        """Note that a worker holds a prefix; a deeper one, which begins with it, counts only at the
        spines."""
        prefix = prefixes[0]
        self._holders[prefix].add(place)
        self._told_s[prefix].append(self._loop.now)
        self._lead_to_leaves(prefix)
        if not depth:
            self._first_told_s[prefix].append(self._loop.now)
            self._lead_to_workers(prefix)

    def _on_load(self, place: int) -> None:
        now_s, options = self._loop.now, self._options
        change = abs(self._workers[place].load_tokens - self._reported[place])
        if now_s - self._reported_s[place] < options.report_s:
            if options.late_reports and place not in self._late:
                self._late.add(place)
                self._loop.at(self._reported_s[place] + options.report_s, self._report_late, place)
        elif change >= options.report_tokens:
            self._report(place)

    def _report_late(self, place: int) -> None:
        self._late.remove(place)
        if self._workers[place].load_tokens != self._reported[place]:
            self._report(place)

    def _report(self, place: int) -> None:
        self._reported[place], self._reported_s[place] = self._workers[place].load_tokens, self._loop.now
        if not self._refreshing:
            self._refreshing = True
            self._loop.after(self._options.gather_s, self._refresh)

    def _refresh(self) -> None:
        """Compute all rules anew from what is reported now."""
        self._refreshing = False
        everybody = range(len(self._workers))
        self._any_leaf = self._share_out(self._by_leaf(everybody))
        self._any_worker = [
            self._share_out({place: self._weight(place) for place in everybody if self._leaf(place) == leaf})
            for leaf in range(self._options.leaves)
        ]
        for prefix in self._holders:
            self._lead_to_leaves(prefix)
            self._lead_to_workers(prefix)

    def _lead_to_leaves(self, prefix: int) -> None:
        """Set the spines' rule for a prefix."""
        if not self._admitted(self._told_s[prefix]):
            return
        holders = self._holders[prefix]
        uncovered = dict.fromkeys(range(self._options.leaves), self._options.uncovered)
        weights = uncovered | dict(self._by_leaf(holders))
        if self._pinned:
            scores: dict[int, float] = defaultdict(float)
            for place in sorted(holders):
                scores[self._leaf(place)] += SCORE - self._reported[place]
            weights = {max(scores, key=scores.__getitem__): 1.0}
        self._to_leaf[prefix] = self._share_out(weights)

    def _lead_to_workers(self, prefix: int) -> None:
        """Set the rules of the leaves that have a worker that holds the prefix."""
        if not self._admitted(self._first_told_s[prefix]):
            return
        holders = self._holders[prefix]
        for leaf in {self._leaf(place) for place in holders}:
            local = [place for place in range(len(self._workers)) if self._leaf(place) == leaf]
            weights = dict.fromkeys(local, self._options.uncovered)
            weights |= {place: self._weight(place) for place in local if place in holders}
            if self._pinned:
                held = [place for place in local if place in holders]
                weights = {min(held, key=lambda place: (self._reported[place], -place)): 1.0}
            self._to_worker[leaf, prefix] = self._share_out(weights)

    def _admitted(self, told_s: Sequence[float]) -> bool:
        admitted = self._options.admitted
        return len(told_s) >= admitted and told_s[-admitted] >= self._loop.now - self._options.window_s

    def _by_leaf(self, places: Iterable[int]) -> dict[int, float]:
        weights: dict[int, float] = defaultdict(float)
        for place in places:
            weights[self._leaf(place)] += self._weight(place)
        return weights

    def _weight(self, place: int) -> float:
        return 1 / (1 + self._reported[place])

    def _leaf(self, place: int) -> int:
        return place * self._options.leaves // len(self._workers)


class LongestRules(LoadReports):
    """The same switches with a rule for each reported prefix, of which the longest decides.

    Weights count what a worker would have to compute of that prefix like load that it already has. Pinned,
    requests go to the worker that this leaves with the least work.
    """

    def assign(self, request: Request) -> Route:
        """Return the route by the rules for the request's longest prefix."""
        prefixes = self._prefixes(self._book.full_blocks(request))
        ruled = [prefix for prefix in prefixes if len(self._told_s[prefix]) >= self._options.admitted]
        missing = [len(ruled)] * len(self._workers)
        for depth, prefix in enumerate(ruled, 1):
            for place in self._holders[prefix]:
                missing[place] = len(ruled) - depth
        weights = {
            place: 1 / (1 + load + tokens * self._hash_tokens)
            for place, (load, tokens) in enumerate(zip(self._known, missing, strict=True))
        }
        if self._pinned:
            most = max(weights.values())
            best = [place for place, weight in weights.items() if weight == most]
            return self._book.send(self._draw.choice(best), request)
        leaves: dict[int, float] = defaultdict(float)
        for place, weight in weights.items():
            leaves[self._leaf(place)] += weight
        leaf = self._share_out(leaves)[self._draw_bucket()]
        local = {place: weight for place, weight in weights.items() if self._leaf(place) == leaf}
        return self._book.send(self._share_out(local)[self._draw_bucket()], request)

    def _tell(self, place: int, prefixes: Sequence[int], depth: int) -> None:
        """Note that a worker holds this prefix."""
        self._holders[prefixes[depth]].add(place)
        self._told_s[prefixes[depth]].append(self._loop.now)

    def _refresh(self) -> None:
        """Use the loads that are reported now as rules from now on."""
        self._refreshing = False
        self._known = list(self._reported)


def shared_out(weights: Mapping[int, float], buckets: int) -> list[int]:
    """Return the owner of each bucket: in proportion, at least one each (SDNController._allocate_buckets)."""
    total = sum(weights.values())
    counts = {key: max(1, round(weight / total * buckets)) for key, weight in weights.items()}
    while sum(counts.values()) > buckets:
        most = max(counts, key=counts.__getitem__)
        if counts[most] == 1:
            break
        counts[most] -= 1
    while sum(counts.values()) < buckets:
        counts[max(weights, key=weights.__getitem__)] += 1
    return [key for key in sorted(counts) for _ in range(counts[key])][:buckets]


def make_router(
    name: str, loop: Loop, nodes: Sequence[Worker], block_tokens: int, seed: int, options: Routing
) -> LiveRouter:
    """Return the router of that name, one of ROUTERS."""
    if name == ROUTERS[0]:
        return LongestPrefix(len(nodes), block_tokens)
    kind = LongestRules if options.rules == "longest" else LoadReports
    return kind(loop, nodes, block_tokens, seed, options, pinned=name == ROUTERS[2])
