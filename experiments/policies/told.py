"""The controller's own pool (`controller.pool`) on the model of a switch: what it is told, and how late.

Digests wait for their list, counters for their reading, decisions for their Write. What a report of a real
switch tells the policy, this tells it, too, because the same code does it."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from itertools import count
from random import Random
from typing import Any, Final

from controller.base_state import DIGEST_LIST_SIZE, DIGEST_TIMEOUT_NS
from controller.block_id import key_of
from controller.config import PoolSize, Thresholds
from controller.hit_meter import next_period_s
from controller.operations import (
    Answer,
    Fill,
    HotMiss,
    Install,
    PacketOperation,
    Reclaim,
    Remove,
    Result,
    SetThreshold,
    TableOperation,
)
from controller.policies import Policy
from controller.pool import Pool
from controller.residual_value import ResidualValue
from controller.worker import TICK_S
from experiments.policies.switch_model import Entry, SwitchModel, Wanted
from experiments.simulator.measured import ENTRIES_S, ENTRY_DIGEST_S
from hostlib import wire
from hostlib.expected import expectation, read_expected
from hostlib.transfer import BlockRef
from v1model.binding.digests import longest_wait

READ_ENTRY_S: Final = 8e-6
"""Of the controller, for each counter that it reads."""
ANSWER_S: Final = 0.002
"""From a packet of the controller to its answer."""


@dataclass(frozen=True)
class Telling:
    """What the policy is told, when, and how it is obeyed."""

    name: str
    report_from: int = 1
    gather_s: float = DIGEST_TIMEOUT_NS / 1e9
    """How long a list of digests waits for more."""
    expects: bool = True
    """Whether nodes tell of blocks that they begin to compute."""
    fill: str = "on_the_way"
    lost: float = 0.0
    """Share of reports that get lost."""
    hits_at_once: bool = False
    """Whether counters are read before each list of digests, too."""
    eviction: str = "value"
    entries_s: float = ENTRIES_S
    """From a list of digests to its entries."""
    entry_digest_s: float = ENTRY_DIGEST_S
    """… longer for each digest in it."""

    @property
    def thresholds(self) -> Thresholds:
        """Of the controller that tells so."""
        return Thresholds(report_count=self.report_from, fill=self.fill, eviction=self.eviction)


class ToldPool:
    """See the module. It is the pool's adapter; times are seconds of the network."""

    def __init__(
        self,
        make_policy: Callable[[int, int], Policy],
        size: PoolSize,
        stores: Sequence[IPv4Address],
        residual: ResidualValue,
        telling: Telling,
        blocks_s: Mapping[IPv4Address, float],
        backlog_s: Callable[[IPv4Address, float], float] = lambda home, now_s: 0.0,
        seed: int = 1,
        read_at_s: float = 0.0,
    ) -> None:
        """`make_policy(blocks, slots)`; a block takes `blocks_s` on a home's link, where `backlog_s` waits;
        counters are first read at `read_at_s`."""
        thresholds = telling.thresholds
        policy = make_policy(*size.capacity(thresholds.spare_blocks(size.whole_blocks)))
        self.switch = SwitchModel(self._reported, telling.report_from)
        self.pool = Pool(size, thresholds, tuple(stores), policy, self, residual)
        self.digests = 0
        self.packets = 0
        """Sent by the controller."""
        self.fills: list[tuple[IPv4Address, float]] = []
        """Blocks fetched for the pool since somebody took them from here: from where, and when."""
        self._telling, self._blocks_s, self._backlog_s = telling, blocks_s, backlog_s
        self._chooser = Random(seed)
        self._due: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._numbers = count()
        self._list: list[HotMiss] = []
        self._list_number, self._list_left_s = 0, float("-inf")
        self._ticking = False
        self._now_s = 0.0
        self.pool.read_back(0.0)
        self.at(read_at_s, self._read_hits)

    def at(self, at_s: float, do: Callable[..., None], *what: Any) -> None:
        """Have something done at a time, after what was to be done at that time before."""
        heapq.heappush(self._due, (at_s, next(self._numbers), do, what))

    def until(self, now_s: float) -> None:
        """Everything that is due by then happens."""
        while self._due and self._due[0][0] <= now_s:
            self._now_s, _, do, what = heapq.heappop(self._due)
            do(*what)
        self._now_s = max(self._now_s, now_s)

    @property
    def now_s(self) -> float:
        """The time."""
        return self._now_s

    @property
    def reports(self) -> int:
        """Digests, and blocks of which it was heard that nodes will put them."""
        return self.digests + self.pool.counts.expected

    def computes(self, blocks: Sequence[Wanted], node: IPv4Address) -> None:
        """A node begins to compute blocks of one chain, and says so if that is told."""
        if not self._telling.expects:
            return
        telling, heard_s = self._telling, self._telling.entries_s
        for datagram in expectation(wire.TENANT_PUBLIC, map(_named, blocks), 0):
            if self._arrives():
                message = wire.decode(datagram)
                heard_s += len(read_expected(message.value)) * telling.entry_digest_s
                self._later(heard_s, self._answered, Answer(node, message))

    # What the switch says.

    def _reported(self, wanted: Wanted, times: int, nodes: int, now_s: float) -> None:
        self.digests += 1
        if not self._arrives():
            return
        backlog_ms = min(0xFFFF, round(1000 * self._backlog_s(wanted.home, now_s)))
        self._list.append(wanted.report(times, nodes, backlog_ms))
        if len(self._list) == 1:
            self._list_number += 1
            gather_s = longest_wait(self._telling.gather_s, now_s - self._list_left_s)
            self._later(gather_s, self._close_list, self._list_number)
        if len(self._list) == DIGEST_LIST_SIZE:
            self._close_list(self._list_number)

    def _arrives(self) -> bool:
        return not self._telling.lost or self._chooser.random() >= self._telling.lost

    def _close_list(self, number: int) -> None:
        if number == self._list_number and self._list:
            reports, self._list = self._list, []
            self._list_left_s = self._now_s
            telling = self._telling
            self._later(telling.entries_s + len(reports) * telling.entry_digest_s, self._hear, reports)

    def _later(self, delay_s: float, do: Callable[..., None], *what: Any) -> None:
        self.at(self._now_s + delay_s, do, *what)

    # What the controller does.

    def _hear(self, reports: Sequence[HotMiss]) -> None:
        if self._telling.hits_at_once:
            self.pool.read_hits(self._now_s)
        self.pool.hot_misses(reports, self._now_s)
        self._act()

    def _answered(self, answer: Answer) -> None:
        self.pool.answered(answer, self._now_s)
        self._act()

    def _act(self) -> None:
        self.pool.commit(self._now_s)
        self.pool.tick(self._now_s)
        if self.pool.in_motion and not self._ticking:
            self._ticking = True
            self.at(self._now_s + TICK_S, self._tick)

    def _tick(self) -> None:
        self._ticking = False
        self._act()

    def _read_hits(self) -> None:
        resident = len(self.pool.resident)
        if resident:
            self.pool.read_hits(self._now_s)
        self._act()
        self.at(self._now_s + next_period_s(resident * READ_ENTRY_S), self._read_hits)

    # What the pool asks of a switch (controller.operations.Adapter).

    def write(self, operations: Sequence[TableOperation]) -> Sequence[Result]:
        """At once: the delay lies before the decision."""
        entries = self.switch.entries
        for operation in operations:
            match operation:
                case Install(key, base_slot, generation, fragments):
                    entries[key_of(key)] = Entry(base_slot, generation, fragments, self._now_s)
                case Remove(key):
                    entries.pop(key_of(key), None)
                case SetThreshold(threshold):
                    self.switch.threshold = threshold
        return [Result.OK] * len(operations)

    def send(self, operations: Sequence[PacketOperation]) -> None:
        """Fetch fragments for the pool, or send its own to their homes, which hold them already."""
        self.packets += len(operations)
        for operation in operations:
            entry = self.switch.entries.get(key_of(operation.key))
            if isinstance(operation, Fill) and entry is not None:
                block_s = self._blocks_s[operation.destination]
                wait_s = self._backlog_s(operation.destination, self._now_s)
                self.fills.append((operation.destination, self._now_s))
                place = key_of(operation.key), entry.generation
                for fragment in range(operation.fragments):
                    came_s = (fragment + 1) / operation.fragments * block_s + wait_s + ANSWER_S
                    self._later(came_s, self.switch.fill, *place, fragment)
            elif isinstance(operation, Reclaim):
                whole = entry is not None and entry.is_whole
                op, flags = (wire.OP_PUT_ACK, wire.FLAG_HELD) if whole else (wire.OP_NOT_FOUND, 0)
                message = operation.message()._replace(op=op, flags=flags | wire.FLAG_RECLAIM)
                self._later(ANSWER_S, self._answered, Answer(operation.destination, message))

    def read_blocks(self) -> list[Install]:
        """The model is never restarted."""
        return []

    def read_hits(self, base_slots: Iterable[int]) -> dict[int, int]:
        """Fragments served; what was never asked for is left out."""
        served = self.switch.served
        return {slot: served[slot] for slot in base_slots if slot in served}


def _named(wanted: Wanted) -> tuple[BlockRef, int]:
    place = wanted.depth, wanted.chain_blocks, wanted.parent, wanted.recompute_ms
    return BlockRef(wanted.key, *place), wanted.fragments
