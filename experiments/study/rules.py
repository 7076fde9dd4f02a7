"""The rules by which the report's sentences are made; each says only what the intervals under it carry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.intervals import mean_interval
from experiments.simulator.measured import digests_cpu_s
from experiments.study.benefit import benefit
from experiments.study.claims import Claim, Fact, Shown, against_even, joined
from experiments.study.rivals import STEADY_MARK, Verdict, verdict
from experiments.study.sample import (
    MEAN,
    P99,
    Sample,
    below,
    ratio,
    seconds,
    told_change,
)
from experiments.study.systems import NAMES
from experiments.study.tails import Tail, tails

EVERYTHING = "everything"
EGRESS = ("storage_egress_bytes",)
NET_MARK = " ($)"
"""Behind the names of what a plot shows of dollars: saved waiting at its price, less the dearer hardware."""
MEAN_MARK = " (mean)"
"""Behind the names of values that a plot of means shows beside one of bytes."""
OTHER_STORES = ("no pool", "stores that forget, no reclaim", "reclaim from stores that forget")
"""Bars of the ablation whose storage nodes differ, or that have no pool: no variants of the design."""
SERVED_SHARE = 0.01
"""Of blocks: a pool that serves less gains by merging, not by capacity."""


def axis_sentence(places: Mapping[Any, Mapping[str, Sample]]) -> str:
    """By value: how much the pool changes the wait, and where it pays, is beaten, or is undecided."""
    found = {
        value: verdict(systems["switch"], systems["stores"], systems) for value, systems in places.items()
    }
    ends = _told(places)
    change = {value: told_change(places[value]["switch"], places[value]["stores"], *MEAN) for value in ends}
    text = (
        "Against the same storage nodes without a pool the mean first token is, at "
        + "; at ".join(f"{named(value)}, {change[value]}" for value in ends)
        + "."
    )
    for kind in Verdict:
        values = [value for value, (mine, _) in found.items() if mine is kind]
        if not values:
            continue
        text += f"\nIn the second half it {kind.value} at {', '.join(map(named, values))}"
        better = list(dict.fromkeys(name for value in values for name in found[value][1]))
        text += f" ({', '.join(better)})." if better else "."
    return f"{text}\nAgainst the same storage nodes {_axis_tails(places).text}."


def _axis_tails(places: Mapping[Any, Mapping[str, Sample]]) -> Claim:
    """Of a pool's p99 beside that of the same storage nodes."""
    return tails({named(value): _tail("switch", "stores", value, mine) for value, mine in places.items()})


def _tail(one: str, other: str, value: Any, mine: Mapping[str, Sample]) -> Tail:
    """p99 of one system beside another's at one place."""
    return Tail(at(one, value), mine[one], at(other, value), mine[other])


def axis_claim(places: Mapping[Any, Mapping[str, Sample]]) -> Claim:
    """The same, with what plots must show: means at the ends, second halves where something is said."""
    facts: list[Shown] = [
        fact
        for value in _told(places)
        for fact in differing(
            places[value]["switch"], places[value]["stores"], at("switch", value), at("stores", value)
        )
    ]
    for value, systems in places.items():
        facts += _paying("switch", value, systems)
    return Claim(axis_sentence(places), (*facts, *_axis_tails(places).facts))


def _paying(pool: str, value: Any, systems: Mapping[str, Sample]) -> list[Shown]:
    """What plots of the second half must show of a verdict: the time, what is faster, and the dollars."""
    stores, name = systems["stores"], at(pool, value)
    kind, better = verdict(
        systems[pool], stores, {one: mine for one, mine in systems.items() if one != "sram"}
    )
    facts: list[Shown] = [Fact(f"{one} at {named(value)}{STEADY_MARK}", name + STEADY_MARK) for one in better]
    if kind is Verdict.PAYS:
        facts.append(Fact(name + STEADY_MARK, at("stores", value) + STEADY_MARK))
    return facts + against_even(name + NET_MARK, benefit(systems[pool], stores).net_dollars)


def at(system: str, value: Any) -> str:
    """The name in a plot of one system at one place."""
    return f"{NAMES[system]} at {named(value)}"


def differing(one: Sample, other: Sample, name: str, other_name: str) -> list[Fact]:
    """What a plot of means must show where one is said to be sooner or later than the other."""
    if below(one, other, *MEAN):
        return [Fact(name, other_name)]
    return [Fact(other_name, name)] if below(other, one, *MEAN) else []


