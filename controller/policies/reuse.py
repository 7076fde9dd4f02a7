"""The project's own policy: a learned value, and published policies that take over where they save more.

Experts are the learned value (`learned.py`) and published policies (`shadows.py`), each a cache of the pool's
size without blocks. The pool follows one (`votes.py`): a block enters when it is asked for, if that one holds
it. What leaves first is what it does not hold, of that what the others do not who were followed lately, of
that the block whose holders changed longest ago. So going over to another writes nothing by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from controller.policies.base import NOTHING, Policy
from controller.policies.events import Admit, Decision, Evict, Found, Hits, HomeLoad, Key, Lost, Miss
from controller.policies.explain import VALUED_ACCESSES, Account, Standing, Tenancy
from controller.policies.native import IN_POOL, UNKNOWN, compiled
from controller.policies.reference import Reference
from controller.policies.reuse_ages import TICK_ACCESSES
from controller.policies.reuse_model import Learner
from controller.policies.reuse_parts import Parts, Tuning
from controller.policies.reuse_prior import Counts
from controller.policies.shadows import EXPERTS, MIN_BLOCKS
from controller.policies.tenants import Shares
from controller.policies.votes import Votes
from controller.policies.worth import Worth
from workload.cost import DEFAULT_LINK_BIT_S, CostModel

HISTORY_BLOCKS = 100_000
"""Blocks remembered at least; some hundred bytes each, where a block itself is tens of megabytes."""
HISTORY_PER_SLOT = 4
REFRESH_TICKS = 8
"""What was learned is put to use every so many ticks at least, and whenever an eighth more has been seen or
was reused: so a loop is known for one by the first blocks of its second round, before they displace the
others. With 64 ticks instead of 8, 7 % less is saved where what is right changes (`phases`, 1,000 blocks)."""
MAX_TIMES = 4096
"""More requests than that in one event are not believed."""
LOOKED_AT = 64
"""Leaves of a tenant of which one is chosen that it gives up. With 32 a tenant beside a small one, that has
nearly all of the pool, hits 0.4 % less (`phases`, 600 blocks); if all are looked at, no more."""


class Reuse(Policy):
    """`parts` switches parts of it off, for the ablation."""

    name = "reuse"

    def __init__(
        self,
        capacity_blocks: int,
        cost: CostModel | None = None,
        parts: Parts | None = None,
        link_bit_s: float = DEFAULT_LINK_BIT_S,
        tuning: Tuning | None = None,
        capacity_slots: int | None = None,
        known: Counts | None = None,
    ) -> None:
        """`known` is what is known of reuse beforehand, unless that of the conversation trace."""
        super().__init__(capacity_blocks, capacity_slots)
        parts = parts or Parts()
        tuning = tuning or Tuning()
        self._parts = parts
        self._learner = Learner(parts, tuning, known)
        self._worth = Worth(cost or CostModel(), link_bit_s, uniform=not parts.worth)
        shadows = parts.experts and capacity_blocks >= MIN_BLOCKS
        remembered = max(HISTORY_BLOCKS, HISTORY_PER_SLOT * capacity_blocks) if parts.memory else 0
        make = compiled() or Reference
        self.core = make(
            capacity_blocks, capacity_slots or 0, shadows, remembered, 1.0 + tuning.margin, parts.prefix
        )
        """What is remembered, what experts hold, and the pool."""
        self._names = EXPERTS if shadows else EXPERTS[:1]
        silent = 0 if parts.learned or not shadows else 1
        self.votes = Votes(len(self._names), silent)
        self.core.set_order(self.votes.order)
        self.core.refresh(0.0, self._learner)
        self._accesses_left = TICK_ACCESSES
        """Until this tick ends."""
        self._tick = self._refreshed_at = 0
        self._reused_then = 0
        """Reuses until then."""
        self._places = 0
        """Places of worth that the core knows."""
        self._tell_worths()
        self._tenant = 0
        """Whose request is being answered."""
        self._shares: Shares | None = None
        """Who owns what, once there is more than one tenant."""

    def __contains__(self, key: object) -> bool:
        return key in self.core

    def __len__(self) -> int:
        return len(self.core)

    def __iter__(self) -> Iterator[Key]:
        return iter(self.core)

    def miss(self, event: Miss) -> Sequence[Decision]:
        key, _, depth, chain_blocks, parent_key, times, home, recompute_s, tenant, fragments = event
        if tenant != self._tenant or self._shares is not None:
            self._asked_by(tenant)
        place = self._worth.place(home, depth, recompute_s)
        if len(self._worth.seconds) != self._places:
            self._tell_worths()
        self._pass(times)
        is_last = depth == chain_blocks - 1
        found = self.core.ask(key, parent_key, is_last, place, fragments, times)
        if found != UNKNOWN:
            return self._vote(key, found, fragments)
        # Whoever asks for a block asks for what is before it: that report was lost, or is forgotten.
        assert parent_key is not None
        found = self.core.ask(parent_key, None, False, place, fragments, 1)
        before = self._vote(parent_key, found, fragments)
        after = self._vote(key, self.core.ask(key, parent_key, is_last, place, fragments, times), fragments)
        return (*before, *after)

    def hits(self, event: Hits) -> None:
        key, _, times = event
        self._pass(times)
        if self.core.hits(key, times) == UNKNOWN:
            self.core.ask(key, None, False, 0, self.room.fragments(key), times)
        if self._shares is not None:
            self._shares.touched(key)

    def lost(self, event: Lost) -> None:
        if event.key in self.core:
            self._leave(event.key)

    def found(self, event: Found) -> Sequence[Decision]:
        key = event.key
        if key in self.core:
            return NOTHING
        evicted: list[Decision] = []
        while not self.room.fits(event.fragments):
            victim = self._victim(key) or next((k for k in self.core if k not in self.pinned), None)
            if victim is None:
                return (*evicted, Evict(key))
            evicted.append(self._evict(victim))
        self._enter(key, event.fragments)
        return evicted

    def home_load(self, event: HomeLoad) -> None:
        self._worth.home_load(event.home, event.wait_s)

    def explain(self, key: Key, tenant: int | None = None) -> Account:
        """Why the block is in the pool or not; `explain.in_words` makes sentences of it. Of a block that is
        not in the pool one has to say whose it is: else it is taken for that of who asked last."""
        count, ticks, place, value, parent, parent_held = self.core.facts(key) or (0, 0, 0, 0.0, None, False)
        home, compute_s, fetch_s = self._worth.describe(place)
        holders = self.core.holders(key)
        tenancy = self._tenancy(key, tenant)
        next_to_leave = self._next_to_leave(self._tenant if tenancy is None else tenancy.tenant)
        cheapest_value = self.core.cheapest_value()
        # Values are seconds of step 0, per slot and tick.
        unit_s = self._worth.unit_s * VALUED_ACCESSES / TICK_ACCESSES
        return Account(
            key=key,
            in_pool=key in self.core,
            asked=count,
            accesses_ago=ticks * TICK_ACCESSES,
            home=home,
            compute_s=compute_s,
            fetch_s=fetch_s,
            worth_s=self._worth.seconds[place],
            chance=self.core.chance(key) or 0.0,
            value_s=value * unit_s,
            cheapest_value_s=None if cheapest_value is None else cheapest_value * unit_s,
            experts=[
                Standing(name, saved_s, number == self.votes.followed, bool(holders >> number & 1))
                for number, (name, saved_s) in enumerate(zip(self._names, self.votes.saved_s, strict=True))
            ],
            votes=self.votes.of_set[holders],
            votes_needed=0.0 if next_to_leave is None else self._votes_for(next_to_leave),
            next_to_leave=next_to_leave,
            parent=parent,
            parent_held=parent_held,
            tenancy=tenancy,
        )

    def _tenancy(self, key: Key, tenant: int | None) -> Tenancy | None:
        shares = self._shares
        if shares is None:
            return None
        owner = shares.owner(key)
        owner = tenant if owner is None else owner
        if owner is None:
            return None
        unit = "blocks" if self.capacity_slots is None else "slots"
        least = [] if self.room.fits(1) else self.core.least(1)
        votes_elsewhere = self._votes_for(least[0][0]) if least else 0.0
        return Tenancy(owner, shares.held(owner), shares.share_of(owner), unit, votes_elsewhere)

    def _next_to_leave(self, asker: int) -> Key | None:
        """What leaves for the next block of that tenant; None where there is room, or all is pinned."""
        if self.room.fits(1):
            return None
        if self._shares is not None:
            return self.core.cheapest_of(self._leaves_for(self._shares, asker), self.votes.followed)
        return next((key for key, _ in self.core.least(1 + len(self.pinned)) if key not in self.pinned), None)

    def _votes_for(self, key: Key) -> float:
        return self.votes.of_set[self.core.holders(key)]

    def _asked_by(self, tenant: int) -> None:
        if self._shares is None:
            capacity = self.capacity_slots or self.capacity_blocks
            self._shares = Shares(capacity, self.capacity_blocks, self._tenant)
            for key, _ in self.core.least(len(self.core)):
                self._owned_by(self._tenant, key)
        self._tenant = tenant
        self._shares.asked(tenant)

    def _owned_by(self, tenant: int, key: Key) -> None:
        if self._shares is not None:
            self._shares.entered(key, tenant, self.room.fragments(key), self._parent_of(key))

    def _parent_of(self, key: Key) -> Key | None:
        facts = self.core.facts(key)
        return None if facts is None else facts[4]

    def _pass(self, times: int) -> None:
        """So many requests are about to be counted: the clock goes on."""
        self._accesses_left -= times if times < MAX_TIMES else MAX_TIMES
        if self._accesses_left > 0:
            return
        core = self.core
        while self._accesses_left <= 0:
            self._accesses_left += TICK_ACCESSES
            self._tick += 1
            reused = core.end_tick()
        if self.votes.tick(*core.take_gains(), TICK_ACCESSES, len(core)):
            core.set_order(self.votes.order)
        ticks = self._tick - self._refreshed_at
        is_more = 8 * ticks >= self._tick or 8 * (reused - self._reused_then) > self._reused_then
        if ticks >= REFRESH_TICKS or is_more:
            self._refreshed_at, self._reused_then = self._tick, reused
            if self._parts.learning:
                core.refresh(ticks, self._learner)
            self._worth.refresh()
            self._tell_worths()

    def _tell_worths(self) -> None:
        self.core.set_worths(self._worth.seconds, self._worth.steps)
        self._places = len(self._worth.seconds)

    def _vote(self, key: Key, holders: int, fragments: int) -> Sequence[Decision]:
        """Do as the experts vote about a block that was asked for; `holders` is what the core answered."""
        shares = self._shares
        if holders == IN_POOL:
            if shares is not None:
                shares.touched(key)
            return NOTHING
        is_due = shares is not None and shares.is_below(self._tenant)
        if not (holders or is_due):
            return NOTHING
        leaving: list[Decision] = []
        while not self.room.fits(fragments):
            victim = self._victim(key, None if is_due else self.votes.of_set[holders])
            if victim is None:
                return leaving
            leaving.append(self._evict(victim))
        self._enter(key, fragments)
        return (*leaving, Admit(key))

    def _victim(self, newcomer: Key, at_most: float | None = None) -> Key | None:
        """The block to evict next, if it has no more votes than that."""
        if self._shares is not None:
            return self._victim_by_shares(self._shares, newcomer, at_most)
        for key, holders in self.core.least(1 + len(self.pinned)):
            if at_most is not None and self.votes.of_set[holders] > at_most:
                return None
            if key not in self.pinned:
                return key
        return None

    def _victim_by_shares(self, shares: Shares, newcomer: Key, at_most: float | None) -> Key | None:
        """The same among what those have who have to give: first what the expert that is followed does not
        hold, of that what has the least learned value.

        The order of votes is of no use there. Experts know nothing of shares: what they hold of a tenant is
        more than its share, or next to nothing where another floods them.
        """
        leaves = self._leaves_for(shares, self._tenant)
        shares.looked_at(leaves)
        victim = self.core.cheapest_of(leaves, self.votes.followed)
        if victim is None or at_most is None:
            return victim
        # Behind a block that left for it the newcomer would be of no use.
        is_worth_it = self._votes_for(victim) <= at_most
        return victim if is_worth_it and victim != self._parent_of(newcomer) else None

    def _leaves_for(self, shares: Shares, asker: int) -> list[Key]:
        """Of which one leaves for a block of that tenant."""
        givers = shares.givers(asker)
        return [key for giver in givers for key in shares.leaves(giver, LOOKED_AT, self.pinned)]

    def _evict(self, key: Key) -> Evict:
        self._leave(key)
        return Evict(key, self.core.chance(key))

    def _enter(self, key: Key, fragments: int) -> None:
        self.core.enter(key)
        self.room.entered(key, fragments)
        self._owned_by(self._tenant, key)

    def _leave(self, key: Key) -> None:
        self.core.leave(key)
        self.room.left(key)
        if self._shares is not None:
            self._shares.left(key)
