"""The rules by which the designs, the cold start, the hour, the ledger, the tornado and the map are told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from statistics import median

from experiments.intervals import Interval, mean_interval
from experiments.study.atlas import Standing, Verdicts
from experiments.study.claims import EVEN, Claim, Fact, Shown, against_even, joined, share, told
from experiments.study.ledger import Entry
from experiments.study.played import DESIGNS, Gain
from experiments.study.rules import MEAN_MARK
from experiments.study.sample import MEAN, TOLD_SHARE, Sample, below, figure, ratio
from experiments.study.tails import TAIL_MARK, Tail, apart, tails
from experiments.study.tornado import BASE, Bar, swings

UNDECIDED = ", not decided."
EARNED, DEARER = " nodes: waiting saved, $", " nodes: dearer by, $"
"""Names of what a row of the ledger shows, behind the number of nodes."""
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
        f"{decided.text}\nWithin their intervals, or under 0.05 %, are: {open_}.".strip(), decided.facts
    )


def tails_claim(mine: Labelled, pairs: Iterable[tuple[str, str]]) -> Claim:
    """Of the same pairs those whose p99 differs, too."""
    found = {
        f"{one} against {other}": Tail(one, mine[one], other, mine[other])
        for one, other in pairs
        if one in mine and other in mine
    }
    claim = tails(found)
    return Claim(f"Of these comparisons {claim.text}." if found else "", claim.facts)


def recompute_claim(mine: Labelled, recompute: str) -> Claim:
    """What is surely slower than buying nothing."""
    slower = [name for name in mine if name != recompute and below(mine[recompute], mine[name], *MEAN)]
    if not slower:
        return Claim("Nothing is surely slower than recomputing.")
    return Claim(
        f"Recomputing, which costs nothing, is surely faster than {'; '.join(slower)}.",
        tuple(Fact(recompute, name) for name in slower),
    )


def longer_waits_s(cold: Sample, warm: Sample) -> list[float]:
    """How much longer all requests together wait because nodes were cold; the same requests, by seed."""
    return [
        (figure(one, MEAN) - figure(other, MEAN)) * one["completed"]
        for one, other in zip(cold.runs, warm.runs, strict=True)
    ]


def cold_cost(cold: Sample, warm: Sample) -> Interval:
    """The same with its interval."""
    return mean_interval(longer_waits_s(cold, warm))


def cold_claim(costs: Mapping[str, Interval], what: str = "A cold start", digits: int = 0) -> Claim:
    """The cheapest and the dearest cold start, where they differ beyond their intervals."""
    order = sorted(costs, key=lambda name: costs[name].mean)
    low, high = order[0], order[-1]
    text = (
        f"{what} costs, once, in waiting of all requests together, from {told(costs[low], 's', digits)} "
        f"({low}) to {told(costs[high], 's', digits)} ({high})."
    )
    if costs[low].high < costs[high].low:
        return Claim(text, (Fact(low, high),))
    return Claim(text + " Their intervals overlap.")


def joining_claim(waits_s: Mapping[str, Sequence[float]], pairs: Sequence[tuple[str, str]]) -> Claim:
    """What joining costs, and what the first of each pair saves against the second; `waits_s` by seed."""
    claims = [cold_claim({name: mean_interval(mine) for name, mine in waits_s.items()}, "Joining", 2)]
    for one, other in pairs:
        if one in waits_s and other in waits_s:
            by_seed = zip(waits_s[one], waits_s[other], strict=True)
            saved = mean_interval([theirs - mine for mine, theirs in by_seed])
            text = f"{one}: {told(saved, 's', 2)} less than {other}"
            if saved.low > 0:
                claims.append(Claim(f"{text}.", (Fact(one, other),)))
            elif saved.high < 0:
                claims.append(Claim(f"{text}, that is more.", (Fact(other, one),)))
            else:
                claims.append(Claim(text + UNDECIDED))
    return joined(claims)


def ledger_claim(entries: Sequence[Entry]) -> Claim:
    """What the last row costs and earns, and whether it is a gain against buying nothing."""
    last = entries[-1]
    saved = last.saved_dollars
    text = (
        f"With {last.nodes} nodes and {told(last.requests, '', 0)} requests an hour controllers and switches "
        f"handle {told(last.digests, '', 0)} digests and make {told(last.updates, '', 0)} table updates in "
        f"{told(last.writes, '', 0)} Writes an hour, {told(last.messages_mb, 'MB', 0)} of messages, and "
        f"controllers read {told(last.reads, '', 0)} hit counters, which takes {last.cpu_s:.0f} s of CPU, "
        f"{last.cpu_s / 3600:.1%} of a core ({told(last.reading_s, 's', 0)} of it for the counters); tables "
        f"take {last.table_mb:.1f} MB.\nThe pool saves {told(last.saved_s, 's', 0)} of waiting an hour, its "
        "first twelfth left out, against the same storage nodes"
    )
    facts: list[Shown] = []
    names = f"{last.nodes}{EARNED}", f"{last.nodes}{DEARER}"
    if last.saved_s.low <= 0 <= last.saved_s.high:
        text += ", not told from 0"
    if saved.low > last.extra_dollars:
        text += f", more than its {last.extra_dollars:.2f} $/h at a node's price"
        facts.append(Fact(names[1], names[0]))
    elif saved.high < last.extra_dollars:
        text += f", less than its {last.extra_dollars:.2f} $/h at a node's price"
        facts.append(Fact(names[0], names[1]))
    else:
        text += f"; whether that is worth its {last.extra_dollars:.2f} $/h is not decided"
    if last.against_recompute_s.high < 0:
        text += f"; against recomputing it loses {told(0 - last.against_recompute_s, 's', 0)}"
    facts += against_even(str(last.nodes), last.sooner) + against_even(f"{last.nodes}{TAIL_MARK}", last.tail)
    text += (
        f".\nIts mean first token is sooner (below 0: later) by {last.sooner:+.2%} than theirs, p99 by "
        f"{last.tail:+.2%}; cold start included, the mean by {last.whole:+.2%}."
    )
    return Claim(text, tuple(facts))


def live_claim(found: Sequence[Gain]) -> Claim:
    """What each design gained live and simulated, and where the two are surely apart."""
    claims = [_live_gain(gain) for gain in found]
    far = [gain for gain in found if gain.apart is not None and not gain.apart.low <= 0 <= gain.apart.high]
    if far:
        names = "; ".join(
            f"{gain.design.label}, by {share(gain.apart)} of the mean" for gain in far if gain.apart
        )
        claims.append(Claim(f"Live and simulated gains are surely apart (live less simulated): {names}."))
    elif any(gain.apart is not None and isfinite(gain.apart.half) for gain in found):
        claims.append(Claim("No gain is surely apart from the simulated one."))
    return joined(claims)


def _live_gain(gain: Gain) -> Claim:
    against = DESIGNS[gain.design.against].label
    simulated = "not simulated" if gain.simulated is None else f"simulated {share(gain.simulated)}"
    text = (
        f"{gain.design.label}: {share(gain.live)} sooner live than {against} (p99 {share(gain.tail)}), "
        f"{simulated}."
    )
    less, more = gain.design.label + LIVE_MARK, against + LIVE_MARK
    if gain.live.low > 0:
        return Claim(text, (Fact(less, more),))
    if gain.live.high < 0:
        return Claim(text.replace("sooner live than", "live, that is later than"), (Fact(more, less),))
    return Claim(text.removesuffix(".") + UNDECIDED)


def tornado_claim(made: Sequence[Bar], contest: str) -> Claim:
    """Which change moves it most, and which surely turn the decision, where there is one."""
    mine = {bar.change: bar for bar in made if bar.contest == contest}
    rows, base = swings(made, contest), mine[BASE]
    widest, low, high = rows[0]
    changed = {name: bar for name, bar in mine.items() if name.endswith((" halved", " doubled"))}
    ahead = [name for name, bar in changed.items() if bar.net_dollars.low > 0]
    behind = [name for name, bar in changed.items() if bar.net_dollars.high < 0]
    text = (
        f"At a node's price for a second of waiting {base.pool} is worth, in the second half, "
        f"{told(base.net_dollars, '$/h', 2)} against {base.rival}{_of_zero(base.net_dollars)}; its mean "
        f"first token is sooner by {share(base.faster)} (below 0: later), p99 by {share(base.tail)}.\nMost "
        f"depends on {widest}: {told(low.net_dollars, '$/h', 2)} halved, "
        f"{told(high.net_dollars, '$/h', 2)} doubled.\n"
    )
    if base.net_dollars.low > 0:
        text += _turns(behind)
    elif base.net_dollars.high < 0:
        text += _turns(ahead)
    else:
        text += (
            "So there is no decision that could turn. It is surely ahead with "
            f"{'; '.join(ahead) or 'nothing'}, surely behind with {'; '.join(behind) or 'nothing'}."
        )
    facts = against_even(BASE + MEAN_MARK, base.faster) + against_even(BASE + TAIL_MARK, base.tail)
    for bar in (base, *changed.values()):
        facts += against_even(bar.change, bar.net_dollars)
    return Claim(text, tuple(facts))


def _turns(surely: Sequence[str]) -> str:
    if surely:
        return f"The decision surely turns with {'; '.join(surely)}."
    return "No single halving or doubling surely turns the decision."


def _of_zero(value: Interval) -> str:
    return ", not told from 0" if value.low <= 0 <= value.high else ""


def map_claim(found: Sequence[Verdicts], steady: Sequence[Verdicts], searched: int) -> Claim:
    """Where a pool is the best purchase, and the bound that says why not elsewhere."""
    text = (
        f"In {len(found)} settings, {searched} of them chosen where a pool came nearest, a "
        "purchase with a pool is, against everything that costs no more, "
        f"{_counts([one.standing for one in found])}; in the second half "
        f"{_counts([one.standing for one in steady])}.\nAgainst storage nodes and recomputing alone it is "
        f"{_counts([one.central_standing for one in found])}; in the second half "
        f"{_counts([one.central_standing for one in steady])}."
    )
    best = [one for one in found if one.standing is Standing.BEST]
    if best:
        names = ", ".join(f"{name} ({n})" for name, n in Counter(one.pool.label for one in best).items())
        text += (
            f"\nSurely fastest of all at their cost are {names}: {_where(best, [one.lead for one in best])}."
        )
    central = [one for one in found if one.central_standing is Standing.BEST]
    if central:
        leads = [one.central_lead for one in central]
        text += f"\nSurely faster than storage nodes and recomputing they are in {_where(central, leads)}."
    apart_in = [one for one in found if apart(1 - one.tail)]
    moved = [one.tail.mean for one in apart_in]
    text += f"\np99 differs from the rival's, beyond its interval and by more than 0.5 %, in {len(moved)}"
    if moved:
        later = sum(gain < 0 for gain in moved)
        text += f": sooner in {len(moved) - later}, later in {later}, by {max(map(abs, moved)):.1%} at most"
    text += "."
    rooms = sorted((one.headroom for one in found), key=lambda room: room.mean)
    most = max((one.headroom_tail for one in found), key=lambda room: room.mean)
    text += (
        "\nThe bound (distributed DRAM behind a switch that has all of it) leads the fastest purchase "
        f"over the same links whose switch only forwards by {median(room.mean for room in rooms):.1%} in the "
        f"median and {rooms[-1]:.1%} at most, in p99 by {most:.1%} at most: no pool of any design could lead "
        "that by more."
    )
    facts: list[Shown] = [Fact(EVEN, lead_name(one)) for one in best]
    facts += [Fact(lead_name(one), EVEN) for one in found if one.standing is Standing.BEATEN]
    facts += [Fact(EVEN, lead_name(one, central=True)) for one in central]
    for one in apart_in:
        facts += against_even(lead_name(one) + TAIL_MARK, one.tail)
    return Claim(text, tuple(facts))


def lead_name(one: Verdicts, central: bool = False) -> str:
    """Of a setting's lead in the map's plots."""
    return f"setting {one.number}{' among storage nodes' if central else ''}"


def _counts(standings: Sequence[Standing]) -> str:
    """Settings by what is certain."""
    numbers = Counter(standings)
    return ", ".join(
        f"{kind.value} in {numbers[kind]}"
        for kind in (Standing.BEST, Standing.SAME, Standing.BEATEN, Standing.OPEN)
    )


def _where(settings: Sequence[Verdicts], intervals: Sequence[Interval]) -> str:
    """What these settings have in common, and by how much the pool leads there."""
    leads = [one.mean for one in intervals]
    nodes, links = [one.setting.nodes for one in settings], [one.setting.link_gbit_s for one in settings]
    shapes = Counter(one.setting.shape for one in settings)
    kinds = ", ".join(f"{count} of {shape}" for shape, count in shapes.items())
    return (
        f"{kinds} with {min(nodes)} to {max(nodes)} nodes "
        f"on links of {min(links):.0f} to {max(links):.0f} Gbit/s, by {median(leads):.1%} in the median "
        f"and {max(leads):.1%} at most"
    )
