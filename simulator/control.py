"""Controller of one switch: the live controller's pool logic on an adapter with delays and costs.

`controller.pool.pool.Pool` decides as it does in the live system. This adapter carries out its operations on
a simulated switch after the time that they take, and counts the messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address
from math import inf
from typing import Generic, TypeVar

from controller.block_id import key_of
from controller.config import PoolSize, PushOptions, Thresholds
from controller.costs import PoolCounts
from controller.operations import (
    Answer,
    HintAnswer,
    HotMiss,
    Install,
    PacketOperation,
    PoolPacket,
    PushFragment,
    Reclaim,
    Remove,
    Replace,
    Result,
    SetGroup,
    SetThreshold,
    Subscription,
    TableOperation,
)
from controller.p4runtime.base_state import DIGEST_LIST_SIZE
from controller.policies import Policy
from controller.pool.hit_meter import MIN_PERIOD_S, next_period_s
from controller.pool.pool import Pool
from controller.pool.residual_value import ResidualValue
from hostlib.protocol import wire
from hostlib.protocol.expected import read_expected
from hostlib.protocol.transfer import BlockRef
from scenario.tables import Control
from simulator.events import Loop
from simulator.messages import Ask, Block, Put
from simulator.switch import Switch
from v1model.binding.digests import longest_wait

TICK_S = 0.02
"""Seconds between two ticks while the pool is busy, as in controller.worker."""
_MOST = 0xFFFF
"""Largest number that a message's fields hold; simulated prompts may be longer than those of hosts."""


@dataclass(slots=True)
class ControlCosts:
    """Messages between controller and switch, and their costs."""

    digests: int = 0
    writes: int = 0
    """Number of write requests."""
    updates: int = 0
    """Number of table updates in the write requests."""
    entries_read: int = 0
    packets: int = 0
    """Number of control operations sent or received."""
    message_bytes: float = 0.0
    cpu_s: float = 0.0
    """Seconds of the controller's own CPU time."""


Report = TypeVar("Report")


class Lists(Generic[Report]):
    """Digests of one kind on their way out of a switch, each by itself or in lists."""

    def __init__(self, loop: Loop, list_s: float, send: Callable[[list[Report]], None]) -> None:
        self._loop, self._list_s, self._send = loop, list_s, send
        self._list: list[Report] = []
        """Digests that wait until the first of them has waited long enough."""
        self._lists = 0
        self._left_s = -inf
        """Time in seconds at which the last list left."""

    def add(self, report: Report) -> None:
        """Take a digest."""
        if not self._list_s:
            self._send([report])
            return
        self._list.append(report)
        if len(self._list) == 1:
            wait_s = longest_wait(self._list_s, self._loop.now - self._left_s)
            self._loop.after(wait_s, self._on_time, self._lists)
        elif len(self._list) == DIGEST_LIST_SIZE:
            self._end()

    def _on_time(self, number: int) -> None:
        if number == self._lists:
            self._end()

    def _end(self) -> None:
        self._lists += 1
        self._left_s = self._loop.now
        reports, self._list = self._list, []
        self._send(reports)


