"""Cross-validation: constants are chosen on all sources of traces but one, and measured on that one.

Each recording is a source, and all generated shapes together are one: usual ones, mixes of random
services and adversarial ones. A shape, or a folder of recorded sessions, is drawn with several seeds; a
recorded trace is replayed once. The best baseline of each family and size is chosen afterwards, by the
seconds that it saved there, which no online policy could know. Belady, which knows all later requests,
shows how much could be saved.

Outcomes are stored in `cross/` (`replay_cache.py`), so that an interrupted run continues where it stopped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from commands.intervals import Interval, ratio_interval
from commands.parallel import run_all
from controller.policies.reuse.reuse_parts import Tuning
from experiments.policies.pools import BELADY, CACHES, OWN
from experiments.policies.replay_cache import Contender, Member, Outcomes, Replayed, label, measure
from experiments.policies.stores import DEFAULT_LINKS, Links
from workload.cost import CostModel

CANDIDATES = (
    Tuning(),
    Tuning(fade_pools=16.0),
    Tuning(fade_pools=32.0),
)
BASELINES = tuple(name for name in (*OWN, *CACHES) if name not in ("reuse", BELADY))

ORACLES = (BELADY,)
"""Contenders that know the future of a trace."""


@dataclass(frozen=True)
class HeldOut:
    """Result of the policy on a family, with constants that were chosen on the other sources."""

    source: str
    family: str
    blocks: int
    candidate: int
    saved: float
    """Seconds saved on all traces of the family, over those of the baseline that saved most in total."""
    low: float
    """Lower end of the 95 % interval of `saved`: over traces, or over the parts of a single trace."""
    high: float
    against: str
    """Name of that baseline."""
    worst: float
    """Least ratio on one trace of the seconds saved to those of the best baseline there."""
    shipped: float
    """The ratio `saved` with the default constants."""
    hits: float
    """Mean ratio of block hits to those of the baseline with the most hits."""
    belady: float
    """The ratio `saved` of Belady."""


def cross(
    members: Sequence[Member],
    sizes: Sequence[int],
    cost: CostModel,
    processes: int,
    done: Callable[[], None],
    folder: Path,
    links: Links = DEFAULT_LINKS,
) -> list[HeldOut]:
    """Replay what `folder` does not have, then leave each source out in turn; return a row a family and size.

    `done` is called after each member.
    """

    def run(number: int) -> Outcomes:
        return measure(members[number], sizes, (*BASELINES, *CANDIDATES, *ORACLES), cost, folder, links)

    for candidate in CANDIDATES:
        label(candidate)  # digests the policy's sources before they can change during the run
    measured = dict(zip(members, run_all(run, range(len(members)), processes, done), strict=True))
    families = list(dict.fromkeys((member.source, member.family) for member in members))
    chosen = {source: _choose(source, sizes, measured) for source, _ in families}
    return [
        _held_out(source, family, size, chosen[source], measured)
        for source, family in families
        for size in sizes
    ]


def _choose(source: str, sizes: Sequence[int], measured: dict[Member, Outcomes]) -> int:
    """Return the index of the candidate that saves most in the geometric mean over all other sources."""
    outside: dict[str, list[Outcomes]] = {}
    for member, outcomes in measured.items():
        if member.source != source:
            outside.setdefault(member.source, []).append(outcomes)

    def score(candidate: int) -> float:
        tuning = CANDIDATES[candidate]
        means = (
            fmean(_ratio(outcomes, size, tuning, _total_s) for outcomes in of_one for size in sizes)
            for of_one in outside.values()
        )
        return sum(math.log(max(mean, 1e-6)) for mean in means)

    return max(range(len(CANDIDATES)), key=score)


def _held_out(source: str, family: str, size: int, chosen: int, measured: dict[Member, Outcomes]) -> HeldOut:
    inside = [
        outcomes
        for member, outcomes in measured.items()
        if (member.source, member.family) == (source, family)
    ]
    tuning = CANDIDATES[chosen]
    against = max(BASELINES, key=lambda name: sum(outcomes[size, name].total_s for outcomes in inside))
    saved = _in_sum(inside, size, tuning, against)
    return HeldOut(
        source=source,
        family=family,
        blocks=size,
        candidate=chosen,
        saved=saved.mean,
        low=saved.low,
        high=saved.high,
        against=against,
        worst=min(_ratio(outcomes, size, tuning, _total_s) for outcomes in inside),
        shipped=_in_sum(inside, size, CANDIDATES[0], against).mean,
        hits=fmean(_ratio(outcomes, size, tuning, _block_hit) for outcomes in inside),
        belady=_in_sum(inside, size, BELADY, against).mean,
    )


def _total_s(outcome: Replayed) -> float:
    return outcome.total_s


def _block_hit(outcome: Replayed) -> float:
    return outcome.block_hit


def _ratio(
    outcomes: Outcomes, size: int, contender: Contender, measure: Callable[[Replayed], float]
) -> float:
    """Return the contender's measure over the best baseline's; 1 if the best baseline has 0."""
    best = max(measure(outcomes[size, name]) for name in BASELINES)
    ours = measure(outcomes[size, label(contender)])
    return ours / best if best > 0 else 1.0


def _in_sum(inside: Sequence[Outcomes], size: int, contender: Contender, against: str) -> Interval:
    """Return the ratio of the seconds saved on all traces to those of the baseline
    `against`, with its interval.

    The interval is that of a ratio of sums over pairs. It does not account for the choice of the baseline.
    """
    ours, best = (_samples(inside, size, label(name)) for name in (contender, against))
    return ratio_interval(list(zip(ours, best, strict=True)))


def _samples(inside: Sequence[Outcomes], size: int, name: str) -> Sequence[float]:
    """Return the seconds saved on each trace, or in each part of a single one."""
    replays = [outcomes[size, name] for outcomes in inside]
    return replays[0].saved_s if len(replays) == 1 else [one.total_s for one in replays]
