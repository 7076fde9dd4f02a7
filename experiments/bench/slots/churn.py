"""A pool through a trace: the controller's own logic on a switch that does at once whatever it is told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from statistics import fmean

from controller.config import PoolSize, Thresholds
from controller.operations import HotMiss, Install, PoolPacket, Result, TableOperation
from controller.policies import make_policy
from controller.pool.pool import Pool
from controller.pool.residual_value import ResidualValue
from workload.compression import BlockSizes
from workload.cost import DEFAULT_LINK_BIT_S, CostModel
from workload.keys import KeySpace
from workload.trace import Trace

HOME = IPv4Address("10.0.0.9")
FINGERPRINT = slice(0, 4)
WARM = 1 / 3
"""Of the requests, before what is measured."""


class Obedient:
    """A switch (controller.operations.Adapter) of which nothing fails; `hits` by first slot."""

    def __init__(self) -> None:
        self.hits: dict[int, int] = {}

    def write(self, operations: Sequence[TableOperation]) -> Sequence[Result]:
        """Carry out all operations."""
        return [Result.OK] * len(operations)

    def send(self, packets: Sequence[PoolPacket]) -> None:
        """Drop the packets: nobody is there to get them."""

    def read_hits(self, base_slots: Iterable[int]) -> dict[int, int]:
        """Fragments served so far, of blocks with these first slots."""
        return {slot: self.hits[slot] for slot in self.hits.keys() & set(base_slots)}

    def read_blocks(self) -> list[Install]:
        """Never asked for, as nothing fails."""
        return []


@dataclass(frozen=True, slots=True)
class Churn:
    """What came of it; shares are means over the requests after the warm-up."""

    admitted: int
    in_the_way: int
    """Blocks that had to leave because free slots lay in pieces."""
    no_slot: int
    held_blocks: float
    used: float
    """Share of the slots in which a block lay."""

    @property
    def unusable(self) -> float:
        """Share of the slots in which none could lie: left free for the others' sake, or in pieces."""
        return 1 - self.used


def play(trace: Trace, policy: str, sizes: BlockSizes, size: PoolSize, seed: int) -> Churn:
    """Play all requests; a block that is asked for and not there is reported at once."""
    switch = Obedient()
    thresholds = Thresholds(eviction="drop", fill="on_the_way", report_count=1)
    blocks, slots = size.capacity(0)
    cost = CostModel(block_tokens=trace.block_tokens)
    made = make_policy(policy, blocks, seed=seed, cost=cost, capacity_slots=slots)
    residual = ResidualValue(cost, DEFAULT_LINK_BIT_S)
    pool = Pool(size, thresholds, (HOME,), made, switch, residual)
    keys = KeySpace(block_tokens=trace.block_tokens)
    used: list[float] = []
    held: list[int] = []
    for number, request in enumerate(trace.requests):
        chain = list(keys.chain(request.blocks))
        for depth, key in enumerate(chain):
            parent = int.from_bytes(chain[depth - 1][FINGERPRINT], "big") if depth else 0
            fragments = sizes.fragments(key)
            miss = HotMiss(0, key, parent, depth, len(chain), fragments, 0, 0, 1, 1, HOME)
            resident = pool.resident.get(miss.block)
            if resident is None:
                pool.hot_miss(miss, request.arrival_s)
                pool.commit(request.arrival_s)
            else:
                slot = resident.base_slot
                switch.hits[slot] = switch.hits.get(slot, 0) + resident.fragments
        pool.read_hits(request.arrival_s)
        if number >= WARM * len(trace.requests):
            used.append(pool.slots.used_slots / size.usable_slots)
            held.append(len(pool.resident))
    counts = pool.counts
    return Churn(counts.admitted, counts.in_the_way, counts.no_slot, fmean(held), fmean(used))
