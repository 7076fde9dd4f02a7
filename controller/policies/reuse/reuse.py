"""The project's own policy: a pool of the blocks whose learned value is highest (`learned.py`).

A block enters when it is asked for, if it is wanted or there is room. What leaves first is what is not
wanted any more, of that what was asked for or given up longest ago."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from controller.policies.base import NOTHING, Policy
from controller.policies.events import Admit, Decision, Demoted, Evict, Found, Hits, HomeLoad, Key, Lost, Miss
from controller.policies.explain import VALUED_ACCESSES, Account, Tenancy
from controller.policies.reuse.appraiser import Appraiser
from controller.policies.reuse.native import IN_POOL, UNKNOWN, Core, compiled
from controller.policies.reuse.reference import Reference
from controller.policies.reuse.reuse_ages import TICK_TOKENS, usual_blocks
from controller.policies.reuse.reuse_parts import Parts, Tuning
from controller.policies.reuse.worth import Worth
from controller.policies.tenants import Shares
from workload.cost import DEFAULT_LINK_BIT_S, CostModel

HISTORY_BLOCKS = 100_000
"""Blocks remembered at least; some hundred bytes each, where a block itself is tens of megabytes."""
HISTORY_OF_SMALL = 4.0
"""Largest factor by which the history grows for blocks smaller than usual, because it goes as far back in
tokens: 120 MB then."""
HISTORY_PER_SLOT = 4
HISTORY_OF_ONE_OF_MANY = 25_000
"""Blocks remembered at least of a tenant that came later than others."""
MOST_APPRAISERS = 16
"""Tenants that are each appraised by themselves; the others are together, as one of them would be. Each
takes 2 MB, beside what is remembered."""


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
    ) -> None:
        super().__init__(capacity_blocks, capacity_slots)
        self._parts, self._tuning = parts or Parts(), tuning or Tuning()
        cost = cost or CostModel()
        self._block_tokens = cost.block_tokens
        self._worth = Worth(cost, link_bit_s, uniform=not self._parts.worth)
        self._make_core = compiled() or Reference
        small = 1.0 / usual_blocks(cost.block_tokens)
        self._first = self._appraiser(round(HISTORY_BLOCKS * min(HISTORY_OF_SMALL, max(1.0, small))))
        """That of the only tenant, until there is another."""
        self._tenant = 0
        """Whose request is being answered."""
        self._shares: Shares | None = None
        """Who owns what, once there is more than one tenant."""
        self._appraisers: dict[int, Appraiser] = {}
        """By tenant, from then on."""
        self._others: Appraiser | None = None
        """That of all tenants that have none of their own."""

    @property
    def core(self) -> Core:
        """Return what is remembered, what is wanted, and the pool: of the first tenant."""
        return self._first.core

    def __contains__(self, key: object) -> bool:
        return key in (self._first.core if self._shares is None else self._shares)

    def __len__(self) -> int:
        return self.capacity.held_blocks

    def __iter__(self) -> Iterator[Key]:
        return iter(self._first.core if self._shares is None else self._shares)

    def miss(self, event: Miss) -> Sequence[Decision]:
        key, _, depth, chain_blocks, parent_key, times, home, recompute_s, tenant, fragments = event
        appraiser = self._first
        if tenant != self._tenant or self._shares is not None:
            appraiser = self._asked_by(tenant, key)
        place = self._worth.place(home, depth, recompute_s)
        if len(self._worth.seconds) != appraiser.places:
            appraiser.tell_worths()
        appraiser.count(times)
        core, is_last = appraiser.core, depth == chain_blocks - 1
        found = core.ask(key, parent_key, is_last, place, fragments, times)
        if found != UNKNOWN:
            return self._answer(appraiser, key, found, fragments)
        # Whoever asks for a block asks for what is before it: that report was lost, or is forgotten.
        assert parent_key is not None
        found = core.ask(parent_key, None, False, place, fragments, 1)
        before = self._answer(appraiser, parent_key, found, fragments)
        found = core.ask(key, parent_key, is_last, place, fragments, times)
        return (*before, *self._answer(appraiser, key, found, fragments))

    def hits(self, event: Hits) -> None:
        key, _, times = event
        appraiser = self._appraiser_of(key)
        appraiser.count(times)
        if appraiser.core.hits(key, times) == UNKNOWN:
            appraiser.core.ask(key, None, False, 0, self.capacity.fragments(key), times)
        if self._shares is not None:
            self._shares.touched(key)

    def lost(self, event: Lost) -> None:
        if event.key in self:
            self._leave(event.key)

    def found(self, event: Found) -> Sequence[Decision]:
        key = event.key
        if key in self:
            return NOTHING
        evicted: list[Decision] = []
        while not self.capacity.fits(event.fragments):
            victim = self._victim(event.fragments) or next((k for k in self if k not in self.pinned), None)
            if victim is None:
                return (*evicted, Evict(key))
            evicted.append(self._evict(victim))
        self._enter(self._appraiser_for(self._tenant), key, event.fragments)
        return evicted

    def demoted(self, event: Demoted) -> Sequence[Decision]:
        """Evict such a block, unless it is pinned or blocks behind it are wanted."""
        key = event.key
        if key in self.pinned or not self._appraiser_of(key).core.give_up(key):
            return NOTHING
        return super().demoted(event)

    def home_load(self, event: HomeLoad) -> None:
        self._worth.home_load(event.home, event.wait_s, event.link_bit_s)

    def explain(self, key: Key, tenant: int | None = None) -> Account:
        """Explain why the block is in the pool or not; `explain.in_words` makes sentences of it.

        A block that is not in the pool is assumed to be of the tenant that asked last, unless the caller
        names another.
        """
        tenancy = self._tenancy(key, tenant)
        asker = self._tenant if tenancy is None else tenancy.tenant
        appraiser = self._appraiser_for(asker)
        core = appraiser.core
        count, ticks, place, value, parent, parent_held = core.facts(key) or (0, 0, 0, 0.0, None, False)
        home, compute_s, fetch_s = self._worth.describe(place)
        cheapest_value = core.cheapest_value()
        # Values are seconds of step 0, per slot and tick.
        accesses = TICK_TOKENS / self._block_tokens  # in a tick
        unit_s = self._worth.unit_s * VALUED_ACCESSES / accesses
        return Account(
            key=key,
            in_pool=key in self,
            asked=count,
            accesses_ago=round(ticks * accesses),
            home=home,
            compute_s=compute_s,
            fetch_s=fetch_s,
            worth_s=self._worth.seconds[place],
            chance=core.chance(key) or 0.0,
            value_s=value * unit_s,
            cheapest_value_s=None if cheapest_value is None else cheapest_value * unit_s,
            wanted=core.is_wanted(key),
            next_to_leave=self._next_to_leave(asker),
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
        return Tenancy(owner, shares.held(owner), shares.share_of(owner), unit)

    def _next_to_leave(self, asker: int) -> Key | None:
        """Return the block that leaves for the next block of a tenant; None if there is room."""
        if self.capacity.fits(1):
            return None
        giver = asker if self._shares is None else self._shares.giver(asker, 1)
        return self._least(self._appraiser_for(giver), giver)

    def _appraiser(self, remembered: int) -> Appraiser:
        blocks, slots = self.capacity_blocks, self.capacity_slots or 0
        remembered = max(remembered, HISTORY_PER_SLOT * blocks) if self._parts.memory else 0
        hurdle, prefix = 1.0 + self._tuning.margin, self._parts.prefix
        return Appraiser(
            lambda: self._make_core(blocks, slots, remembered, hurdle, prefix),
            self._parts,
            self._tuning,
            self._worth,
            self._block_tokens,
            blocks,
        )

    def _asked_by(self, tenant: int, key: Key) -> Appraiser:
        """Return the appraiser of a block for which a tenant asks."""
        shares = self._shares
        if shares is None and not len(self) and not self._first.core.known():
            self._tenant = tenant  # the first to ask for anything
            return self._first
        if shares is None:
            capacity = self.capacity_slots or self.capacity_blocks
            shares = self._shares = Shares(capacity, self.capacity_blocks, self._tenant)
            self._appraisers[self._tenant] = self._first
            for held in self._first.core:
                shares.entered(held, self._tenant, self.capacity.fragments(held))
        shares.asked(tenant)
        owner = shares.owner(key)
        self._tenant = tenant if owner is None else owner
        if owner is not None:
            return self._appraiser_for(owner)
        if tenant not in self._appraisers and not shares.held(tenant):
            self._appraise_apart(shares, tenant)
        appraiser = self._appraiser_for(tenant)
        self._give_capacity(appraiser, self._capacity_of(shares, tenant))
        return appraiser

    def _appraise_apart(self, shares: Shares, tenant: int) -> None:
        """Give a tenant an appraiser of its own, unless there are too many of those."""
        if len(self._appraisers) >= MOST_APPRAISERS:
            gone = self._appraisers.keys() - shares.tenants()
            for name in gone:
                del self._appraisers[name]
        if len(self._appraisers) < MOST_APPRAISERS:
            self._appraisers[tenant] = self._appraiser(HISTORY_OF_ONE_OF_MANY)
        elif self._others is None:
            self._others = self._appraiser(HISTORY_OF_ONE_OF_MANY)

    def _capacity_of(self, shares: Shares, tenant: int) -> int:
        """Return the capacity of a tenant, together with all that are appraised with it."""
        apart = self._appraisers.keys()
        return shares.capacity(tenant) if tenant in apart else shares.capacity_beside(apart)

    def _give_capacity(self, appraiser: Appraiser, size: int) -> None:
        if self.capacity_slots is None:
            appraiser.core.resize(size, 0)
        else:
            # Entries are nobody's, but a tenant with few slots has no use for many.
            appraiser.core.resize(-(-self.capacity_blocks * size // self.capacity_slots), size)

    def _appraiser_for(self, tenant: int) -> Appraiser:
        return self._appraisers.get(tenant) or self._others or self._first

    def _appraiser_of(self, key: Key) -> Appraiser:
        """Return the appraiser of a block that is in the pool, or was until now."""
        if self._shares is None:
            return self._first
        owner = self._shares.owner(key)
        return self._appraiser_for(self._tenant if owner is None else owner)

    def _answer(self, appraiser: Appraiser, key: Key, found: int, fragments: int) -> Sequence[Decision]:
        """Let a block in that was asked for, if it is wanted; `found` is what the core answered."""
        if found == IN_POOL:
            if self._shares is not None:
                self._shares.touched(key)
            return NOTHING
        has_place = found or self.capacity.fits(fragments)  # the pool may have lost what is wanted
        if not has_place or (self._shares is not None and key in self._shares):
            return NOTHING
        leaving: list[Decision] = []
        while not self.capacity.fits(fragments):
            victim = self._victim(fragments)
            if victim is None:
                return leaving
            leaving.append(self._evict(victim))
        self._enter(appraiser, key, fragments)
        return (*leaving, Admit(key))

    def _victim(self, fragments: int) -> Key | None:
        """Return the block to evict next; None where all are pinned."""
        if self._shares is None:
            return self._least(self._first, self._tenant)
        giver = self._shares.giver(self._tenant, fragments)
        appraiser = self._appraiser_for(giver)
        if giver == self._tenant:
            return self._least(appraiser, giver)
        # With less room the learned value says what is missed least: a leaf.
        self._give_capacity(appraiser, max(1, self._capacity_of(self._shares, giver) - fragments))
        return self._least(appraiser, giver)

    def _least(self, appraiser: Appraiser, tenant: int) -> Key | None:
        """Return the block of a tenant that leaves first."""
        core, pinned = appraiser.core, self.pinned
        together = self._shares if appraiser is self._others else None
        seen, most = 0, 1 + len(pinned)
        while True:
            least = core.least(most)
            for key in least[seen:]:
                if key not in pinned and (together is None or together.owner(key) == tenant):
                    return key
            if len(least) < most:
                return None
            seen, most = most, 4 * most  # of several tenants' blocks the first may be others'

    def _evict(self, key: Key) -> Evict:
        core = self._appraiser_of(key).core
        self._leave(key)
        return Evict(key, core.chance(key))

    def _enter(self, appraiser: Appraiser, key: Key, fragments: int) -> None:
        appraiser.core.enter(key)
        self.capacity.entered(key, fragments)
        if self._shares is not None:
            self._shares.entered(key, self._tenant, self.capacity.fragments(key))

    def _leave(self, key: Key) -> None:
        self._appraiser_of(key).core.leave(key)
        self.capacity.left(key)
        if self._shares is not None:
            self._shares.left(key)