def _told(places: Mapping[Any, Mapping[str, Sample]]) -> list[Any]:
    """The first value and the last, and between them that at which the pool changes most."""
    values = list(places)
    most = max(
        values, key=lambda value: abs(ratio(places[value]["switch"], places[value]["stores"], *MEAN).mean - 1)
    )
    return [value for value in values if value in (values[0], most, values[-1])]


def named(value: Any) -> str:
    """A place along an axis, as text."""
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def systems_claim(shapes: Mapping[str, Mapping[str, Sample]]) -> Claim:
    """All systems beside the pool with each kind of traffic, as the plot must show it."""
    claims = []
    for shape, systems in shapes.items():
        facts: list[Shown] = [
            fact
            for name in systems
            for fact in differing(systems[name], systems["switch"], at(name, shape), at("switch", shape))
        ]
        facts += [fact for tail in _beside_the_pool(shape, systems).values() for fact in tail.shown]
        claims.append(Claim(systems_sentence(shape, systems), tuple(facts)))
    return joined(claims)


def systems_sentence(shape: str, systems: Mapping[str, Sample]) -> str:
    """What can be said of each beside the pool, the fastest first, and whether p99 tells them apart."""
    pool = systems["switch"]
    ranking = sorted(systems, key=lambda name: systems[name].mean(*MEAN))
    told = ", ".join(
        f"{NAMES[name]} {seconds(systems[name].interval(*MEAN))} "
        f"(p99 {seconds(systems[name].interval(*P99))}, {systems[name].cost:.2f} $/h"
        + (")" if name == "switch" else f"; against the pool {told_change(systems[name], pool, *MEAN)})")
        for name in ranking
    )
    moved = [
        f"{NAMES[name]} ({tail})" for name, tail in _beside_the_pool(shape, systems).items() if tail.moved
    ]
    tail = (
        f"p99 differs from the pool's with {', '.join(moved)}"
        if moved
        else "p99 tells none of them from the pool"
    )
    return f"{shape}: {told}; {tail}."


def _beside_the_pool(shape: str, systems: Mapping[str, Sample]) -> dict[str, Tail]:
    """p99 of each other system beside the pool's."""
    return {name: _tail(name, "switch", shape, systems) for name in systems if name != "switch"}


def ablation_sentence(mine: Mapping[str, Sample]) -> str:
    """What merging, multicast and reclaim contribute; every variant that beats the whole design is named."""
    whole, none = mine[EVERYTHING], mine["no pool"]

    def sends(label: str) -> str:
        found = ratio(mine[label], none, *EGRESS)
        return f"{found.mean:.0%} ± {found.half:.0%}"

    reclaimed = ratio(
        mine["reclaim from stores that forget"], mine["stores that forget, no reclaim"], "prefill_s"
    )
    text = (
        f"With everything, storage nodes send {sends(EVERYTHING)} of what they send without a pool, and "
        f"the mean first token is {told_change(whole, none, *MEAN)}.\nWithout merging they send "
        f"{sends('no merging')}, with merging alone {sends('merging only, nothing cached')}. Without "
        f"multicast the mean first token is {told_change(mine['no multicast'], whole, *MEAN)} "
        f"compared with it; where storage nodes forget, reclaim changes the GPU time for "
        f"prefill by {reclaimed.mean - 1:+.1%} ± {reclaimed.half:.1%}."
    )
    text += f"\nCompared with everything {_ablation_tails(mine).text}."
    better = beat_everything(mine)
    if better:
        text += f"\nBetter than everything: {'; '.join(better)}."
    return text


def ablation_claim(mine: Mapping[str, Sample]) -> Claim:
    """The same, with what the plots of bytes and of means must show."""
    whole, none = mine[EVERYTHING], mine["no pool"]
    facts: list[Shown] = [*differing(whole, none, EVERYTHING + MEAN_MARK, "no pool" + MEAN_MARK)]
    facts += differing(mine["no multicast"], whole, "no multicast" + MEAN_MARK, EVERYTHING + MEAN_MARK)
    for label in _variants(mine):
        if below(mine[label], whole, *EGRESS):
            facts.append(Fact(label, EVERYTHING))
        if below(mine[label], whole, *MEAN):
            facts.append(Fact(label + MEAN_MARK, EVERYTHING + MEAN_MARK))
    return Claim(ablation_sentence(mine), (*facts, *_ablation_tails(mine).facts))


