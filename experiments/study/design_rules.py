"""The rules by which the designs, the cold start, the hour, the ledger, the tornado and the map are told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isfinite
from statistics import median

from experiments.intervals import Interval, mean_interval
from experiments.study.atlas import Standing, Verdicts
from experiments.study.claims import Claim, Fact, joined, share, told
from experiments.study.ledger import Entry
from experiments.study.played import DESIGNS, Gain
from experiments.study.sample import MEAN, TOLD_SHARE, Sample, below, figure, ratio
from experiments.study.tornado import Bar, swings

UNDECIDED = ", not decided."
LIVE_MARK, SIMULATED_MARK = " (live)", " (simulated)"
"""Behind the names of values that a plot shows of plays on the emulator, and of their simulations."""

Labelled = Mapping[str, Sample]
"""Label -> sample, all of the same place."""


def change_claim(mine: Labelled, what: str, without: str) -> Claim:
    """How much sooner the first token is with one than with another, where that is certain."""
    gain = 1 - ratio(mine[what], mine[without], *MEAN)
    told_apart = abs(gain.mean) >= TOLD_SHARE
    if told_apart and below(mine[what], mine[without], *MEAN):
        return Claim(f"{what}: {share(gain)} sooner than {without}.", (Fact(what, without),))
    if told_apart and below(mine[without], mine[what], *MEAN):
        return Claim(f"{what}: {share(gain)}, that is later than {without}.", (Fact(without, what),))
    return Claim(f"{what}: {share(gain)} against {without}{UNDECIDED}")


def changes_claim(mine: Labelled, pairs: Sequence[tuple[str, str]]) -> Claim:
    """Several, of those that were played; what is not decided comes last."""
    claims = [change_claim(mine, one, other) for one, other in pairs if one in mine and other in mine]
    decided = joined(claim for claim in claims if claim.facts)
    open_ = "; ".join(claim.text.removesuffix(UNDECIDED) for claim in claims if not claim.facts)
    if not open_:
        return decided
    return Claim(
        f"{decided.text} Within their intervals, or under 0.05 %, are: {open_}.".strip(), decided.facts
    )


def recompute_claim(mine: Labelled, recompute: str) -> Claim:
    """What is surely slower than buying nothing."""
    slower = [name for name in mine if name != recompute and below(mine[recompute], mine[name], *MEAN)]
    if not slower:
        return Claim("Nothing is surely slower than recomputing.")
    return Claim(
        f"Recomputing, which costs nothing, is surely faster than {'; '.join(slower)}.",
        tuple(Fact(recompute, name) for name in slower),
    )


def cold_cost(cold: Sample, warm: Sample) -> Interval:
    """Seconds that all requests together wait longer because nodes were cold; the same requests, by seed."""
    return mean_interval(
        [
            (figure(one, MEAN) - figure(other, MEAN)) * one["completed"]
            for one, other in zip(cold.runs, warm.runs, strict=True)
        ]
    )


def cold_claim(costs: Mapping[str, Interval]) -> Claim:
    """The cheapest and the dearest cold start, where they differ beyond their intervals."""
    order = sorted(costs, key=lambda name: costs[name].mean)
    low, high = order[0], order[-1]
    text = (
        f"A cold start costs, once, in waiting of all requests together, from {told(costs[low], 's', 0)} "
        f"({low}) to {told(costs[high], 's', 0)} ({high})."
    )
    if costs[low].high < costs[high].low:
        return Claim(text, (Fact(low, high),))
    return Claim(text + " Their intervals overlap.")


def ledger_claim(entries: Sequence[Entry]) -> Claim:
    """What the last row costs and earns, and whether it is a gain against buying nothing."""
    last = entries[-1]
    earned = "more" if last.saved_dollars > last.extra_dollars else "less"
    text = (
        f"With {last.nodes} nodes and {last.requests:,.0f} requests an hour controllers and switches handle "
        f"{last.digests:,.0f} digests and make {last.updates:,.0f} table updates in {last.writes:,.0f} "
        f"Writes "
        f"an hour, which takes {last.cpu_s:.1f} s of CPU, {last.cpu_s / 3600:.2%} of a core; tables take "
        f"{last.table_mb:.1f} MB. In steady state the pool saves {told(last.saved_s, 's', 0)} of waiting "
        f"an hour "
        f"against the same storage nodes, {earned} than its {last.extra_dollars:.2f} $/h at a node's price"
    )
    if last.against_recompute_s.high < 0:
        text += f"; against recomputing it loses {told(0 - last.against_recompute_s, 's', 0)}"
    return Claim(text + ".")


def live_claim(found: Sequence[Gain]) -> Claim:
    """What each design gained live and simulated, and where the two are surely apart."""
    claims = [_live_gain(gain) for gain in found]
    apart = [gain for gain in found if gain.apart is not None and not gain.apart.low <= 0 <= gain.apart.high]
    if apart:
        names = "; ".join(
            f"{gain.design.label}, by {share(gain.apart)} of the mean" for gain in apart if gain.apart
        )
        claims.append(Claim(f"Live and simulated gains are surely apart (live less simulated): {names}."))
    elif any(gain.apart is not None and isfinite(gain.apart.half) for gain in found):
        claims.append(Claim("No gain is surely apart from the simulated one."))
    return joined(claims)


def _live_gain(gain: Gain) -> Claim:
    against = DESIGNS[gain.design.against].label
    simulated = "not simulated" if gain.simulated is None else f"simulated {share(gain.simulated)}"
    text = f"{gain.design.label}: {share(gain.live)} sooner live than {against}, {simulated}."
    less, more = gain.design.label + LIVE_MARK, against + LIVE_MARK
    if gain.live.low > 0:
        return Claim(text, (Fact(less, more),))
    if gain.live.high < 0:
        return Claim(text.replace("sooner live than", "live, that is later than"), (Fact(more, less),))
    return Claim(text.removesuffix(".") + UNDECIDED)


def tornado_claim(made: Sequence[Bar], rival: str) -> Claim:
    """Which change matters most, and which turn the decision."""
    rows = swings(made, rival)
    base = next(bar for bar in made if bar.rival == rival and bar.change == "as assumed")
    widest, low, high = rows[0]
    ahead = base.net_dollars.mean > 0
    turning = [
        f"{name} {word}"
        for name, halved, doubled in rows
        for word, bar in (("halved", halved), ("doubled", doubled))
        if (bar.net_dollars.mean > 0) != ahead
    ]
    text = (
        "At a node's price for a second of waiting the pool is worth "
        f"{told(base.net_dollars, '$/h', 2)} against {rival}; its mean first token is sooner by "
        f"{share(base.faster)} (below 0: later). Most depends on {widest}: "
        f"{told(low.net_dollars, '$/h', 2)} halved, {told(high.net_dollars, '$/h', 2)} doubled. "
    )
    if turning:
        return Claim(text + f"The decision turns with {'; '.join(turning)}.")
    return Claim(text + "No single halving or doubling turns the decision.")


def map_claim(found: Sequence[Verdicts], steady: Sequence[Verdicts], searched: int) -> Claim:
    """Where a pool is the best purchase, and the bound that says why not elsewhere."""
    text = (
        f"In {len(found)} settings, {searched} of them chosen where a pool came nearest, a "
        "purchase with a pool is, against everything that costs no more, "
        f"{_counts([one.standing for one in found])}; in steady state "
        f"{_counts([one.standing for one in steady])}. Against storage nodes and recomputing alone it is "
        f"{_counts([one.central_standing for one in found])}; in steady state "
        f"{_counts([one.central_standing for one in steady])}."
    )
    best = [one for one in found if one.standing is Standing.BEST]
    if best:
        names = ", ".join(f"{name} ({n})" for name, n in Counter(one.pool.label for one in best).items())
        text += (
            f" Surely fastest of all at their cost are {names}: {_where(best, [one.lead for one in best])}."
        )
    central = [one for one in found if one.central_standing is Standing.BEST]
    if central:
        leads = [one.central_lead for one in central]
        text += f" Surely faster than storage nodes and recomputing they are in {_where(central, leads)}."
    rooms = sorted(one.headroom for one in found)
    return Claim(
        f"{text} The bound (distributed DRAM behind a switch that has all of it) leads the fastest purchase "
        f"over the same links whose switch only forwards by {median(rooms):.1%} in the median and "
        f"{rooms[-1]:.1%} at most: no pool of any design could lead that by more."
    )


def _counts(standings: Sequence[Standing]) -> str:
    """Settings by what is certain; "no different" is within SAME_SHARE."""
    numbers = Counter(standings)
    return ", ".join(
        f"{kind.value} in {numbers[kind]}"
        for kind in (Standing.BEST, Standing.SAME, Standing.BEATEN, Standing.OPEN)
    )


def _where(settings: Sequence[Verdicts], leads: Sequence[float]) -> str:
    """What these settings have in common, and by how much the pool leads there."""
    nodes, links = [one.setting.nodes for one in settings], [one.setting.link_gbit_s for one in settings]
    shapes = Counter(one.setting.shape for one in settings)
    kinds = ", ".join(f"{count} of {shape}" for shape, count in shapes.items())
    return (
        f"{kinds} with {min(nodes)} to {max(nodes)} nodes "
        f"on links of {min(links):.0f} to {max(links):.0f} Gbit/s, by {median(leads):.1%} in the median "
        f"and {max(leads):.1%} at most"
    )
