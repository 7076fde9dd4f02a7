"""The pool of one switch: tells the policy what happened and has its decisions carried out.

Decisions are collected while events come in, and `commit` carries out what they amount to, removals and
installs in one write (`controller.pool.index_update`). What fails goes back to the policy as Lost or Found.
After a lost connection nothing is known for sure; `read_back` takes the switch's own entries as the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from ipaddress import IPv4Address
from typing import Final, cast

from controller.block_id import key_of
from controller.config import ON_THE_WAY, PoolSize, PushOptions, Thresholds
from controller.costs import PoolCounts
from controller.operations import (
    Adapter,
    Answer,
    HotMiss,
    Install,
    PoolPacket,
    PushFragment,
    Remove,
    Result,
    SetThreshold,
    Subscription,
)
from controller.policies import Admit, Event, Found, Hits, HomeLoad, Lost, Miss, Policy
from controller.policies.eviction_action import EvictionAction
from controller.pool.block_history import BlockHistory
from controller.pool.decisions import Decisions, Leaving
from controller.pool.expected import Expectations
from controller.pool.fill import Fills
from controller.pool.governor import ReportGovernor
from controller.pool.hinted import PoolHints
from controller.pool.hit_meter import HitMeter
from controller.pool.index_update import IndexUpdate
from controller.pool.known_blocks import KnownBlocks
from controller.pool.push import Push
from controller.pool.quota import Quota
from controller.pool.reclaim import End, Finished, Reclaims
from controller.pool.residual_value import ResidualValue
from controller.pool.slots import SlotAllocator, Slots
from hostlib.protocol import wire
from hostlib.protocol.homes import home_of

_KNOWN_PER_BLOCK: Final = 16
_MIN_KNOWN: Final = 65_536
_ROUNDS: Final = 3
"""Failures may bring new decisions in the same commit; what is left after these waits for the next."""


class Pool:
    """One switch's pool. Times are seconds on any clock that only moves forward."""

    def __init__(
        self,
        size: PoolSize,
        thresholds: Thresholds,
        stores: Sequence[IPv4Address],
        policy: Policy,
        adapter: Adapter,
        residual: ResidualValue,
        log: Callable[[Event], None] | None = None,
        push: PushOptions | None = None,
        admits: Callable[[HotMiss], bool] = lambda miss: True,
    ) -> None:
        self.counts = PoolCounts()
        self.needs_read_back = False
        """Something failed that should not have: the switch's entries should be read back."""
        self.policy = policy
        self.resident: dict[bytes, Slots] = {}
        """Blocks that have an entry in the pool index, and their slots."""
        self.block_history = BlockHistory()
        self.slots = SlotAllocator(size.usable_slots)
        self.reclaims = Reclaims(
            thresholds.spare_blocks(size.whole_blocks),
            thresholds.control_fragments_in_flight,
            thresholds.answer_timeout_s,
            thresholds.answer_tries,
        )
        self.fills = Fills(thresholds.control_fragments_in_flight, thresholds.answer_timeout_s, size.blocks)
        self.push: Push | None = None
        """What multicasts blocks unasked, if that is wanted."""
        if push is not None:
            limits = thresholds.control_fragments_in_flight, thresholds.answer_timeout_s
            self.push = Push(push, *limits)
        self._most_fragments = size.fragments
        self._thresholds, self._stores = thresholds, stores
        self._named = {str(store): store for store in stores}
        self._names = list(self._named)
        self._adapter, self._log, self._admits = adapter, log, admits
        self._residual = residual
        self._governor = ReportGovernor(thresholds.report_count, thresholds.max_digests_per_s)
        self._known = KnownBlocks(max(_MIN_KNOWN, _KNOWN_PER_BLOCK * size.blocks))
        self._expectations = Expectations(self._known, self._home_of, thresholds.max_digests_per_s)
        self._hits = HitMeter()
        share = thresholds.tenant_share
        self._quota = Quota()
        if share < 1:  # of what there is of both, but a block at least
            slots = max(size.fragments, int(share * size.usable_slots))
            self._quota = Quota(int(share * size.blocks), slots)
        self._hints = PoolHints(size.usable_slots, thresholds.max_digests_per_s, self)
        self._decisions, self._leaving = Decisions(), Leaving()

    @property
    def there(self) -> list[bytes]:
        """Return the resident blocks that somebody has, as far as is known: not those that a node still
        computes. Other threads may ask."""
        return [key for key in list(self.resident) if not self._is_expected(key)]

    def is_there(self, key: bytes) -> bool:
        """Return whether a block is resident and somebody has it."""
        return key in self.resident and not self._is_expected(key)

    @property
    def used_slots(self) -> int:
        """Return the number of slots of the blocks that have an entry."""
        return sum(slots.fragments for slots in self.resident.values())

    @property
    def due_s(self) -> float:
        """Return when `tick` has something to do though nothing happens before; pushes have to be looked
        for."""
        return min(
            self._governor.due_s,
            self.reclaims.due_s,
            self.fills.due_s,
            self._leaving.due_s,
            self._hints.due_s,
        )

    # What happens.

    def hot_misses(self, misses: Iterable[HotMiss], now_s: float) -> None:
        """Take reports that came together: chains from their beginning on, as what is not known of yet is
        nobody's parent. Values of one chain come from several homes, in any order."""
        for miss in sorted(misses, key=lambda miss: miss.depth):
            self.hot_miss(miss, now_s)

    def hot_miss(self, miss: HotMiss, now_s: float) -> None:
        """Take the switch's report of a block that is not in the pool and should perhaps be."""
        self._governor.reported(not miss.is_expected)
        times = self._known.report(miss) + miss.nodes - 1
        self.block_history.reported(miss.block, miss.depth, times)
        if self.push is not None:
            self.push.heard_of(miss.block, miss.parent)
        if not miss.is_expected:  # who computes a block knows nothing of its home
            self._home_load(miss.home, miss.backlog_ms, now_s)
            self._check_length(miss, now_s)
        if not 0 < miss.fragments <= self._most_fragments:
            self.counts.misfits += 1
        elif not self._admits(miss):
            self.counts.elsewhere += 1
        elif miss.block not in self.policy and self._makes_room_in_quota(miss.block, miss.fragments, now_s):
            parent, home = self._known.parent_of(miss), int(self._home(miss.block))
            place = miss.depth, miss.chain_blocks, parent, times, home
            recompute_s = miss.recompute_ms / 1000 * self._residual.speed
            self.tell(Miss(miss.block, now_s, *place, recompute_s, miss.tenant, miss.fragments))

    def _check_length(self, miss: HotMiss, now_s: float) -> None:
        """Remove a block that was installed with another length than its values have, and so fills no slot.

        The node that said it would be put was wrong. The block may come again as it is.
        """
        resident = self.resident.get(miss.block)
        if resident is not None and resident.fragments != miss.fragments and miss.block in self.policy:
            self._give_up(miss.block, now_s)

    def held_by_tenant(self) -> dict[int, int]:
        """Return the number of resident blocks of each tenant."""
        return self._quota.held()

    def _makes_room_in_quota(self, block: bytes, fragments: int, now_s: float) -> bool:
        """Have a tenant at its quota give up blocks of its own for a new one; return whether there is room
        then.

        A block that is to be entered, or is on its way out, can't be given up.
        """
        if self._quota.has_room(block, fragments):
            return True
        for victim in self._quota.oldest(block):
            if victim in self.policy and victim in self.resident:
                self.counts.over_quota += 1
                self._give_up(victim, now_s)
                if self._quota.has_room(block, fragments):
                    return True
        return False

    def subscribed(self, subscription: Subscription, now_s: float) -> None:
        """Take a node's wish for more of the prefix that it asks for."""
        if self.push is not None:
            self.counts.subscriptions += 1
            self.push.subscribed(subscription.block, subscription.parent, subscription.port, now_s)

    def dropped(self, reports: int) -> None:
        """Take note that so many reports were lost because they came too fast."""
        self._governor.reported(reports)

    def read_hits(self, now_s: float) -> None:
        """Read the switch's hit counters, and tell the policy: chains from their beginning on, as they were
        asked for."""
        readings = self._hits.read(self._adapter.read_hits(self._hits.slots()))
        for key, times in sorted(readings, key=lambda reading: self._depth(reading[0])):
            self.counts.hits += times
            self._known.fetched(key)
            self._quota.touched(key)
            self.block_history.hit(key, times)
            self.tell(Hits(key, now_s, times))
            if self.push is not None:
                self.push.hits(key, times)

    def answered(self, answer: Answer, now_s: float) -> None:
        """Take a message of the protocol that came to the controller."""
        message = answer.message
        if message.op == wire.OP_PUT_ACK and answer.source in self._stores:
            self._home_load(answer.source, message.backlog_ms, now_s)
            self.counts.reclaim_bytes += wire.VALUE_FRAME_BYTES + wire.HEADER_FRAME_BYTES
        if message.op == wire.OP_STAT:
            resident = self.resident.get(answer.block)
            self._hints.take(answer, resident.fragments if resident else 0, now_s)
        elif message.op == wire.OP_EXPECT:
            if self._thresholds.report_count:
                heard = self._expectations.heard(answer, now_s)
                self.counts.expected += len(heard)
                self.hot_misses(heard, now_s)
        elif message.op == wire.OP_NOT_FOUND and message.flags & wire.FLAG_FILL:
            self._nowhere(answer.block, now_s)
        elif message.flags & wire.FLAG_PUSHED:
            pass  # a slot that is not filled yet: its subscribers ask for that fragment
        elif finished := self.reclaims.answered(answer):
            self._leaving.add(finished, now_s)

    def _home_load(self, home: IPv4Address, backlog_ms: int, now_s: float) -> None:
        """Take note of a home's backlog; policies count in real time."""
        if home in self._stores:
            wait_s = backlog_ms / 1000
            self._residual.home_load(home, wait_s, now_s)
            residual = self._residual
            self.tell(HomeLoad(int(home), now_s, wait_s * residual.speed, residual.link_bit_s(home)))

    # What is done about it.

    def commit(self, now_s: float) -> None:
        """Carry out what the decisions so far amount to, and the answers of homes with it."""
        for _ in range(_ROUNDS):
            if not self._decisions:
                break
            self._carry_out(now_s)

    def tick(self, now_s: float) -> None:
        """Send what is due: fills, reclaims and their repetitions, another threshold."""
        if now_s >= self._leaving.due_s:
            self._carry_out(now_s)
        reclaims, given_up = self.reclaims.poll(now_s)
        self._finish(given_up, now_s)
        self.counts.reclaim_requests += len(reclaims)
        hints = self._hints.poll(now_s)
        packets: list[PoolPacket] = [*reclaims, *self.fills.poll(now_s), *self._pushes(now_s), *hints]
        if packets:
            self._adapter.send(packets)
        if (count := self._governor.adjust(now_s)) is not None:
            self._adapter.write([SetThreshold(count)])

    def _pushes(self, now_s: float) -> list[PushFragment]:
        """Bring the groups of subscribers up to date; what is to be pushed to them."""
        if self.push is None:
            return []
        if changes := self.push.groups(now_s):
            self.counts.group_changes += len(changes)
            for change, result in zip(changes, self._adapter.write(changes), strict=True):
                if result is not Result.OK:
                    self.push.refused(change)
        fragments = list(self.push.due(now_s, self.resident))
        self.counts.pushes = self.push.blocks
        return fragments

    def read_back(self, now_s: float, reached: int = 0) -> None:
        """Take the switch's entries as the truth: adopt what fits, remove the rest, tell the policy.

        Free slots get generations above `reached`, the highest that another controller may have given.
        """
        entries = self._adapter.read_blocks()
        self.needs_read_back = False
        self.counts.read_backs += 1
        self._decisions.clear()
        self._leaving.take()
        self.reclaims.clear()
        self.fills.clear()
        if self.push is not None:
            self.push.clear()
        self.slots.free_all()
        self.slots.start_after(reached)
        self._hits.clear()
        self.block_history.forget_residents()
        self._quota.clear()
        self.resident = {}
        foreign = [Remove(entry.key) for entry in entries if not self._adopt(entry)]
        if foreign:
            self._adapter.write(foreign)
        self._adapter.write([SetThreshold(self._governor.count)])
        self._hints.only(self.resident, now_s)
        for lost in [key for key in self.policy if key not in self.resident]:
            self.tell(Lost(lost, now_s))
        for found in [key for key in self.resident if key not in self.policy]:
            self.tell(Found(found, now_s, self.resident[found].fragments))
        self.commit(now_s)

    def _adopt(self, entry: Install) -> bool:
        slots = Slots(entry.base_slot, entry.generation, entry.fragments)
        if not 0 < entry.fragments <= self._most_fragments or not self.slots.claim(slots):
            return False
        self.resident[entry.key] = slots
        self._quota.entered(entry.key, entry.fragments)
        self._hits.started(entry.key, entry.base_slot, entry.fragments, settled=False)
        return True

    def tell(self, event: Event) -> None:
        """Tell the policy of an event; what it decides is carried out by `commit`."""
        if self._log is not None:
            self._log(event)
        for decision in self.policy.handle(event):
            key = cast("bytes", decision.key)
            if isinstance(decision, Admit):
                self._quota.entered(key, self._fragments(key))
            elif key not in self.resident:
                self._quota.left(key)
            if (stays := self._decisions.note(decision, self.resident)) is not None:
                self.reclaims.cancel(stays)
                self._leaving.keep(stays)
        if isinstance(event, Lost) and event.key not in self.resident:
            self._quota.left(cast("bytes", event.key))

    def _carry_out(self, now_s: float) -> None:
        finished = self._leaving.take()
        self._count_ends(finished.values())
        leaving = [key for key in finished if key in self.resident]
        evicted = self._decisions.take_evicted()
        leaving += [
            key
            for key, evict in evicted.items()
            if key in self.resident and not self._reclaim(key, evict.reuse_chance, now_s)
        ]
        admitted = self._decisions.take_admitted()
        for key in self._turn_over(leaving, admitted, now_s):
            leaving = self._in_the_way(self._fragments(key))
            for held in leaving:
                self.tell(Lost(held, now_s))
            self.counts.in_the_way += len(leaving)
            for left_out in self._turn_over(leaving, (key,), now_s):
                self.counts.no_slot += 1
                self.tell(Lost(left_out, now_s))

    def _in_the_way(self, fragments: int) -> list[bytes]:
        """Return the blocks that have to go so that as many slots are free in one piece; none if too few are.

        The policy counts slots and does not know where they lie; its spare slots make this rare.
        """
        if self.slots.free_slots < fragments:
            return []
        holders = {slots: held for held, slots in self.resident.items()}

        def may_go(slots: Slots) -> bool:
            held = holders.get(slots)
            return held is not None and held in self.policy and held not in self.policy.pinned

        return [holders[slots] for slots in self.slots.in_the_way(fragments, may_go)]

    def _reclaim(self, key: bytes, reuse_chance: float | None, now_s: float) -> bool:
        """Start to reclaim an evicted block; False if it is to go at once."""
        if self._thresholds.eviction == "drop" or not self._stores:
            self.counts.dropped += 1
            return False
        if self._is_expected(key):  # what there is of it came in the PUT that brought it to its home
            self.counts.held_elsewhere += 1
            return False
        home = self._home(key)
        if self._thresholds.eviction == "value" and self._is_worthless(key, reuse_chance, home, now_s):
            self.counts.stubs += 1
            return False
        started = self.reclaims.start(key, self.resident[key].fragments, home, now_s)
        self.counts.dropped += not started
        return started

    def _is_worthless(self, key: bytes, reuse_chance: float | None, home: IPv4Address, now_s: float) -> bool:
        """Return whether a block is not even worth sending if no other tier holds it. Then nobody need be
        asked."""
        action = self._residual.eviction_action(
            reuse_chance, self._depth(key), home, now_s, held_elsewhere=False
        )
        return action is EvictionAction.STUB

    def _finish(self, finished: Sequence[Finished], now_s: float) -> None:
        if finished:
            self._count_ends(finished)
            self._remove([transfer.key for transfer in finished], now_s)

    def _count_ends(self, finished: Iterable[Finished]) -> None:
        ends = [transfer.end for transfer in finished]
        self.counts.reclaimed += ends.count(End.SENT)
        self.counts.held_elsewhere += ends.count(End.HELD)
        self.counts.not_whole += ends.count(End.NOT_WHOLE)
        self.counts.reclaims_failed += ends.count(End.FAILED)

    def _give_up(self, key: bytes, now_s: float) -> None:
        """Give up a block, though the policy did not say so."""
        self.tell(Lost(key, now_s))
        self._remove([key], now_s)

    def _remove(self, keys: Sequence[bytes], now_s: float) -> None:
        self._turn_over(keys, (), now_s)

    def _turn_over(self, leaving: Iterable[bytes], coming: Iterable[bytes], now_s: float) -> Sequence[bytes]:
        """Remove entries and install others; tell the policy of what failed. Returns who found no slots."""
        outcome = IndexUpdate(self._adapter, self.slots).write(
            {key: self.resident[key] for key in leaving}, {key: self._fragments(key) for key in coming}
        )
        for key in outcome.left:
            self._left(key, now_s)
        for install in outcome.installed:
            self._entered(install, now_s)
        self.counts.refused += len(outcome.refused)
        if outcome.stayed or outcome.refused:
            self.needs_read_back = True
        for key in outcome.refused:
            self.tell(Lost(key, now_s))
        for key in outcome.stayed:
            self.tell(Found(key, now_s, self.resident[key].fragments))
        return outcome.no_slot

    def _left(self, key: bytes, now_s: float) -> None:
        """Handle an entry that is gone, as the switch confirmed."""
        slots = self.resident.pop(key)
        self._hints.release(key, now_s)
        self._quota.left(key)
        self._hits.ended(slots.base_slot)
        self.fills.cancel(key)
        if self.push is not None:
            self.push.removed(key)
        self.counts.evicted += 1
        self.block_history.evicted(key, now_s)

    def _entered(self, install: Install, now_s: float) -> None:
        """Handle a new entry that the switch confirmed."""
        self.counts.admitted += 1
        self.block_history.admitted(install.key, self._depth(install.key), now_s)
        slots = Slots(install.base_slot, install.generation, install.fragments)
        self.resident[install.key] = slots
        self._quota.entered(install.key, install.fragments)
        is_fetched = self._thresholds.fill != ON_THE_WAY and not self._is_expected(install.key)
        if is_fetched and self._stores:
            home = self._home(install.key)
            wanted = self._thresholds.fill == "now" or self._residual.is_idle(home, now_s)
            if wanted and self.fills.start(install.key, install.fragments, home):
                self.counts.fills += 1
        self._hits.started(install.key, install.base_slot, install.fragments)

    def _nowhere(self, key: bytes, now_s: float) -> None:
        """Give up a block that can't be filled, because its home does not hold it."""
        if key in self.resident and key not in self.reclaims:
            self.counts.not_found += 1
            self._give_up(key, now_s)

    def _fragments(self, key: bytes) -> int:
        known = self._known.get(key)
        return known.fragments if known else self._most_fragments

    def _is_expected(self, key: bytes) -> bool:
        """Return whether nobody is known to have a block yet; its PUT fills it."""
        known = self._known.get(key)
        return known is not None and known.is_expected

    def _depth(self, key: bytes) -> int:
        """Place in its chain, 0 where unknown."""
        known = self._known.get(key)
        return known.depth if known else 0

    def _home(self, key: bytes) -> IPv4Address:
        """Return the home of a block: the storage node that it came from, if it came from one."""
        known = self._known.get(key)
        if known and (known.home in self._stores or not self._stores):
            return known.home
        return self._home_of(key_of(key))

    def _home_of(self, key: bytes) -> IPv4Address:
        """Return the home of a block while all storage nodes are up; 0.0.0.0 if there are none."""
        return self._named[home_of(key, self._names)] if self._names else IPv4Address(0)