class SwitchControl:
    """Controller of one switch."""

    def __init__(
        self,
        loop: Loop,
        switch: Switch,
        policy: Policy,
        size: PoolSize,
        options: Control,
        homes: Mapping[str, IPv4Address],
        residual: ResidualValue,
        push_share: float = 0.0,
    ) -> None:
        """Set up the controller of `switch` with a pool of `size`.

        If `push_share` is above 0, hot prefixes are pushed, within the controller's bound of fragments in
        flight. The bound is multiplied by `push_share`, because a part of a block is larger than a fragment.
        """
        self.costs = ControlCosts()
        self._loop, self._switch, self._options = loop, switch, options
        self._reported: dict[bytes, Block] = {}
        """Blocks that the switch reported or that nodes announced to put, by key; no others come into its
        pool."""
        self._homes = homes
        self._misses = Lists[HotMiss](loop, options.list_s, self._send_misses)
        self._subscriptions = Lists[Subscription](loop, options.list_s, self._send_subscriptions)
        self._busy_until_s = 0.0
        self._table_free_s = 0.0
        self._next_hits_s = 0.0
        thresholds = Thresholds(
            report_count=options.report_count,
            max_digests_per_s=options.max_digests_per_s,
            fill=options.fill,
            eviction=options.eviction,
        )
        if push_share:
            most = max(1, int(push_share * thresholds.control_fragments_in_flight))
            thresholds = replace(thresholds, control_fragments_in_flight=most)
            switch.on_subscribed = self._on_subscribed
        push = PushOptions() if push_share else None
        self.pool = Pool(size, thresholds, tuple(homes.values()), policy, self, residual, push=push)
        switch.report_count = options.report_count
        switch.on_miss = self._on_miss
        switch.on_nowhere = self._on_nowhere

    @property
    def counts(self) -> PoolCounts:
        """Return the pool's counts."""
        return self.pool.counts

    def tick(self) -> float:
        """Do what is due and return the seconds until the next tick."""
        now_s = self._now_s
        self.pool.tick(now_s)
        if now_s >= self._next_hits_s:
            self._next_hits_s = now_s + self._read_hits(now_s)
        busy = len(self.pool.reclaims) or len(self.pool.fills) or self.pool.push is not None
        return self._lasts(TICK_S if busy else min(1.0, max(TICK_S, self._next_hits_s - now_s)))

    @property
    def _now_s(self) -> float:
        return self._by_clock(self._loop.now)

    def _by_clock(self, time: float) -> float:
        """Return a time by the controller's clock, in the same unit."""
        return time

    def _lasts(self, time: float) -> float:
        """Return how long a time by the controller's clock takes in the simulation, in the same unit."""
        return time

    def _recompute_ms(self, block: Block) -> int:
        """Return the milliseconds, by the controller's clock, that nodes say it takes to compute a block.

        With 0, nodes say nothing and the controller uses the cost model's time.
        """
        return 0

    # The methods below implement controller.operations.Adapter, which the pool calls.

    def write(self, operations: Sequence[TableOperation]) -> Sequence[Result]:
        """Schedule table updates, which take effect one after the other at the switch's pace."""
        self.costs.writes += 1
        self.costs.updates += len(operations)
        self.costs.message_bytes += len(operations) * self._options.update_bytes
        begin_s = max(self._loop.now + self._options.write_latency_s, self._table_free_s)
        for place, operation in enumerate(operations, 1):
            done_s = begin_s + place / self._options.writes_per_s
            self._loop.after(done_s - self._loop.now, self._carry_out, operation)
        self._table_free_s = begin_s + len(operations) / self._options.writes_per_s
        return [Result.OK] * len(operations)

    def send(self, operations: Sequence[PoolPacket]) -> None:
        """Send control operations in band."""
        self.costs.packets += len(operations)
        for operation in operations:
            if isinstance(operation, HintAnswer):
                continue  # simulated nodes give no hints
            if isinstance(operation, PushFragment) and self._table_free_s > self._loop.now:
                self._loop.at(self._table_free_s, self._in_band, operation)  # its group exists by then
            else:
                self._in_band(operation)

    def read_blocks(self) -> list[Install]:
        """Return nothing: a simulated switch is never restarted, so nothing is read back."""
        return []

    def read_hits(self, base_slots: Iterable[int]) -> dict[int, int]:
        """Return the hit counters that changed since the last reading; the cost is that of reading all."""
        switch = self._switch
        self.costs.entries_read += len(switch.index)
        self.costs.message_bytes += len(switch.index) * self._options.read_entry_bytes
        moved = {base_slot: switch.hits[base_slot] for base_slot in sorted(switch.touched)}
        switch.touched.clear()
        return moved

    def acknowledged(self, put: Put) -> None:
        """Note that a storage node has a reclaimed part."""
        flags = wire.FLAG_RECLAIM | (wire.FLAG_HELD if put.held else 0)
        self._answer(wire.OP_PUT_ACK, put.block, put.fragment, put.sequence, flags)

    def named(self, block: Block, chain_blocks: int) -> tuple[BlockRef, int]:
        """Return an announced block as messages to this controller name it, and its number of parts.

        Parts take the place of fragments here, as in reports.
        """
        self._reported[block.key] = block
        recompute_ms = min(_MOST, self._recompute_ms(block))
        place = min(_MOST, block.depth), min(_MOST, chain_blocks), block.parent
        return BlockRef(block.key, *place, recompute_ms), len(block.parts)

    def on_expect(self, answer: Answer) -> None:
        """Hand on a message with announced blocks that has reached the switch.

        Each block takes the controller as long as a digest does, as most of that time goes to policy and
        entry.
        """
        self.costs.packets += 1
        blocks = len(read_expected(answer.message.value))
        self._loop.after(self._heard_s(blocks), self._answered, answer)

    def _read_hits(self, now_s: float) -> float:
        took_s = len(self._switch.index) * self._options.read_entry_s
        self.costs.cpu_s += self._lasts(took_s)
        if not self._switch.index:
            return MIN_PERIOD_S
        self.pool.read_hits(now_s)
        self.pool.commit(now_s)
        return next_period_s(took_s)

    def _carry_out(self, operation: TableOperation) -> None:
        match operation:
            case Replace():
                pass
            case Install():
                self._switch.install(key_of(operation.key), operation.base_slot)
            case Remove():
                self._switch.remove(key_of(operation.key))
            case SetThreshold():
                self._switch.report_count = operation.count
            case SetGroup():
                numbers = self._switch.port_numbers
                self._switch.groups[operation.group] = [
                    name for name, number in numbers.items() if number in operation.ports
                ]

    def _in_band(self, operation: PacketOperation) -> None:
        block, part = self._reported[key_of(operation.key)], operation.fragment
        name = self._switch.name
        if isinstance(operation, Reclaim):
            put = Put(block, block.parts[part], name, part, reclaim=True, sequence=operation.sequence)
            if not self._switch.reclaim(put):
                self._answer(wire.OP_NOT_FOUND, block, part, operation.sequence, wire.FLAG_RECLAIM)
        elif isinstance(operation, PushFragment):
            if not self._switch.push(block, part, operation.sequence):
                self._answer(wire.OP_NOT_FOUND, block, part, operation.sequence, wire.FLAG_PUSHED)
        else:
            for wanted, fragments in enumerate(block.parts):
                self._switch.fill(Ask(block, wanted, fragments, name, 0, fill=True))

    def _on_miss(self, ask: Ask, count: int, backlog_ms: float, waiters: int) -> None:
        """Send a digest from the switch, by itself or in a list."""
        self.costs.digests += 1
        self.costs.message_bytes += self._options.digest_bytes
        block = ask.block
        self._reported[block.key] = block
        report = HotMiss(
            tenant=wire.TENANT_PUBLIC,
            key=block.key,
            parent=block.parent,
            depth=block.depth,
            chain_blocks=ask.chain_blocks,
            fragments=len(block.parts),
            backlog_ms=min(0xFFFF, round(self._by_clock(backlog_ms))),
            recompute_ms=self._recompute_ms(block),
            count=count,
            waiters=(1 << max(1, waiters)) - 1,
            home=self._homes[block.home],
        )
        self._misses.add(report)

    def _on_subscribed(self, block: Block, neighbour: str) -> None:
        """Send a digest of the other kind, a subscription, as `_on_miss` does."""
        self.costs.digests += 1
        self.costs.message_bytes += self._options.digest_bytes
        port = self._switch.port_numbers[neighbour]
        self._subscriptions.add(Subscription(wire.TENANT_PUBLIC, block.key, block.parent, port))

    def _send_misses(self, reports: list[HotMiss]) -> None:
        self._loop.after(self._heard_s(len(reports)), self._hot_misses, reports)

    def _send_subscriptions(self, reports: list[Subscription]) -> None:
        self._loop.after(self._heard_s(len(reports)), self._subscribed, reports)

    def _heard_s(self, reports: int) -> float:
        """Return the seconds until the controller has processed a list of so many digests that leaves now."""
        cpu_s = reports * self._options.digest_cpu_s
        arrival_s = max(self._loop.now + self._options.digest_latency_s, self._busy_until_s)
        self._busy_until_s = arrival_s + cpu_s
        self.costs.cpu_s += cpu_s
        return self._busy_until_s - self._loop.now

    def _hot_misses(self, reports: Sequence[HotMiss]) -> None:
        now_s = self._now_s
        self.pool.hot_misses(reports, now_s)
        self.pool.commit(now_s)

    def _subscribed(self, reports: Sequence[Subscription]) -> None:
        for report in reports:
            self.pool.subscribed(report, self._now_s)

    def _on_nowhere(self, block: Block) -> None:
        self._answer(wire.OP_NOT_FOUND, block, 0, 0, wire.FLAG_FILL)

    def _answer(self, op: int, block: Block, part: int, sequence: int, flags: int) -> None:
        self.costs.packets += 1
        message = wire.Message(op, block.key, part, len(block.parts), flags, sequence=sequence)
        self._answered(Answer(self._homes[block.home], message))

    def _answered(self, answer: Answer) -> None:
        now_s = self._now_s
        self.pool.answered(answer, now_s)
        self.pool.commit(now_s)
