"""Seconds that hints of nodes save, against `reuse` without hints, on recorded sessions of agents.

Hints take effect after a request was answered, as in a live pool (`controller.pool.hinted`) and with its
limits. One tenant owns all blocks. The givers `_pauses` and `_soon` know when a session asks again, which no
node knows for sure: their results are upper bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from commands.intervals import ratio_interval
from commands.own_thread import in_own_thread
from commands.parallel import run_all
from controller.block_id import block_id
from controller.policies import Demoted, Pin, Policy, Unpin
from controller.pool.hinted import RetainedBlocks
from experiments.policies.pools import PolicyPool, make_reuse
from experiments.policies.replay import Ledger
from experiments.policies.results_json import write_json
from experiments.policies.stores import Links
from hostlib.protocol.hints import MAX_RETAIN_S
from workload.cost import CostModel
from workload.session_hints import SessionHint, session_hints
from workload.trace import Request, Trace

PAUSE_S = 300.0
"""Shortest pause, in seconds, after which a session's blocks are demoted: a small pool has
no use for them."""
SOON_S = 30.0
"""Longest time, in seconds, to a session's next request for which blocks are retained, such
as a tool's run."""


@dataclass(frozen=True, slots=True)
class NodeHints:
    """Hints that a node gives after a request was answered."""

    demoted: Sequence[int] = ()
    retained: Sequence[int] = ()
    seconds: float = 0.0
    """Seconds for which `retained` blocks are to be retained."""


HintStrategy = Callable[[Request, SessionHint, float | None], NodeHints]
"""Function from a request, its session's hint and the seconds to the session's next request
(None: never) to hints."""


def _nothing(request: Request, hint: SessionHint, next_s: float | None) -> NodeHints:
    return NodeHints()


def _dead(request: Request, hint: SessionHint, next_s: float | None) -> NodeHints:
    return NodeHints(hint.dead)


def _pauses(request: Request, hint: SessionHint, next_s: float | None) -> NodeHints:
    own = request.blocks[len(hint.shared) :]
    return NodeHints((*hint.dead, *own[::-1]) if next_s is None or next_s > PAUSE_S else hint.dead)


def _soon(request: Request, hint: SessionHint, next_s: float | None) -> NodeHints:
    if next_s is None or next_s > SOON_S:
        return NodeHints(hint.dead)
    return NodeHints(hint.dead, request.blocks, next_s)


def _tools(request: Request, hint: SessionHint, next_s: float | None) -> NodeHints:
    return NodeHints(hint.dead, hint.shared, MAX_RETAIN_S)


NOTHING = "no hints"
STRATEGIES: dict[str, HintStrategy] = {
    NOTHING: _nothing,
    "demote what is dead": _dead,
    "the same, and sessions that pause": _pauses,
    "demote what is dead, retain what is wanted soon": _soon,
    "demote what is dead, retain tools and system prompts": _tools,
}


@dataclass(frozen=True)
class HintsResult:
    """Seconds saved with these hints, over those that the policy saves without hints."""

    hints: str
    blocks: int
    ratio: float
    low: float
    high: float
    """Upper end of the 95 % interval over seeds."""
    seeds: int


def replay_hints(
    traces: Sequence[Trace],
    sizes: Sequence[int],
    cost: CostModel,
    processes: int,
    done: Callable[[], None],
    links: Links,
) -> list[HintsResult]:
    """Replay all traces with each kind of hints; return the ratios of each kind and size."""
    jobs = [(name, size, place) for size in sizes for name in STRATEGIES for place in range(len(traces))]

    def run(job: tuple[str, int, int]) -> float:
        name, size, place = job
        return in_own_thread(partial(saved_s, traces[place], size, STRATEGIES[name], cost, links))

    saved = dict(zip(jobs, run_all(run, jobs, processes, done), strict=True))
    return [
        _result(name, size, len(traces), saved) for size in sizes for name in STRATEGIES if name != NOTHING
    ]


def _result(name: str, size: int, seeds: int, saved: dict[tuple[str, int, int], float]) -> HintsResult:
    ratio = ratio_interval([(saved[name, size, at], saved[NOTHING, size, at]) for at in range(seeds)])
    return HintsResult(name, size, ratio.mean, ratio.low, ratio.high, seeds)


def saved_s(trace: Trace, size: int, strategy: HintStrategy, cost: CostModel, links: Links) -> float:
    """Return the seconds that a pool saves under `reuse` and these hints."""
    policy = make_reuse(size, trace, cost)
    pool, limits = PolicyPool(policy), _HintLimits(policy, size)
    ledger = Ledger(trace, replace(cost, block_tokens=trace.block_tokens), links)
    hinted = zip(trace.requests, session_hints(trace), _next_s(trace), strict=True)
    for request, hint, next_s in hinted:
        now_s, chain = request.arrival_s, request.blocks
        limits.expire(now_s)
        pool.loads(now_s, ledger.stores.waits_s(now_s), links)
        ledger.add(request, [pool.access(block, now_s, depth, chain) for depth, block in enumerate(chain)])
        limits.apply(strategy(request, hint, next_s), now_s)
    return sum(ledger.saved_s)


def _next_s(trace: Trace) -> Iterator[float | None]:
    """Yield for each request the seconds until its session or sub-agent asks again; None if it does not."""
    upcoming: dict[tuple[int, int], float] = {}
    found: list[float | None] = []
    for request in reversed(trace.requests):
        place = request.place
        stream = (place.session, place.stream) if place is not None else (-1, -1)
        after_s = upcoming.get(stream)
        found.append(None if after_s is None else after_s - request.arrival_s)
        upcoming[stream] = request.arrival_s
    return reversed(found)


class _HintLimits:
    """Limits and expiry of hints, as in a live pool."""

    def __init__(self, policy: Policy, size: int) -> None:
        self._policy, self._retained = policy, RetainedBlocks(size)

    def apply(self, hints: NodeHints, now_s: float) -> None:
        for block in hints.demoted:
            if self._retained.release(_key(block)):
                self._policy.handle(Unpin(block, now_s))
            self._policy.handle(Demoted(block, now_s))
        for block in hints.retained:
            if block in self._policy:
                stays = self._retained.retain(_key(block), 1, now_s + hints.seconds)
                self._policy.handle(Pin(block, now_s) if stays else Unpin(block, now_s))

    def expire(self, now_s: float) -> None:
        for key in self._retained.expired(now_s):
            self._policy.handle(Unpin(int.from_bytes(key[-16:], "big"), now_s))


def _key(block: int) -> bytes:
    return block_id(0, block.to_bytes(16, "big"))


def report(console: Console, results: Sequence[HintsResult], path: Path, about: dict[str, object]) -> None:
    """Print the table and write it as JSON."""
    table = Table(title="saved s with hints / without, over seeds")
    table.add_column("hints")
    for size in dict.fromkeys(one.blocks for one in results):
        table.add_column(f"{size:,}", justify="right")
    for name in dict.fromkeys(one.hints for one in results):
        row = [one for one in results if one.hints == name]
        table.add_row(name, *(f"{one.ratio:.3f} ({one.low:.3f} to {one.high:.3f})" for one in row))
    console.print(table)
    write_json(path, {**about, "hints": [vars(one) for one in results]})
