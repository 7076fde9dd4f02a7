"""Storage node: the home of blocks, with DRAM over SSD, which answers over its link."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from simulator.events import Loop
from simulator.link import Link
from simulator.messages import (
    IN_DRAM,
    NOWHERE,
    ON_SSD,
    PROBE,
    QUESTION,
    Ask,
    Block,
    Put,
    Reply,
    Told,
)
from simulator.network import Network

Acknowledged = Callable[[Put], None]


@dataclass(slots=True)
class StoreStats:
    """Counts of requests and values, in fragments unless a name says blocks."""

    requests: int = 0
    values: int = 0
    not_found: int = 0
    stored_blocks: int = 0
    ssd_reads: int = 0
    """Number of blocks read from SSD."""
    dropped_blocks: int = 0


SPARE_TURNS: Final = 4096
"""Number of outdated turns that are tolerated, beside one for each block, before they are removed."""


class Store:
    """Storage node; `acknowledged` is called when the sender of a put has its acknowledgements.

    Blocks themselves say whether they are here (`Block.at_home`). A use appends a turn to a queue, of which a
    block's last turn counts. Looking up millions of blocks took a tenth of a run.
    """

    def __init__(
        self,
        loop: Loop,
        name: str,
        network: Network,
        dram_blocks: int,
        ssd_blocks: int,
        ssd_bytes_per_s: float,
        acknowledged: Acknowledged,
    ) -> None:
        self.name = name
        self.stats = StoreStats()
        self._loop, self._network, self._acknowledged = loop, network, acknowledged
        self._dram_blocks, self._ssd_blocks = dram_blocks, ssd_blocks
        self._in_dram = self._on_ssd = 0
        """Numbers of blocks."""
        self._dram: deque[Block] = deque()
        """Turns of blocks in DRAM; the block that leaves first comes first."""
        self._ssd: deque[Block] = deque()
        self._reclaimed: dict[Block, set[int]] = {}
        """Parts that have come of blocks on their way out of a pool."""
        self._ssd_link = Link(f"{name} ssd", ssd_bytes_per_s, 0.0)
        self._port, self._egress = network.access(name)

    def preload(self, blocks: Iterable[Block]) -> None:
        """Hold these blocks from the start; the most recently used one comes last."""
        for block in blocks:
            self._insert(block)

    def holds(self, block: Block) -> bool:
        """Return whether a block is here."""
        return block.at_home != NOWHERE

    def asked(self, asks: Sequence[Ask], neighbour: str, tail_s: float) -> None:
        """Answer GETs, at once from DRAM and later from SSD, and STATs."""
        stats, backlog_ms = self.stats, self.backlog_ms()
        nowhere: list[Reply] = []
        for ask in asks:
            if ask.part == QUESTION:
                nowhere.append(Told(ask, self.holds(ask.block), backlog_ms))
                continue
            stats.requests += ask.fragments
            reply = Reply(ask, self._find(ask), backlog_ms)
            if not reply.found:
                stats.not_found += ask.fragments
                nowhere.append(reply)
                continue
            stats.values += ask.fragments
            if nowhere:
                self._deny(nowhere)
                nowhere = []
            ready_s = 0.0 if ask.block.at_home == IN_DRAM else self._ssd_link.wait_s(self._loop.now)
            if ready_s:
                self._loop.after(ready_s, self._port.reply, [reply])
            else:
                self._port.reply([reply])
        if nowhere:
            self._deny(nowhere)

    def _deny(self, nowhere: Sequence[Reply]) -> None:
        """Send these replies, which carry no value."""
        self._port.reply(nowhere)

    def put(self, put: Put) -> None:
        """Keep a block, or a part of a reclaimed one, and acknowledge it."""
        loop = self._loop
        was_here = put.block.at_home != NOWHERE
        put.held = self._take(put)
        put.created = put.held and not was_here
        arrival_s = self._network.acknowledge(self.name, put.sender, put.fragments)
        loop.after(arrival_s - loop.now, self._acknowledged, put)
        if put.created and not put.reclaim:
            self._network.say_made(put)

    def _take(self, put: Put) -> bool:
        """Take a put and return whether its block is here then."""
        block = put.block
        if put.reclaim and not self._is_whole(put):
            return self.holds(block)
        if self._reclaimed:
            self._reclaimed.pop(block, None)
        return self._keep(block)

    def _keep(self, block: Block) -> bool:
        """Keep a block, or use it if it was here; return whether it is here then."""
        if block.at_home != NOWHERE:
            self._insert(block)
            return True
        self.stats.stored_blocks += 1
        self._add(block)
        return bool(self._dram_blocks or self._ssd_blocks)

    def _is_whole(self, put: Put) -> bool:
        """Return whether all parts of a reclaimed block have come, or the block was here."""
        arrived = self._reclaimed.setdefault(put.block, set())
        arrived.add(put.fragment)
        return self.holds(put.block) or len(arrived) == len(put.block.parts)

    def replied(self, replies: Sequence[Reply], neighbour: str, tail_s: float) -> None:
        """Raise AssertionError: a storage node asks for nothing."""
        raise AssertionError("a storage node asks for nothing")

    def backlog_ms(self) -> float:
        """Return the milliseconds of what waits to leave."""
        return 1000 * self._egress.wait_s(self._loop.now)

    def _find(self, ask: Ask) -> bool:
        block = ask.block
        if block.at_home == IN_DRAM:
            self._use(block)
            return True
        if block.at_home == NOWHERE:
            return False
        if ask.part == PROBE:
            self.stats.ssd_reads += 1
            sizes = self._network.sizes
            size_bytes = sizes.block_bytes * block.fragments / sizes.fragments
            _, tail_s = self._ssd_link.send(self._loop.now, size_bytes, size_bytes)
            self._loop.at(tail_s, self._insert, block)
        return True

    def _insert(self, block: Block) -> None:
        if block.at_home == IN_DRAM:
            self._use(block)
            return
        if block.at_home == ON_SSD:
            self._on_ssd -= 1
        self._add(block)

    def _use(self, block: Block) -> None:
        """Make a block in DRAM the last to leave it."""
        block.dram_turns += 1
        self._dram.append(block)
        if len(self._dram) > 2 * self._in_dram + SPARE_TURNS:
            self._dram = _last_turns(self._dram)
            for block in self._dram:
                block.dram_turns = 1

    def _add(self, block: Block) -> None:
        """Put a block into DRAM that is not there."""
        block.at_home = IN_DRAM
        self._in_dram += 1
        self._use(block)
        while self._in_dram > self._dram_blocks:
            self._lower()
        while self._on_ssd > self._ssd_blocks:
            self._drop()

    def _lower(self) -> None:
        """Move the least recently used block from DRAM to SSD."""
        dram, ssd = self._dram, self._ssd
        block = dram.popleft()
        block.dram_turns -= 1
        while block.dram_turns:
            block = dram.popleft()
            block.dram_turns -= 1
        self._in_dram -= 1
        block.at_home = ON_SSD
        self._on_ssd += 1
        block.ssd_turns += 1
        ssd.append(block)
        if len(ssd) > 2 * self._on_ssd + SPARE_TURNS:
            for block in ssd:
                block.ssd_turns = 0
            self._ssd = _last_turns(block for block in ssd if block.at_home == ON_SSD)
            for block in self._ssd:
                block.ssd_turns = 1

    def _drop(self) -> None:
        """Drop the block that has been on SSD longest; blocks that have moved back to DRAM left outdated
        turns."""
        block = self._ssd.popleft()
        block.ssd_turns -= 1
        while block.ssd_turns or block.at_home != ON_SSD:
            block = self._ssd.popleft()
            block.ssd_turns -= 1
        self._on_ssd -= 1
        block.at_home = NOWHERE
        self.stats.dropped_blocks += 1


def _last_turns(turns: Iterable[Block]) -> deque[Block]:
    """Return the last turn of each block, in order."""
    last = deque(dict.fromkeys(reversed([*turns])))
    last.reverse()
    return last
