"""Proof by leaving out: constants chosen on all sources of traces but one, measured on that one.

Sources are the recordings that are given, each whole, and the generated shapes, all of them together: usual
ones, mixes of drawn services, adversarial ones. A shape, or a folder of recorded sessions, is drawn with
several seeds; a recorded trace is one. The best baseline is chosen afterwards for each family and size, by
what it saved there: no online policy could have known it. What there was to be earned is measured beside it,
by Belady, who knows all that comes.

Outcomes are kept in `cross/` (`replay_cache.py`), so a run that was interrupted goes on where it ended."""

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
from experiments.policies.replay_cache import Contender, Kept, Member, Replayed, label, measure
from experiments.policies.stores import USUAL_LINKS, Links
from workload.cost import CostModel

CANDIDATES = (
    Tuning(),
    Tuning(fade_pools=16.0),
    Tuning(fade_pools=32.0),
)
BASELINES = tuple(name for name in (*OWN, *CACHES) if name not in ("reuse", BELADY))

BEYOND = (BELADY,)
"""Who knows of a trace what nobody can."""


@dataclass(frozen=True)
class Held:
    """What the policy did on a family whose source its constants were not chosen on."""

    source: str
    family: str
    blocks: int
    candidate: int
    saved: float
    """Seconds saved on all traces of the family, to those of the baseline that saved most of them in sum."""
    low: float
    """Lower end of its 95 % interval: over traces, or over parts of a single one."""
    high: float
    against: str
    """That baseline."""
    worst: float
    """Least ratio of seconds saved on one trace to those of the baseline that was best there."""
    shipped: float
    """As `saved`, with the constants as they are, whatever was chosen."""
    hits: float
    """Mean ratio of block hits to those of the baseline that hits most."""
    belady: float
    """As `saved`, of Belady."""


def cross(
    members: Sequence[Member],
    sizes: Sequence[int],
    cost: CostModel,
    processes: int,
    done: Callable[[], None],
    folder: Path,
    links: Links = USUAL_LINKS,
) -> list[Held]:
    """Replay what the folder does not have, then leave each source out in turn."""

    def run(number: int) -> Kept:
        return measure(members[number], sizes, (*BASELINES, *CANDIDATES, *BEYOND), cost, folder, links)

    for candidate in CANDIDATES:
        label(candidate)  # of the sources as they are now, whatever becomes of them meanwhile
    measured = dict(zip(members, run_all(run, range(len(members)), processes, done), strict=True))
    families = list(dict.fromkeys((member.source, member.family) for member in members))
    chosen = {source: _choose(source, sizes, measured) for source, _ in families}
    return [
        _held(source, family, size, chosen[source], measured) for source, family in families for size in sizes
    ]


def _choose(source: str, sizes: Sequence[int], measured: dict[Member, Kept]) -> int:
    """Return the number of the constants that save most in the geometric mean over all other sources."""
    outside: dict[str, list[Kept]] = {}
    for member, kept in measured.items():
        if member.source != source:
            outside.setdefault(member.source, []).append(kept)

    def score(candidate: int) -> float:
        tuning = CANDIDATES[candidate]
        means = (
            fmean(_ratio(kept, size, tuning, _total_s) for kept in of_one for size in sizes)
            for of_one in outside.values()
        )
        return sum(math.log(max(mean, 1e-6)) for mean in means)

    return max(range(len(CANDIDATES)), key=score)


def _held(source: str, family: str, size: int, chosen: int, measured: dict[Member, Kept]) -> Held:
    inside = [kept for member, kept in measured.items() if (member.source, member.family) == (source, family)]
    tuning = CANDIDATES[chosen]
    against = max(BASELINES, key=lambda name: sum(kept[size, name].total_s for kept in inside))
    saved = _in_sum(inside, size, tuning, against)
    return Held(
        source=source,
        family=family,
        blocks=size,
        candidate=chosen,
        saved=saved.mean,
        low=saved.low,
        high=saved.high,
        against=against,
        worst=min(_ratio(kept, size, tuning, _total_s) for kept in inside),
        shipped=_in_sum(inside, size, CANDIDATES[0], against).mean,
        hits=fmean(_ratio(kept, size, tuning, _block_hit) for kept in inside),
        belady=_in_sum(inside, size, BELADY, against).mean,
    )


def _total_s(outcome: Replayed) -> float:
    return outcome.total_s


def _block_hit(outcome: Replayed) -> float:
    return outcome.block_hit


def _ratio(kept: Kept, size: int, contender: Contender, measure: Callable[[Replayed], float]) -> float:
    """To the best baseline; 1 where that has nothing."""
    best = max(measure(kept[size, name]) for name in BASELINES)
    ours = measure(kept[size, label(contender)])
    return ours / best if best > 0 else 1.0


def _in_sum(inside: Sequence[Kept], size: int, contender: Contender, against: str) -> Interval:
    """Seconds of all traces in sum to those of one baseline. The interval is of a ratio of sums of pairs,
    and does not know that this baseline was chosen afterwards."""
    ours, best = (_samples(inside, size, label(name)) for name in (contender, against))
    return ratio_interval(list(zip(ours, best, strict=True)))


def _samples(inside: Sequence[Kept], size: int, name: str) -> Sequence[float]:
    """What was saved on each trace, or in each part of a single one."""
    outcomes = [kept[size, name] for kept in inside]
    return outcomes[0].saved_s if len(outcomes) == 1 else [one.total_s for one in outcomes]
