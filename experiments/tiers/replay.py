"""One replay: every request through the tiers of its node and what lies beyond, in order of time.

A request looks its chain up in its node's GPU memory and DRAM; the gate says how many of the missing blocks
to fetch; the rest is computed, one request a GPU at a time, and stored at the blocks' homes. The steps are
those of hostlib.inference, the tiers and the gate are the hosts' own.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from controller.policies import make_policy
from experiments.tiers.hierarchy import PREFETCHES, Queue, Remote, Store, SwitchPool
from experiments.tiers.options import TiersOptions
from hostlib.gate import Backlogs, Gate, Load
from hostlib.tier_rules import make_rule
from hostlib.tiers import LocalTiers
from workload.cost import CostModel, make_cost_model
from workload.schedule import make_scheduler
from workload.trace import Request, Trace

SOURCES = ("gpu", "dram", "pool", "remote", "ssd", "recomputed")


@dataclass(frozen=True, slots=True)
class Result:
    """What one combination did; the fields of results/tiers/summary.json."""

    tiers: str
    gate: str
    prefetch: str
    blocks: dict[str, int]
    """By where they came from."""
    block_bytes: float
    saved_prefill_s: float
    fetch_s: float
    """Sum over requests, from asking to the last block."""
    storage_bytes: float
    """That left storage nodes."""
    pool_bytes: float
    copied_down_bytes: float
    """Written from GPU memory to DRAM."""
    refused_blocks: int
    """Not fetched as computing was faster."""
    ttft_mean_s: float
    ttft_p50_s: float
    ttft_p99_s: float


@dataclass(slots=True)
class Node:
    """One inference node."""

    tiers: LocalTiers[int]
    gate: Gate
    link: Queue = field(default_factory=Queue)
    backlogs: Backlogs = field(default_factory=Backlogs)
    waiting: deque[Job] = field(default_factory=deque)
    """For the GPU."""
    busy: bool = False
    gpu_free_s: float = 0.0
    """When what waits for the GPU will have been computed, as far as it is known."""


@dataclass(slots=True)
class Job:
    """One request on its way."""

    request: Request
    node: Node
    sources: dict[int, str] = field(default_factory=dict)
    planned_s: float = 0.0
    """Prefill, as far as it was known when it began to wait for the GPU."""
    prefill_s: float = 0.0
    hits: int = 0
    """Blocks from the first on that are not computed."""


class Replay:
    """One trace under one rule, gate and prefetch."""

    def __init__(self, trace: Trace, options: TiersOptions, tiers: str, gate: str, prefetch: str) -> None:
        self._names = (tiers, gate, prefetch)
        self._trace = trace
        self._cost = cost = make_cost_model(options.model, options.gpu, trace.block_tokens)
        self._compares, self._prefetch = gate == "compare", PREFETCHES[prefetch]
        block_s = cost.fetch_s(cost.block_bytes, options.link_gbit_s * 1e9)
        self._remote = _make_remote(options, cost, block_s)
        self._nodes = [
            Node(
                LocalTiers(options.gpu_blocks, options.dram_blocks, make_rule(tiers, cost.block_prefill_s)),
                Gate(cost.prefill_s, cost.block_tokens, block_s),
            )
            for _ in range(options.hosts)
        ]
        self._scheduler = make_scheduler(options.scheduler, options.hosts, options.seed)
        self._events: list[tuple[float, int, Callable[[Job], None], Job]] = []
        self._order = 0
        self._now_s = 0.0
        self._blocks = dict.fromkeys(SOURCES, 0)
        self._saved_prefill_s = self._fetch_s = 0.0
        self._ttft_s: list[float] = []

    def run(self) -> Result:
        """Play the whole trace."""
        for request in self._trace.requests:
            self._advance(request.arrival_s)
            self._arrive(Job(request, self._nodes[self._scheduler.assign(request).node]))
        self._advance(float("inf"))
        return self._result()

    def _advance(self, until_s: float) -> None:
        while self._events and self._events[0][0] <= until_s:
            self._now_s, _, action, job = heapq.heappop(self._events)
            action(job)
        self._now_s = until_s

    def _at(self, time_s: float, action: Callable[[Job], None], job: Job) -> None:
        self._order += 1
        heapq.heappush(self._events, (time_s, self._order, action, job))

    def _arrive(self, job: Job) -> None:
        if self._prefetch.on_arrival:
            gpu_wait_s = max(0.0, job.node.gpu_free_s - self._now_s)
            self._at(self._fetch(job, gpu_wait_s), self._enqueue, job)
        else:
            self._enqueue(job)

    def _enqueue(self, job: Job) -> None:
        """The request waits for the GPU."""
        node = job.node
        job.planned_s = self._prefill_s(job.request, _prefix(job))
        node.gpu_free_s = max(self._now_s, node.gpu_free_s) + job.planned_s
        node.waiting.append(job)
        if not node.busy:
            self._next(node)

    def _next(self, node: Node) -> None:
        node.busy = bool(node.waiting)
        if node.waiting:
            job = node.waiting.popleft()
            self._at(self._now_s if self._prefetch.on_arrival else self._fetch(job, 0.0), self._compute, job)

    def _compute(self, job: Job) -> None:
        """The GPU is the request's, and what was fetched is there."""
        self._look_up(job)  # a request before this one may have computed the same blocks
        job.hits = _prefix(job)
        job.prefill_s = self._prefill_s(job.request, job.hits)
        job.node.gpu_free_s -= job.planned_s - job.prefill_s
        self._at(self._now_s + job.prefill_s, self._finish, job)

    def _finish(self, job: Job) -> None:
        """The first token is there."""
        chain = job.request.blocks
        job.node.tiers.keep(chain)
        for block in chain[job.hits :]:
            store = self._remote.stores[self._remote.home(block)]
            if block not in store:
                store.insert(block, self._now_s)
        for block in chain[: job.hits]:
            self._blocks[job.sources[block]] += 1
        self._blocks["recomputed"] += len(chain) - job.hits
        self._saved_prefill_s += self._prefill_s(job.request, 0) - job.prefill_s
        self._ttft_s.append(self._now_s - job.request.arrival_s)
        self._next(job.node)

    def _look_up(self, job: Job) -> None:
        for block in job.request.blocks:
            if block not in job.sources and (tier := job.node.tiers.use(block)) is not None:
                job.sources[block] = tier

    def _fetch(self, job: Job, gpu_wait_s: float) -> float:
        """Look up and fetch what is missing, as far as the gate lets it; when the last block is there."""
        self._look_up(job)
        chain, node, now_s = job.request.blocks, job.node, self._now_s
        missing = [depth for depth, block in enumerate(chain) if block not in job.sources]
        missing = missing[: self._admitted(node, chain, missing, gpu_wait_s)]
        arrivals = self._remote.fetch(chain, missing, node.link, now_s, self._prefetch)
        end_s = now_s
        for depth, arrival in zip(missing, arrivals, strict=False):
            job.sources[chain[depth]] = arrival.source
            end_s = max(end_s, arrival.end_s)
            if arrival.source != "pool":
                home = self._remote.home(chain[depth])
                node.backlogs.report(home, self._remote.stores[home].link.wait_s(now_s), now_s)
        self._fetch_s += end_s - now_s
        return end_s

    def _admitted(self, node: Node, chain: tuple[int, ...], missing: list[int], gpu_wait_s: float) -> int:
        if not self._compares:
            return len(missing)
        now_s = self._now_s
        load = Load(lambda home: node.backlogs.wait_s(home, now_s), node.link.wait_s(now_s), gpu_wait_s)
        homes = [self._remote.home(chain[depth]) for depth in missing]
        return node.gate.admits(missing, homes, len(chain), load)

    def _prefill_s(self, request: Request, hits: int) -> float:
        return self._cost.request_prefill_s(request.input_tokens, hits)

    def _result(self) -> Result:
        block_bytes = self._cost.block_bytes
        ttft_s = sorted(self._ttft_s)
        return Result(
            *self._names,
            blocks=self._blocks,
            block_bytes=block_bytes,
            saved_prefill_s=self._saved_prefill_s,
            fetch_s=self._fetch_s,
            storage_bytes=(self._blocks["remote"] + self._blocks["ssd"]) * block_bytes,
            pool_bytes=self._blocks["pool"] * block_bytes,
            copied_down_bytes=sum(node.tiers.stats.copied_down for node in self._nodes) * block_bytes,
            refused_blocks=sum(node.gate.stats.refused_blocks for node in self._nodes),
            ttft_mean_s=sum(ttft_s) / len(ttft_s),
            ttft_p50_s=ttft_s[len(ttft_s) // 2],
            ttft_p99_s=ttft_s[min(len(ttft_s) - 1, int(0.99 * len(ttft_s)))],
        )


def _make_remote(options: TiersOptions, cost: CostModel, block_s: float) -> Remote:
    pool = None
    if options.pool_blocks:
        pool = SwitchPool(make_policy(options.policy, options.pool_blocks, seed=options.seed, cost=cost))
    ssd_block_s = cost.block_bytes / (options.ssd_gbyte_s * 1e9)
    stores = [Store(options.store_blocks, options.ssd_blocks, ssd_block_s) for _ in range(options.stores)]
    return Remote(pool, stores, block_s)


def _prefix(job: Job) -> int:
    chain = job.request.blocks
    return next((at for at, block in enumerate(chain) if block not in job.sources), len(chain))
