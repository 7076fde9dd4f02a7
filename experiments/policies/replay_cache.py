"""What each contender saved on a trace, kept in a file for each trace: a comparison that takes hours goes on
where it ended, and baselines are replayed once, whatever becomes of the policy."""

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
from experiments.policies.stores import USUAL_LINKS, Links
from workload.cost import CostModel
from workload.generate import generate
from workload.trace import MOONCAKE, Trace

PARTS = 20
"""Parts of a trace, each with as many requests, of which what was saved is noted: their spread says how sure
a figure of one trace is."""


@dataclass(frozen=True)
class Member:
    """One trace of a family; made when it is needed."""

    source: str
    """What is left out together: all generated shapes, or one recording."""
    family: str
    name: str
    identity: str
    """Changes when what is in the trace does."""
    make: Callable[[], Trace]


@dataclass(frozen=True)
class Replayed:
    """What a contender did on a trace at one size."""

    saved_s: tuple[float, ...]
    """In each of PARTS."""
    block_hit: float

    @property
    def total_s(self) -> float:
        """Return what was saved in all."""
        return sum(self.saved_s)


Contender = str | Tuning
"""A baseline or Belady by name, or the policy, with these constants."""
Kept = dict[tuple[int, str], Replayed]
"""By size and label of the contender."""


GENERATED = "generated"
"""The source of all shapes."""


def generated(shape: str, seed: int, requests: int, block_tokens: int = MOONCAKE.block_tokens) -> Member:
    """Return a generated trace."""
    size = "" if block_tokens == MOONCAKE.block_tokens else f"-{block_tokens}-tokens"
    name = f"{shape}-{seed}-{requests}{size}"
    make = partial(generate, shape, seed, requests, block_tokens=block_tokens)
    return Member(GENERATED, shape, name, f"{_sources(workload)}{size}", make)


def recorded(source: str, number: int, trace: Trace) -> Member:
    """Return a trace that is there already."""
    requests = [(request.arrival_s, request.blocks) for request in trace.requests]
    content = repr((trace.block_tokens, requests)).encode()
    identity = sha256(content).hexdigest()[:16]
    return Member(source, source, f"{source}-{number}", identity, lambda: trace)


def label(contender: Contender) -> str:
    """Return what outcomes are kept under: the policy's depend on its sources."""
    return contender if isinstance(contender, str) else f"reuse {contender} {_sources(controller.policies)}"


def measure(
    member: Member,
    sizes: Sequence[int],
    contenders: Iterable[Contender],
    cost: CostModel,
    folder: Path,
    links: Links = USUAL_LINKS,
) -> Kept:
    """Return what all contenders did, replaying what is not in the folder yet."""
    path = folder / f"{member.name}.jsonl"
    priced = repr(cost) if links == USUAL_LINKS else repr((cost, links))
    about = {"trace": member.identity, "cost": sha256(priced.encode()).hexdigest()[:16]}
    kept = _read(path, about)
    todo = [(size, one) for one in contenders for size in sizes if (size, label(one)) not in kept]
    if not todo:
        return kept
    folder.mkdir(parents=True, exist_ok=True)
    replays = _Replays(member, cost, links)
    with path.open("a") as lines:
        lines.write("\n")  # ends a line that was being written when it ended
        for size, contender in todo:
            kept[size, label(contender)] = found = replays.outcome(contender, size)
            row = {"blocks": size, "contender": label(contender), "saved_s": found.saved_s}
            lines.write(json.dumps({**about, **row, "block_hit": found.block_hit}) + "\n")
            lines.flush()
    return kept


def _read(path: Path, about: dict[str, str]) -> Kept:
    """What a file has of the very trace and costs; a line that was being written when it ended is none."""
    kept: Kept = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if about.items() <= row.items():
            kept[row["blocks"], row["contender"]] = Replayed(tuple(row["saved_s"]), row["block_hit"])
    return kept


class _Replays:
    """Of one trace; what several of them need is made once."""

    def __init__(self, member: Member, cost: CostModel, links: Links) -> None:
        self._trace, self._links = member.make(), links
        self._cost = replace(cost, block_tokens=self._trace.block_tokens)

    def outcome(self, contender: Contender, size: int) -> Replayed:
        """What a contender does in a pool of this size, from empty."""
        if isinstance(contender, str):
            return in_own_thread(partial(self._of_baseline, contender, size))
        return self._of_reuse(size, contender)

    @cached_property
    def _worths_s(self) -> list[list[float]]:
        """Of each request's blocks, what a prefix hit saves: the same whoever has it."""
        prices = Prices(self._trace, self._cost, self._links)
        worths_s = []
        for request in self._trace.requests:
            worths_s.append(prices.of(request, len(request.blocks)))
            prices.add(request)
        return worths_s

    def _of_baseline(self, name: str, size: int) -> Replayed:
        """A replay of a policy that does not ask for loads: no home needs to be followed."""
        pool = make_pool(name, size, self._trace, self._cost)
        saved_s, hits = [], 0
        for request, worth_s in zip(self._trace.requests, self._worths_s, strict=True):
            now_s, chain = request.arrival_s, request.blocks
            had = [pool.asked(block, now_s, depth, chain) for depth, block in enumerate(chain)]
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
    """A digest of all sources of a package."""
    folder = Path(str(package.__file__)).parent
    digest = sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".py", ".c", ".h", ".npz"):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
