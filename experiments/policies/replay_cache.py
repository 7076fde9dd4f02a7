"""Outcomes of replays, stored in a file for each trace.

A comparison that takes hours continues where it stopped. Baselines are not replayed again
when the policy changes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import controller.policies
import workload
from commands.own_thread import in_own_thread
from controller.policies.reuse.reuse_parts import Tuning
from experiments.policies.pools import PolicyPool, make_pool, make_reuse
from experiments.policies.replay import Prices, play
from experiments.policies.stores import DEFAULT_LINKS, Links
from workload.cost import CostModel
from workload.generate import generate
from workload.trace import MOONCAKE, Trace

PARTS = 20
"""Number of parts of a trace, each with as many requests; their spread gives the interval
of a single trace."""


@dataclass(frozen=True)
class Member:
    """One trace of a family, made when it is needed."""

    source: str
    """Name of what is left out together: all generated shapes, or one recording."""
    family: str
    name: str
    identity: str
    """Digest that changes with the content of the trace."""
    make: Callable[[], Trace]


@dataclass(frozen=True)
class Replayed:
    """Outcome of a contender on a trace at one size."""

    saved_s: tuple[float, ...]
    """Seconds saved in each of PARTS."""
    block_hit: float

    @property
    def total_s(self) -> float:
        """Return the seconds saved in all parts."""
        return sum(self.saved_s)


Contender = str | Tuning
"""A baseline or Belady by name, or the constants of the policy."""
Outcomes = dict[tuple[int, str], Replayed]
"""Outcomes by pool size and label of the contender."""


GENERATED = "generated"
"""Source of all generated shapes."""


def generated(shape: str, seed: int, requests: int, block_tokens: int = MOONCAKE.block_tokens) -> Member:
    """Return the member that generates a trace from `shape` and `seed`."""
    size = "" if block_tokens == MOONCAKE.block_tokens else f"-{block_tokens}-tokens"
    name = f"{shape}-{seed}-{requests}{size}"
    make = partial(generate, shape, seed, requests, block_tokens=block_tokens)
    return Member(GENERATED, shape, name, f"{_sources(workload)}{size}", make)


def recorded(source: str, number: int, trace: Trace) -> Member:
    """Return the member of a trace that was read."""
    requests = [(request.arrival_s, request.blocks) for request in trace.requests]
    content = repr((trace.block_tokens, requests)).encode()
    identity = sha256(content).hexdigest()[:16]
    return Member(source, source, f"{source}-{number}", identity, lambda: trace)


def label(contender: Contender) -> str:
    """Return the name under which outcomes are stored; that of the policy changes with its sources."""
    return contender if isinstance(contender, str) else f"reuse {contender} {_sources(controller.policies)}"


def measure(
    member: Member,
    sizes: Sequence[int],
    contenders: Iterable[Contender],
    cost: CostModel,
    folder: Path,
    links: Links = DEFAULT_LINKS,
) -> Outcomes:
    """Return the outcomes of all contenders at all sizes; replay and store those that
    `folder` does not have."""
    path = folder / f"{member.name}.jsonl"
    priced = repr(cost) if links == DEFAULT_LINKS else repr((cost, links))
    about = {"trace": member.identity, "cost": sha256(priced.encode()).hexdigest()[:16]}
    outcomes = _read(path, about)
    todo = [(size, one) for one in contenders for size in sizes if (size, label(one)) not in outcomes]
    if not todo:
        return outcomes
    folder.mkdir(parents=True, exist_ok=True)
    replays = _Replays(member, cost, links)
    with path.open("a") as lines:
        lines.write("\n")  # ends the line that an interrupted run left incomplete
        for size, contender in todo:
            outcomes[size, label(contender)] = found = replays.outcome(contender, size)
            row = {"blocks": size, "contender": label(contender), "saved_s": found.saved_s}
            lines.write(json.dumps({**about, **row, "block_hit": found.block_hit}) + "\n")
            lines.flush()
    return outcomes


def _read(path: Path, about: dict[str, str]) -> Outcomes:
    """Return the stored outcomes of this trace and these costs; lines that are no valid JSON are left out."""
    outcomes: Outcomes = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if about.items() <= row.items():
            outcomes[row["blocks"], row["contender"]] = Replayed(tuple(row["saved_s"]), row["block_hit"])
    return outcomes


class _Replays:
    """Replays of one trace, which share what each of them needs."""

    def __init__(self, member: Member, cost: CostModel, links: Links) -> None:
        self._trace, self._links = member.make(), links
        self._cost = replace(cost, block_tokens=self._trace.block_tokens)

    def outcome(self, contender: Contender, size: int) -> Replayed:
        """Return the outcome of a contender in a pool of `size` blocks that begins empty."""
        if isinstance(contender, str):
            return in_own_thread(partial(self._of_baseline, contender, size))
        return self._of_reuse(size, contender)

    @cached_property
    def _worths_s(self) -> list[list[float]]:
        """Return for each request the seconds that a prefix hit of each of its blocks saves."""
        prices = Prices(self._trace, self._cost, self._links)
        worths_s = []
        for request in self._trace.requests:
            worths_s.append(prices.of(request, len(request.blocks)))
            prices.add(request)
        return worths_s

    def _of_baseline(self, name: str, size: int) -> Replayed:
        """Replay a policy that does not ask for loads, so that storage nodes' queues need not be followed."""
        pool = make_pool(name, size, self._trace, self._cost)
        saved_s, hits = [], 0
        for request, worth_s in zip(self._trace.requests, self._worths_s, strict=True):
            now_s, chain = request.arrival_s, request.blocks
            had = [pool.access(block, now_s, depth, chain) for depth, block in enumerate(chain)]
            hits += sum(had)
            saved_s.append(sum(worth_s[: had.index(False)] if False in had else worth_s))
        return self._outcome(saved_s, hits)

    def _of_reuse(self, size: int, tuning: Tuning) -> Replayed:
        policy = make_reuse(size, self._trace, self._cost, tuning=tuning)
        ledger = play(self._trace, PolicyPool(policy), self._cost, self._links)
        return self._outcome(ledger.saved_s, ledger.hits)

    def _outcome(self, saved_s: Sequence[float], hits: int) -> Replayed:
        edges = [len(saved_s) * part // PARTS for part in range(PARTS + 1)]
        parts = (sum(saved_s[begin:end]) for begin, end in pairwise(edges))
        return Replayed(tuple(parts), hits / self._trace.accesses)


@cache
def _sources(package: ModuleType) -> str:
    """Return a digest of all sources of a package."""
    folder = Path(str(package.__file__)).parent
    digest = sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".py", ".c", ".h", ".npz"):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
