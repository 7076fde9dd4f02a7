"""Which blocks a storage node holds, and where, against a plain description of it."""

from collections import OrderedDict
from random import Random

from scenario import GB, Scenario
from simulator.messages import IN_DRAM, NOWHERE, ON_SSD, Block
from simulator.simulation import prepare
from simulator.system import System

DRAM, SSD = 6, 5
"""Blocks."""


class Tiers:
    """DRAM and SSD, each in order."""

    def __init__(self) -> None:
        self.dram, self.ssd = OrderedDict[Block, None](), OrderedDict[Block, None]()
        self.dropped = 0

    def insert(self, block: Block) -> None:
        self.ssd.pop(block, None)
        self.dram[block] = None
        self.dram.move_to_end(block)
        if len(self.dram) > DRAM:
            self.ssd[self.dram.popitem(last=False)[0]] = None
        if len(self.ssd) > SSD:
            self.ssd.popitem(last=False)
            self.dropped += 1

    def at(self, block: Block) -> int:
        return IN_DRAM if block in self.dram else ON_SSD if block in self.ssd else NOWHERE


def test_the_least_recently_used_moves_to_ssd_and_what_is_there_for_longest_is_dropped() -> None:
    scenario, demand = prepare(Scenario().changed(workload={"requests": 1}, storage={"count": 1}))
    block_gb = System(scenario, demand).cost.stored_bytes / GB
    scenario = scenario.changed(
        storage={"dram_gb": (DRAM + 0.5) * block_gb, "ssd_gb": (SSD + 0.5) * block_gb},
        pool={"memory": "none"},
    )
    (store,) = System(scenario, demand).stores
    expected, draw = Tiers(), Random(5)
    blocks = [Block(bytes([n]) * 16, 0, bytes(16), store.name, (1, 3)) for n in range(16)]
    for block in blocks[: DRAM + SSD]:  # instead of what it held from the start
        store.preload([block])
        expected.insert(block)
    dropped = store.stats.dropped_blocks
    for _ in range(30_000):  # many times as many uses as turns are kept
        block = blocks[min(15, int(draw.expovariate(0.2)))]
        store.preload([block])
        expected.insert(block)
        assert [block.at_home for block in blocks] == [expected.at(block) for block in blocks]
    assert store.stats.dropped_blocks - dropped == expected.dropped > 0
    assert all(store.holds(block) == (expected.at(block) != NOWHERE) for block in blocks)
