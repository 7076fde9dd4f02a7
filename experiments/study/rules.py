"""The rules by which the report's sentences are made; each says only what the intervals under it carry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.intervals import Interval
from experiments.study.benefit import benefit
from experiments.study.rivals import Verdict, verdict
from experiments.study.sample import MEAN, P99, Sample, below, percent_change, ratio, seconds
from experiments.study.systems import NAMES

EVERYTHING = "everything"
OTHER_STORES = ("no pool", "stores that forget, no reclaim", "reclaim from stores that forget")
"""Bars of the ablation whose storage nodes differ, or that have no pool: no variants of the design."""
TOLD_SHARE = 0.005
"""Of p99: what differs by less is not worth a sentence, however certain."""
SERVED_SHARE = 0.01
"""Of blocks: a pool that serves less gains by merging, not by capacity."""


def axis_sentence(places: Mapping[Any, Mapping[str, Sample]]) -> str:
    """By value: how much the pool changes the wait, and where it pays, is beaten, or is undecided."""
    found = {
        value: verdict(systems["switch"], systems["stores"], systems) for value, systems in places.items()
    }
    ends = list(dict.fromkeys((next(iter(places)), list(places)[-1])))
    change = {
        value: percent_change(benefit(places[value]["switch"], places[value]["stores"]).ttft_ratio)
        for value in ends
    }
    text = (
        "Against the same storage nodes without a pool the mean first token is, at "
        + "; at ".join(f"{_named(value)}, {change[value]}" for value in ends)
        + "."
    )
    for kind in Verdict:
        values = [value for value, (mine, _) in found.items() if mine is kind]
        if not values:
            continue
        text += f" In steady state it {kind.value} at {', '.join(map(_named, values))}"
        better = list(dict.fromkeys(name for value in values for name in found[value][1]))
        text += f" ({', '.join(better)})." if better else "."
    tails = {
        _named(value): ratio(systems["switch"], systems["stores"], *P99) for value, systems in places.items()
    }
    return f"{text} Against the same storage nodes {_tails(tails)}."


def _tails(changes: Mapping[str, Interval]) -> str:
    """Where p99 moves beyond its interval, and by how much."""
    apart = [
        f"{name} ({change.mean - 1:+.1%} ± {change.half:.1%})"
        for name, change in changes.items()
        if _apart(change)
    ]
    return f"p99 differs at {', '.join(apart)}" if apart else "p99 differs nowhere"


def _named(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def systems_sentence(shape: str, systems: Mapping[str, Sample]) -> str:
    """The ranking by mean, and whether p99 tells the systems apart."""
    ranking = sorted(systems, key=lambda name: systems[name].mean(*MEAN))
    told = ", ".join(
        f"{NAMES[name]} {seconds(systems[name].interval(*MEAN))} "
        f"(p99 {seconds(systems[name].interval(*P99))}, {systems[name].cost:.2f} $/h)"
        for name in ranking
    )
    apart = [
        name for name in systems if name != "switch" and _apart(ratio(systems["switch"], systems[name], *P99))
    ]
    tail = (
        f"p99 differs from the pool's with {', '.join(NAMES[name] for name in apart)}"
        if apart
        else "p99 tells none of them from the pool"
    )
    return f"{shape}: {told}; {tail}."


def _apart(change: Interval) -> bool:
    """Beyond the interval, and by more than TOLD_SHARE."""
    return not change.low <= 1 <= change.high and abs(change.mean - 1) > TOLD_SHARE


def ablation_sentence(mine: Mapping[str, Sample]) -> str:
    """What merging, multicast and reclaim contribute; every variant that beats the whole design is named."""
    whole, none = mine[EVERYTHING], mine["no pool"]

    def sends(label: str) -> str:
        found = ratio(mine[label], none, "storage_egress_bytes")
        return f"{found.mean:.0%} ± {found.half:.0%}"

    reclaimed = ratio(
        mine["reclaim from stores that forget"], mine["stores that forget, no reclaim"], "prefill_s"
    )
    text = (
        f"With everything, storage nodes send {sends(EVERYTHING)} of what they send without a pool, and "
        f"the mean first token is {percent_change(ratio(whole, none, *MEAN))}. Without merging they send "
        f"{sends('no merging')}, with merging alone {sends('merging only, nothing cached')}. Without "
        f"multicast the mean first token is {percent_change(ratio(mine['no multicast'], whole, *MEAN))} "
        f"compared with it; where storage nodes forget, reclaim changes the GPU time for "
        f"prefill by {reclaimed.mean - 1:+.1%} ± {reclaimed.half:.1%}."
    )
    variants = {
        name: ratio(sample, whole, *P99)
        for name, sample in mine.items()
        if name != EVERYTHING and name not in OTHER_STORES
    }
    text += f" Compared with everything {_tails(variants)}."
    better = beat_everything(mine)
    if better:
        text += f" Better than everything: {'; '.join(better)}."
    return text


def beat_everything(mine: Mapping[str, Sample]) -> list[str]:
    """Variants that send less from storage, or answer sooner, than the whole design, beyond the interval."""
    found = []
    for label, sample in mine.items():
        if label == EVERYTHING or label in OTHER_STORES:
            continue
        gains = []
        if below(sample, mine[EVERYTHING], "storage_egress_bytes"):
            gains.append("fewer bytes from storage")
        if below(sample, mine[EVERYTHING], *MEAN):
            gains.append("a shorter mean first token")
        if gains:
            found.append(f"{label} ({' and '.join(gains)})")
    return found


def sram_sentence(value: int, systems: Mapping[str, Sample]) -> str:
    """What 64 MB in the switch earn, and by which mechanism."""
    sram, stores = systems["sram"], systems["stores"]
    blocks = {name: sram.mean("blocks", name) for name in sram.runs[0]["blocks"]}
    share = blocks["pool"] / max(1.0, sum(blocks.values()))
    kind, better = verdict(sram, stores, {n: s for n, s in systems.items() if n != "sram"})
    text = (
        f"Is the switch's own SRAM (64 MB) enough? With blocks of {value} tokens it holds "
        f"{sram.runs[0]['pool_blocks']} blocks and serves {share:.1%} of all; the mean first token is "
        f"{percent_change(benefit(sram, stores).ttft_ratio)} than without it"
    )
    if share < SERVED_SHARE:
        text += ", by merging and not by what it holds"
    return f"{text}; it {kind.value}{' (' + ', '.join(better) + ')' if better else ''}."


def control_sentence(mine: Mapping[str, Sample]) -> str:
    """What the controller does in a second, and what its slowness changes."""
    base = next(iter(mine.values()))
    duration_s = base.mean("duration_s")
    moved = max(1.0, base.mean("storage_egress_bytes") + base.mean("switch_served_bytes"))
    changes = {label: ratio(sample, base, *MEAN) for label, sample in mine.items() if sample is not base}
    slowest = max(changes, key=lambda label: abs(changes[label].mean - 1))
    return (
        f"The controller of one switch takes {base.mean('digests') / duration_s:.1f} digests and makes "
        f"{base.mean('table_updates') / duration_s:.1f} table updates a second, "
        f"{base.mean('control_bytes') / duration_s / 1e3:.0f} kB/s in all, "
        f"{base.mean('control_bytes') / moved:.1e} of the bytes that blocks move, "
        f"and {base.mean('control_cpu_s') / duration_s:.1%} of a core. "
        f"The largest change of the mean first token, with {slowest}: {percent_change(changes[slowest])}; "
        f"{_tails({name: ratio(one, base, *P99) for name, one in mine.items() if one is not base})}."
    )
