"""What else could be bought for the price of a pool, and the words that a comparison may use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from experiments.study.benefit import Benefit, benefit
from experiments.study.claims import Claim, Fact, joined
from experiments.study.point import Point, label
from experiments.study.sample import MEAN, STEADY, Sample, below, percent_change, ratio, seconds
from experiments.study.systems import BOUND, CENTRAL, POOLS, WITHOUT
from experiments.study.tails import Tail, tails_from

Done = Sequence[tuple[Point, Sample]]


@dataclass(frozen=True, slots=True)
class Purchase:
    """A system that could be bought at one fan-in."""

    system: str
    stores: int
    sample: Sample
    variant: str = ""

    @property
    def label(self) -> str:
        """As a reader knows it."""
        return label(self.system, self.stores, self.variant)

    @property
    def pooled(self) -> bool:
        """Whether it is one with a pool in the switch."""
        return self.system in POOLS

    def told(self, path: Sequence[str] = MEAN) -> str:
        """Label, time, its p99 and cost."""
        tail = seconds(self.sample.interval(path[0], "p99"))
        mean = seconds(self.sample.interval(*path))
        return f"{self.label} {mean} (p99 {tail}) for {self.sample.cost:.2f} $/h"


def purchases(done: Done, nodes: int) -> list[Purchase]:
    """All at one fan-in."""
    return [
        Purchase(point.system, point.setting.stores, sample, point.variant)
        for point, sample in done
        if point.sweep == "rivals" and point.value == nodes and point.system != BOUND
    ]


def fan_ins(done: Done) -> list[int]:
    """Those at which rivals were simulated."""
    return sorted({point.value for point, _ in done if point.sweep == "rivals"})


def no_dearer(pool: Purchase, bought: Sequence[Purchase], path: Sequence[str] = MEAN) -> list[Purchase]:
    """Systems without a pool that cost no more than this one, the fastest first."""
    found = [one for one in bought if not one.pooled and one.sample.cost <= pool.sample.cost]
    return sorted(found, key=lambda rival: rival.sample.mean(*path))


def beating(pool: Purchase, bought: Sequence[Purchase], path: Sequence[str] = MEAN) -> list[Purchase]:
    """Those of them that are surely faster."""
    return [one for one in no_dearer(pool, bought, path) if below(one.sample, pool.sample, *path)]


def led(pool: Purchase, bought: Sequence[Purchase], path: Sequence[str] = MEAN) -> Purchase | None:
    """The fastest of them, if the pool is surely faster than each."""
    rivals = no_dearer(pool, bought, path)
    surely = all(below(pool.sample, rival.sample, *path) for rival in rivals)
    return rivals[0] if rivals and surely else None


class Verdict(Enum):
    """What may be said of a pool at one place; PAYS is never said where something cheaper is faster."""

    PAYS = "pays"
    BEATEN = "is beaten by what costs no more"
    UNDECIDED = "is undecided"
    LOSES = "costs more than it earns"


def verdict(switch: Sample, stores: Sample, others: Mapping[str, Sample]) -> tuple[Verdict, list[str]]:
    """Against the same storage nodes without a pool, and against all `others` that cost no more.

    The second value names those others whose the second half is faster, the fastest first.
    """
    found: Benefit = benefit(switch, stores)
    if not found.pays:
        return (Verdict.LOSES if found.loses else Verdict.UNDECIDED), []
    bought = [
        Purchase(name, 0, sample) for name, sample in others.items() if name not in ("stores", "switch")
    ]
    better = beating(Purchase("switch", 0, switch), bought, STEADY)
    return (Verdict.BEATEN if better else Verdict.PAYS), [rival.label for rival in better]


STEADY_MARK = " (second half)"
"""Behind the names of values that a plot shows of the second half."""


def rivals_claim(bought: Sequence[Purchase]) -> Claim:
    """Which pools nothing beats at their price: against everything, and against storage nodes alone."""
    central = [one for one in bought if one.system in CENTRAL]
    claims = []
    for path, when in ((MEAN, "Cold start included"), (STEADY, "In the second half")):
        everything, alone = _fan_in(bought, path), _fan_in(central, path)
        claims += [
            Claim(f"{when}, against everything: {everything.text}", everything.facts),
            Claim(f"{when}, against storage nodes and recomputing alone: {alone.text}", alone.facts),
        ]
    return joined([*claims, *_tails(bought)])


def _tails(bought: Sequence[Purchase]) -> list[Claim]:
    """Whose p99 differs, and how far the others' moves: from recomputing's, and by what a switch does."""
    found = {(one.system, one.stores, one.variant): one for one in bought}
    nothing = next((one for one in bought if one.system == "recompute" and not one.variant), None)
    over_nothing = {
        one.label: _tail(one, nothing) for one in bought if nothing is not None and one is not nothing
    }
    over_without = {
        one.label: _tail(one, other)
        for one in bought
        if one.pooled and (other := found.get((WITHOUT[one.system], one.stores, one.variant)))
    }
    told = []
    for who, what, mine in (
        ("p99", "that of recomputing", over_nothing),
        ("A pool's p99", "that of the same without it", over_without),
    ):
        if mine:
            claim = tails_from(what, mine)
            told.append(Claim(f"{who} is {claim.text}.", claim.facts))
    return told


def _tail(one: Purchase, other: Purchase) -> Tail:
    return Tail(one.label, one.sample, other.label, other.sample)


def _fan_in(bought: Sequence[Purchase], path: Sequence[str]) -> Claim:
    """Pools by what is certain, and the closest contest of the fastest of them."""
    pools = [one for one in bought if one.pooled]
    mark = STEADY_MARK if path == STEADY else ""
    best, beaten, facts = [], [], []
    for pool in pools:
        if beating(pool, bought, path):
            beaten.append(pool)
        elif led(pool, bought, path):
            best.append(pool)
            rivals = no_dearer(pool, bought, path)
            facts += [Fact(pool.label + mark, rival.label + mark) for rival in rivals]
    text = f"of {len(pools)} purchases with a pool {len(beaten)} are surely beaten by what costs no more, "
    if not best:
        text += "none is surely faster than all of it"
    else:
        leads = "; ".join(f"{one.told(path)}, {_lead(one, bought, path)}" for one in best)
        text += f"{len(best)} surely faster than all of it ({leads})"
    fastest = min(pools, key=lambda one: one.sample.mean(*path))
    rivals = beating(fastest, bought, path)
    if rivals:
        change = ratio(rivals[0].sample, fastest.sample, *path)
        text += (
            f"; {rivals[0].told(path)} beats the fastest with a pool, {fastest.told(path)} "
            f"(seed by seed {percent_change(change)})"
        )
        facts.append(Fact(rivals[0].label + mark, fastest.label + mark))
    return Claim(text + ".", tuple(facts))


def _lead(pool: Purchase, bought: Sequence[Purchase], path: Sequence[str]) -> str:
    """Over the fastest that costs no more."""
    rival, *_ = no_dearer(pool, bought, path)
    return f"{percent_change(ratio(pool.sample, rival.sample, *path))} than {rival.label}"
