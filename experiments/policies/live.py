"""Live is replay: the policy hears of a replay what the switch would tell it, as late and as coarsely.

A switch reports a block from `report_from` fetches on and at each power of two (`p4/include/sketch.p4`),
which waits in the controller for its batch; hits come as counts at each reading of the counters; a block
enters when its decision is carried out and is filled by its next fetch, or at once if the controller fetches
it. Blocks that are computed and written for the first time are not reported at all, unless `tells_writes`."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from controller.hit_meter import MIN_PERIOD_S
from controller.policies import Admit, Decision, Evict, Hits, HomeLoad, Miss, Policy
from experiments.policies.stores import STORES
from workload.keys import home_number

DIGEST_S = 0.1
"""From a report in the switch to the entry in its table: the digest's timeout and a batch of writes."""


@dataclass(frozen=True)
class Telling:
    """What the policy is told, and when it is obeyed."""

    name: str
    report_from: int = 1
    tells_writes: bool = False
    fill_now: bool = False
    lost: float = 0.0
    """Share of reports that get lost."""


TELLINGS = (
    Telling("as in make run: reported from 1, filled on the way"),
    *(Telling(f"reported from {count}", report_from=count) for count in (2, 4, 8)),
    Telling("from 1, filled at once", fill_now=True),
    Telling("from 1, writes reported, too", tells_writes=True),
    Telling("both: writes reported, filled at once", fill_now=True, tells_writes=True),
    Telling("both, a hundredth lost", fill_now=True, tells_writes=True, lost=0.01),
    Telling("both, a tenth lost", fill_now=True, tells_writes=True, lost=0.1),
)


class LivePool:
    """A pool whose policy is told what a switch tells. Takes the place of PolicyPool."""

    def __init__(self, policy: Policy, telling: Telling, seed: int = 1) -> None:
        self.admissions = 0
        self.reports = 0
        """Digests that the switch sent."""
        self._policy, self._telling = policy, telling
        self._chooser = Random(seed)
        self._filled: set[int] = set()
        self._installed: set[int] = set()
        """Blocks with an entry and no value yet."""
        self._stored: set[int] = set()
        self._fetches: Counter[int] = Counter()
        self._told: Counter[int] = Counter()
        self._reports: deque[tuple[float, Miss]] = deque()
        self._hits: Counter[int] = Counter()
        self._read_at_s = 0.0

    def loads(self, now_s: float, waits_s: Sequence[float]) -> None:
        """A request is about to come: first what is due by then happens."""
        for home, wait_s in enumerate(waits_s):
            self._policy.home_load(HomeLoad(home, now_s, wait_s))
        while self._reports and self._reports[0][0] <= now_s:
            _, miss = self._reports.popleft()
            if miss.key not in self._policy:
                self._obey(self._policy.handle(miss))
        if now_s >= self._read_at_s:
            self._read_at_s = now_s + MIN_PERIOD_S
            hits, self._hits = self._hits, Counter()
            for block, times in hits.items():
                self._obey(self._policy.handle(Hits(block, now_s, times)))

    def asked(self, block: int, now_s: float, depth: int, chain: Sequence[int]) -> bool:
        """Ask for the block at `depth` of a chain; whether it was a hit."""
        if block in self._filled:
            self._hits[block] += 1
            return True
        if block in self._installed:
            self._installed.discard(block)
            self._filled.add(block)
        if block in self._stored or self._telling.tells_writes:
            self._count(block, now_s, depth, chain)
        self._stored.add(block)
        return False

    def _count(self, block: int, now_s: float, depth: int, chain: Sequence[int]) -> None:
        count = self._fetches[block] = self._fetches[block] + 1
        report_from = self._telling.report_from
        if count != report_from and (count < report_from or count & (count - 1)):
            return
        self.reports += 1
        if self._telling.lost and self._chooser.random() < self._telling.lost:
            return
        times, self._told[block] = count - self._told[block], count
        parent = chain[depth - 1] if depth else None
        home = home_number(block, STORES)
        miss = Miss(block, now_s, depth, len(chain), parent, times, home)
        self._reports.append((now_s + DIGEST_S, miss))

    def _obey(self, decisions: Sequence[Decision]) -> None:
        for decision in decisions:
            block = decision.key
            assert isinstance(block, int)
            if isinstance(decision, Admit):
                self.admissions += 1
                (self._filled if self._telling.fill_now else self._installed).add(block)
            elif isinstance(decision, Evict):
                self._filled.discard(block)
                self._installed.discard(block)
                self._hits.pop(block, None)