def _ablation_tails(mine: Mapping[str, Sample]) -> Claim:
    """Of each variant's p99 beside that of the whole design."""
    return tails({name: Tail(name, mine[name], EVERYTHING, mine[EVERYTHING]) for name in _variants(mine)})


def _variants(mine: Mapping[str, Sample]) -> list[str]:
    return [label for label in mine if label != EVERYTHING and label not in OTHER_STORES]


def beat_everything(mine: Mapping[str, Sample]) -> list[str]:
    """Variants that send less from storage, or answer sooner, than the whole design, beyond the interval."""
    found = []
    for label in _variants(mine):
        gains = []
        if below(mine[label], mine[EVERYTHING], *EGRESS):
            gains.append("fewer bytes from storage")
        if below(mine[label], mine[EVERYTHING], *MEAN):
            gains.append("a shorter mean first token")
        if gains:
            found.append(f"{label} ({' and '.join(gains)})")
    return found


def sram_claim(value: int, systems: Mapping[str, Sample]) -> Claim:
    """The same as a sentence of the axis, with what the plots of means and of the second half must show."""
    sram, stores = systems["sram"], systems["stores"]
    facts: list[Shown] = [*differing(sram, stores, at("sram", value), at("stores", value))]
    facts += _paying("sram", value, systems)
    return Claim(sram_sentence(value, systems), (*facts, *_tail("sram", "stores", value, systems).shown))


def sram_sentence(value: int, systems: Mapping[str, Sample]) -> str:
    """What 64 MB in the switch earn, and by which mechanism."""
    sram, stores = systems["sram"], systems["stores"]
    blocks = {name: sram.mean("blocks", name) for name in sram.runs[0]["blocks"]}
    share = blocks["pool"] / max(1.0, sum(blocks.values()))
    kind, better = verdict(sram, stores, {n: s for n, s in systems.items() if n != "sram"})
    text = (
        f"Is the switch's own SRAM (64 MB) enough? With blocks of {value} tokens it holds "
        f"{sram.runs[0]['pool_blocks']} blocks and serves {share:.1%} of all; the mean first token is "
        f"{told_change(sram, stores, *MEAN)}, p99 {told_change(sram, stores, *P99)}, compared with none"
    )
    if share < SERVED_SHARE and below(sram, stores, *MEAN):
        text += ", by merging and not by what it holds"
    return f"{text}; it {kind.value}{' (' + ', '.join(better) + ')' if better else ''}."


def control_claim(mine: Mapping[str, Sample]) -> Claim:
    """The same, with what the plot of means must show."""
    first, *others = mine
    facts = [fact for name in others for fact in differing(mine[name], mine[first], name, first)]
    return Claim(control_sentence(mine), (*facts, *_control_tails(mine).facts))


def _control_tails(mine: Mapping[str, Sample]) -> Claim:
    """Of each p99 beside that of the control plane as measured."""
    first, *others = mine
    return tails({name: Tail(name, mine[name], first, mine[first]) for name in others})


def control_sentence(mine: Mapping[str, Sample]) -> str:
    """What the controller does in a second, and what its slowness changes."""
    base = next(iter(mine.values()))
    moved = max(1.0, base.mean("storage_egress_bytes") + base.mean("switch_served_bytes"))
    changes = {label: ratio(sample, base, *MEAN) for label, sample in mine.items() if sample is not base}
    slowest = max(changes, key=lambda label: abs(changes[label].mean - 1))
    digests, updates, sent = (
        mean_interval([run[name] / run["duration_s"] for run in base.runs])
        for name in ("digests", "table_updates", "control_bytes")
    )
    return (
        f"The controller of one switch takes {digests:.1f} digests and makes {updates:.1f} table updates a "
        f"second, {1e-3 * sent:.1f} kB/s in all, "
        f"{base.mean('control_bytes') / moved:.1e} of the bytes that blocks move, "
        f"and {digests_cpu_s(1.0) * digests:.2%} of a core for controller and switch.\n"
        f"The largest change of the mean first token, with {slowest}: "
        f"{told_change(mine[slowest], base, *MEAN)}; {_control_tails(mine).text}."
    )
