"""What no policy can exceed, in seconds saved, with the prefix constraint.

Offline, choose which accesses are to hit. A hit at one access takes a slot from the block's access before it
on; at each moment no more slots are taken than there are; a hit counts only if the block before it in its
chain hits. This integer program is relaxed twice: by Lagrange, with a price for a slot at each moment and one
for each prefix condition, and by taking prices that are good but not best. Any prices not below zero give an
upper bound (weak duality), so what is printed is one whatever the number of steps; more steps make it
tighter.

Belady's seconds are what one offline policy reaches; the truth lies between the two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.policies.stores import STORES, USUAL_LINKS, Links, Stores, transfers_s
from workload.cost import CostModel
from workload.keys import home_number
from workload.trace import Trace

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Accesses:
    """A trace as arrays, one entry an access."""

    worth_s: Floats
    """What a hit saves; 0 where the block was never there before, as nothing can hit then."""
    before: Ints
    """The access before it of the same block, -1 for none."""
    parent: Ints
    """The access of the block before it in the chain, -1 for the first."""


def accesses_of(trace: Trace, cost: CostModel, links: Links = USUAL_LINKS) -> Accesses:
    """Worths are those of `Ledger`: the same under every policy."""
    stores = Stores(transfers_s(cost, links))
    prefill_s = [cost.block_prefill_s(depth) for depth in range(trace.longest_chain)]
    worth_s: list[float] = []
    before: list[int] = []
    parent: list[int] = []
    last: dict[int, int] = {}
    for request in trace.requests:
        fetches_s = stores.fetches_s(request.arrival_s)
        for depth, block in enumerate(request.blocks):
            number = len(worth_s)
            seen = last.get(block, -1)
            worth_s.append(min(prefill_s[depth], fetches_s[home_number(block, STORES)]) if seen >= 0 else 0.0)
            before.append(seen)
            parent.append(number - 1 if depth else -1)
        for number, block in enumerate(request.blocks, len(worth_s) - len(request.blocks)):
            if block in last:
                stores.fetch(block, request.arrival_s)
            last[block] = number
    return Accesses(np.array(worth_s), np.array(before), np.array(parent))


def upper_bound_s(accesses: Accesses, blocks: int, reached_s: float, steps: int = 200) -> float:
    """Seconds that no policy exceeds with so many blocks; `reached_s` is what some policy reached."""
    before, parent, worth_s = accesses.before, accesses.parent, accesses.worth_s
    hit = np.flatnonzero(before >= 0)
    begin, end = before[hit], hit
    place = np.full(len(worth_s), -1)
    place[hit] = np.arange(len(hit))
    above = np.where(parent[hit] >= 0, place[parent[hit]], -1)
    child = np.flatnonzero(above >= 0)
    above_child = above[child]
    slot_price = np.zeros(len(worth_s))
    prefix_price = np.zeros(len(child))
    best_s = float(worth_s[hit].sum())
    scale = 1.0
    since_better = 0
    for _ in range(steps):
        paid = np.concatenate([[0.0], np.cumsum(slot_price)])
        gain = worth_s[hit] - (paid[end] - paid[begin])
        gain[child] -= prefix_price
        np.add.at(gain, above_child, prefix_price)
        chosen = gain > 0.0
        bound_s = float(blocks * slot_price.sum() + gain[chosen].sum())
        if bound_s < best_s:
            best_s, since_better = bound_s, 0
        else:
            since_better += 1
            if since_better == 10:
                scale, since_better = scale / 2, 0
        taken = np.zeros(len(worth_s) + 1)
        np.add.at(taken, begin[chosen], 1.0)
        np.add.at(taken, end[chosen], -1.0)
        slack_slots = blocks - np.cumsum(taken)[:-1]
        slack_prefix = chosen[above_child].astype(float) - chosen[child]
        # Prices that are zero already and would fall move nothing.
        slack_slots[(slot_price == 0.0) & (slack_slots > 0.0)] = 0.0
        slack_prefix[(prefix_price == 0.0) & (slack_prefix > 0.0)] = 0.0
        square = float(slack_slots @ slack_slots + slack_prefix @ slack_prefix)
        if square == 0.0:
            break
        step = scale * max(bound_s - reached_s, 1e-9) / square
        slot_price = np.maximum(0.0, slot_price - step * slack_slots)
        prefix_price = np.maximum(0.0, prefix_price - step * slack_prefix)
    return best_s
