"""Proof by leaving out: constants chosen on all families of traces but one, measured on that one.

Families are the generated shapes, mixes of drawn services, the adversarial shapes, and the quarters by time
of a trace, if one is given. Each has several members (seeds, or quarters), so a figure has an interval. The
best baseline of each member and size is chosen afterwards, by what it saved there: no online policy could
have known it. What there was to be earned is measured beside it, by Belady, who knows all that comes.

Outcomes are kept in `cross/` (`replay_cache.py`), so a run that was interrupted goes on where it ended."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from commands.intervals import Interval, mean_interval, ratio_interval
from commands.parallel import run_all
from controller.policies.reuse.reuse_parts import Tuning
from experiments.policies.pools import BELADY, CACHES, OWN
from experiments.policies.replay_cache import (
    EARLY,
    Contender,
    Kept,
    Member,
    Outcome,
    label,
    measure,
    of_file,
)
from experiments.policies.stores import USUAL_LINKS, Links
from workload.cost import CostModel
from workload.trace import Trace

QUARTERS = 4
CANDIDATES = (
    Tuning(),
    Tuning(fade_pools=32.0),
    Tuning(prior_reuses=4.0, margin=0.1),
)
BASELINES = tuple(name for name in (*OWN, *CACHES) if name not in ("reuse", BELADY))

BEYOND = (BELADY,)
"""Who knows of a trace what nobody can."""


@dataclass(frozen=True)
class Held:
    """What the policy did on a family that its constants were not chosen on, against the best baseline."""

    family: str
    blocks: int
    candidate: int
    saved: float
    """Mean ratio of the seconds saved to the best baseline's."""
    saved_interval: float
    """Half of its 95 % interval."""
    in_sum: float
    """Seconds of all members in sum, to those of the baseline that saved most in sum: one for all of them."""
    in_sum_interval: float
    """Half of its 95 % interval."""
    against: str
    """That baseline."""
    hits: float
    """Mean ratio of the block hits to those of the baseline that hits most."""
    worst: float
    """Least ratio of seconds saved among the members."""
    shipped: float
    """Mean ratio of seconds saved with the constants as they are, whatever was chosen."""
    early: tuple[float, ...]
    """The same after the first of EARLY accesses: seconds of all members in sum, to those of the baseline
    that saved most by then."""
    early_interval: tuple[float, ...]
    """Half of their 95 % intervals."""
    belady: float
    """Mean ratio of the seconds that Belady saves."""
    best: str
    """The baselines that were best."""


def quarters(trace: Trace) -> list[Trace]:
    """A trace in parts of equal time, each from an empty pool."""
    width_s = trace.duration_s / QUARTERS
    parts = []
    for number in range(QUARTERS):
        begin_s = number * width_s
        end_s = math.inf if number == QUARTERS - 1 else begin_s + width_s
        requests = tuple(
            replace(request, arrival_s=request.arrival_s - begin_s)
            for request in trace.requests
            if begin_s <= request.arrival_s < end_s
        )
        if requests:
            parts.append(replace(trace, name=f"{trace.name} quarter {number + 1}", requests=requests))
    return parts


def quarters_of(trace: Trace | None) -> list[Member]:
    """A trace in quarters, if there is one."""
    parts = quarters(trace) if trace is not None else []
    return [of_file("trace", number, part) for number, part in enumerate(parts, 1)]


def cross(
    members: Sequence[Member],
    sizes: Sequence[int],
    cost: CostModel,
    processes: int,
    done: Callable[[], None],
    folder: Path,
    links: Links = USUAL_LINKS,
) -> list[Held]:
    """Replay what the folder does not have, then leave each family out in turn."""

    def run(number: int) -> Kept:
        return measure(members[number], sizes, (*BASELINES, *CANDIDATES, *BEYOND), cost, folder, links)

    measured = run_all(run, range(len(members)), processes, done)
    families = list(dict.fromkeys(member.family for member in members))
    return [held for family in families for held in _leave_out(family, members, sizes, measured)]


def _leave_out(
    family: str, members: Sequence[Member], sizes: Sequence[int], measured: Sequence[Kept]
) -> Iterable[Held]:
    inside = [kept for kept, member in zip(measured, members, strict=True) if member.family == family]
    outside = [kept for kept, member in zip(measured, members, strict=True) if member.family != family]

    def score(candidate: int) -> float:
        ratios = [_ratio(kept, size, CANDIDATES[candidate], _saved_s) for kept in outside for size in sizes]
        return fmean(math.log(max(ratio, 1e-6)) for ratio in ratios) if ratios else 0.0

    chosen = max(range(len(CANDIDATES)), key=score)
    tuning = CANDIDATES[chosen]
    for size in sizes:
        saved = [_ratio(kept, size, tuning, _saved_s) for kept in inside]
        mean = mean_interval(saved)
        early = [_in_sum(inside, size, 0, place)[0] for place in range(len(EARLY))]
        in_sum, against = _in_sum(inside, size, chosen, -1)
        yield Held(
            family=family,
            blocks=size,
            candidate=chosen,
            saved=mean.mean,
            saved_interval=mean.half,
            in_sum=in_sum.mean,
            in_sum_interval=in_sum.half,
            against=against,
            hits=fmean(_ratio(kept, size, tuning, _block_hit) for kept in inside),
            worst=min(saved),
            shipped=fmean(_ratio(kept, size, CANDIDATES[0], _saved_s) for kept in inside),
            early=tuple(ratio.mean for ratio in early),
            early_interval=tuple(ratio.half for ratio in early),
            belady=fmean(_ratio(kept, size, BELADY, _saved_s) for kept in inside),
            best=", ".join(
                sorted({max(BASELINES, key=lambda b: kept[size, b].saved_s[-1]) for kept in inside})
            ),
        )


def _saved_s(outcome: Outcome) -> float:
    return outcome.saved_s[-1]


def _block_hit(outcome: Outcome) -> float:
    return outcome.block_hit


def _ratio(kept: Kept, size: int, contender: Contender, measure: Callable[[Outcome], float]) -> float:
    """To the best baseline; 1 where that has nothing."""
    best = max(measure(kept[size, name]) for name in BASELINES)
    ours = measure(kept[size, label(contender)])
    return ours / best if best > 0 else 1.0


def _in_sum(inside: Sequence[Kept], size: int, candidate: int, place: int) -> tuple[Interval, str]:
    """Seconds of all members in sum by the first of EARLY accesses, or by all (-1), to the baseline that
    saved most, and its name. The interval is that of a ratio of sums of pairs, and does not know that this
    baseline was chosen afterwards."""

    def saved_s(contender: str) -> list[float]:
        return [kept[size, contender].saved_s[place] for kept in inside]

    name = max(BASELINES, key=lambda name: sum(saved_s(name)))
    ours, best = saved_s(label(CANDIDATES[candidate])), saved_s(name)
    if not any(best):
        return mean_interval([1.0] * len(inside)), name
    return ratio_interval(list(zip(ours, best, strict=True))), name
