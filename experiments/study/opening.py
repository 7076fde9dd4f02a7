"""What the report says first: whether any switch is the best purchase, and the bound that says why not."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.study.point import label
from experiments.study.rivals import Done, Purchase, beating, fan_ins, purchases
from experiments.study.sample import MEAN, P99, STEADY, Sample, below, ratio
from experiments.study.systems import BOUND, NAMES, POOLS


def opening(done: Done) -> list[str]:
    """Sentences for who reads no further; none where nothing was bought at equal cost."""
    where = [nodes for nodes in fan_ins(done) if any(one.pooled for one in purchases(done, nodes))]
    if not where:
        return []
    told = [_all_leads(done, where)]
    told += [text for text in (_bound(done, where), _stores(done, where)) if text]
    return told


def _all_leads(done: Done, where: Sequence[int]) -> str:
    """With the cold start and in steady state."""
    out_of = sum(one.pooled for nodes in where for one in purchases(done, nodes))
    names = _list([str(nodes) for nodes in where])
    text = (
        f"Of {out_of} purchases with a pool or merging in the switch, with {names} nodes, none is surely "
        "sooner to the first token than everything that costs no more"
    )
    whole, steady = _leads(done, where, MEAN), _leads(done, where, STEADY)
    if not whole and not steady:
        return f"{text}, neither with the cold start nor in steady state."
    parts = [
        f"{when}: {'; '.join(found) if found else 'none'}."
        for when, found in (("With the cold start", whole), ("In steady state", steady))
    ]
    return f"{text.replace('none is', 'these are')}. {' '.join(parts)}"


def _leads(done: Done, where: Sequence[int], path: tuple[str, str]) -> list[str]:
    """The purchases with a pool or merging that surely lead all that costs no more, and by how much."""
    found = []
    for nodes in where:
        bought = purchases(done, nodes)
        best = [(one, rival) for one in bought if one.pooled and (rival := _led(one, bought, path))]
        found += [
            f"{pool.label} with {nodes} nodes by {1 - ratio(pool.sample, rival.sample, *path):.2%}"
            f" ({pool.sample.cost:.2f} $/h)"
            for pool, rival in best
        ]
    return found


def _led(pool: Purchase, bought: Sequence[Purchase], path: tuple[str, str]) -> Purchase | None:
    """The fastest that costs no more, if the pool is surely sooner than every one of these."""
    rivals = [one for one in bought if not one.pooled and one.sample.cost <= pool.sample.cost]
    if not rivals or beating(pool, bought, path):
        return None
    if not all(below(pool.sample, rival.sample, *path) for rival in rivals):
        return None
    return min(rivals, key=lambda one: one.sample.mean(*path))


def _bound(done: Done, where: Sequence[int]) -> str:
    """How much any switch could gain where nodes lend one another their DRAM."""
    found = []
    for nodes in where:
        mine = _by_system(done, nodes)
        if BOUND in mine and "lent" in mine:
            gains = [1 - ratio(mine[BOUND], mine["lent"], *path) for path in (MEAN, STEADY, P99)]
            found.append(
                f"{gains[0]:.2%} with {nodes} nodes ({gains[1]:.2%} in steady state, p99 {gains[2]:.2%})"
            )
    if not found:
        return ""
    return (
        f"Why: {NAMES['lent']}, costs nothing, and the bound on all switches in front of it leads it by "
        f"{_list(found)}."
    )


def _stores(done: Done, where: Sequence[int]) -> str:
    """What a pool is worth where blocks have to lie on two storage nodes."""
    pool, stores = label("switch", 2), label("stores", 2)
    found = []
    for nodes in where:
        mine = {one.label: one.sample for one in purchases(done, nodes)}
        if pool in mine and stores in mine:
            gains = [1 - ratio(mine[pool], mine[stores], *path) for path in (MEAN, STEADY, P99)]
            found.append(
                f"{gains[0]:+.1%} with {nodes} nodes ({gains[1]:+.1%} in steady state, p99 {gains[2]:+.1%}; "
                f"{mine[pool].cost - mine[stores].cost:.2f} $/h more)"
            )
    if not found:
        return ""
    return f"Where blocks have to lie on 2 storage nodes, a pool before these is sooner by {_list(found)}."


def _by_system(done: Done, nodes: int) -> dict[str, Sample]:
    """Of the purchases those that have one number of storage nodes, and the bound."""
    return {
        point.system: sample
        for point, sample in done
        if point.sweep == "rivals" and point.value == nodes and not point.variant
        and (point.system not in POOLS or point.setting.stores == 2)
    }  # fmt: skip


def _list(parts: Sequence[str]) -> str:
    """As a sentence has it."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
