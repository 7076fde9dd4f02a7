"""The project's own policy: experts vote, each with the weight that its savings earned.

Experts are the learned value (`learned.py`) and published policies (`shadows.py`), each a cache of the pool's
size without blocks. A block enters when it is asked for, if the experts that hold it then have no less weight
than those of what it displaces; what leaves first is what has the least votes, of that the block whose votes
changed longest ago (`votes.py`). So weights that shift write nothing by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from controller.policies.base import NOTHING, Policy
from controller.policies.events import Admit, Decision, Evict, Found, Hits, HomeLoad, Key, Lost, Miss
from controller.policies.explain import Account, Standing
from controller.policies.learned import LearnedValue
from controller.policies.reuse_history import Block
from controller.policies.reuse_model import TICK_ACCESSES
from controller.policies.reuse_parts import Parts, Tuning
from controller.policies.shadows import MIN_BLOCKS, Shadow, make_shadows
from controller.policies.tenants import Shares
from controller.policies.votes import Votes
from controller.policies.worth import Worth
from workload.cost import DEFAULT_LINK_BIT_S, CostModel

LOOKED_AT = 64
"""Blocks with the least votes of which one is sought that a tenant may take."""


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
        parts = parts or Parts()
        self._worth = Worth(cost or CostModel(), link_bit_s, uniform=not parts.worth)
        self._learned = LearnedValue(capacity_blocks, self._worth, parts, tuning, capacity_slots)
        shadows = self._make_shadows() if parts.experts and capacity_blocks >= MIN_BLOCKS else []
        self._published: list[tuple[int, Shadow]] = [
            (2 << number, shadow) for number, shadow in enumerate(shadows)
        ]
        self._everyone = (2 << len(shadows)) - 1
        """All experts, as bits; the learned value is the first."""
        silent = 0 if parts.learned or not shadows else 1
        self.votes = Votes(1 + len(shadows), capacity_blocks, silent)
        """What the pool holds, and for whom."""
        self._holders: dict[Key, int] = {}
        """Experts (bits) that hold a block, in the pool or not."""
        self._tenant = 0
        """Whose request is being answered."""
        self._shares: Shares | None = None
        """Who owns what, once there is more than one tenant."""

    def __contains__(self, key: object) -> bool:
        return key in self.votes

    def __len__(self) -> int:
        return len(self.votes)

    def __iter__(self) -> Iterator[Key]:
        return iter(self.votes)

    def miss(self, event: Miss) -> Sequence[Decision]:
        key, _, depth, chain_blocks, parent_key, times, home, recompute_s, tenant, fragments = event
        if tenant != self._tenant or self._shares is not None:
            self._asked_by(tenant)
        blocks = self._learned.blocks
        place = self._worth.place(home, depth, recompute_s)
        block = blocks.get(key)
        before: Sequence[Decision] = NOTHING
        if block is None:
            parent = None if parent_key is None else blocks.get(parent_key)
            if parent is None and parent_key is not None:
                # Whoever asks for a block asks for what is before it: that report was lost, or is forgotten.
                parent = self._new(parent_key, None, place, False)
                parent.fragments = fragments  # as nobody said another size
                before = self._pass_and_ask(parent, 1)
            block = self._new(key, parent, place, depth == chain_blocks - 1)
        block.place = place
        if block.fragments != fragments:
            self._learned.resize(block, fragments)
        after = self._pass_and_ask(block, times)
        return [*before, *after] if before else after

    def hits(self, event: Hits) -> None:
        block = self._learned.blocks.get(event.key)
        if block is None:
            block = self._new(event.key, None, 0, False)
            block.fragments = self.room.fragments(event.key)
        self._pass_and_ask(block, event.times, may_admit=False)

    def lost(self, event: Lost) -> None:
        if event.key in self.votes:
            self._leave(event.key)

    def found(self, event: Found) -> Sequence[Decision]:
        key = event.key
        if key in self.votes:
            return NOTHING
        evicted: list[Decision] = []
        while not self.room.fits(event.fragments):
            victim = self._victim() or next((k for k in self.votes if k not in self.pinned), None)
            if victim is None:
                return (*evicted, Evict(key))
            evicted.append(self._evict(victim))
        self._enter(key, event.fragments)
        return evicted

    def home_load(self, event: HomeLoad) -> None:
        self._worth.home_load(event.home, event.wait_s)

    def explain(self, key: Key) -> Account:
        """Why the block is in the pool or not; `explain.in_words` makes sentences of it."""
        learned, worth = self._learned, self._worth
        block = learned.blocks.get(key)
        place = block.place if block else 0
        home, compute_s, fetch_s = worth.describe(place)
        parent = block.parent if block else None
        names = [learned.name, *(shadow.name for _, shadow in self._published)]
        holders, total = self._holders.get(key, 0), sum(self.votes.weights)
        next_to_leave = next(self.votes.least_first(), None) if not self.room.fits(1) else None
        return Account(
            key=key,
            in_pool=key in self.votes,
            asked=block.count if block else 0,
            accesses_ago=learned.age(block) * TICK_ACCESSES if block else 0,
            home=home,
            compute_s=compute_s,
            fetch_s=fetch_s,
            worth_s=worth.seconds[place],
            chance=learned.chance(block) if block else 0.0,
            value=learned.value(block) if block else 0.0,
            cheapest_value=learned.cheapest_value(),
            experts=[
                Standing(name, saved_s, weight / total, bool(holders >> number & 1))
                for number, (name, saved_s, weight) in enumerate(
                    zip(names, self.votes.saved_s, self.votes.weights, strict=True)
                )
            ],
            votes=self.votes.of_set[holders] / total,
            votes_needed=next_to_leave[1] / total if next_to_leave else 0.0,
            parent=parent.key if parent else None,
            parent_held=parent.held if parent else False,
        )

    def _make_shadows(self) -> list[Shadow]:
        slots = self.capacity_slots
        if slots is None:
            return make_shadows(self.capacity_blocks)
        return make_shadows(self.capacity_blocks * slots, largest=slots)

    def _size(self, fragments: int) -> int:
        """What a block takes of a shadow: its part of the slots, or of the entries if that is more."""
        slots = self.capacity_slots
        return 1 if slots is None else max(fragments * self.capacity_blocks, slots)

    def _asked_by(self, tenant: int) -> None:
        if self._shares is None:
            held = {key: self.room.fragments(key) for key in self.votes}
            capacity = self.capacity_slots or self.capacity_blocks
            self._shares = Shares(capacity, self.capacity_blocks, held, self._tenant)
        self._tenant = tenant
        self._shares.asked(tenant)

    def _pass_and_ask(self, block: Block, times: int, may_admit: bool = True) -> Sequence[Decision]:
        """The clock goes on, then the block is asked for: it may have been forgotten in between."""
        if self._learned.passed(times):
            self.votes.tick(TICK_ACCESSES)
            if block.count and block.key not in self._learned.blocks:
                forgotten = block
                block = self._new(block.key, block.parent, block.place, block.is_last)
                block.fragments = forgotten.fragments
        self._learned.blocks[block.key] = block
        return self._asked(block, times, may_admit)

    def _new(self, key: Key, parent: Block | None, place: int, is_last: bool) -> Block:
        return Block(key, parent, place, is_last)

    def _asked(self, block: Block, times: int, may_admit: bool) -> Sequence[Decision]:
        """Ask all experts for the block, count what it saved each, and do as they vote."""
        key, votes, shares = block.key, self.votes, self._shares
        had = self._holders.get(key, 0)
        parent = block.parent
        block.served = served = had & (self._everyone if parent is None else parent.served)
        if served:
            votes.gains[served] += times * self._worth.seconds[block.place]
        holders = self._ask_experts(block, times)
        if key in votes:
            votes.put(key, holders)
            if shares is not None:
                shares.touched(key)
            return NOTHING
        is_due = shares is not None and shares.is_below(self._tenant)
        if not may_admit or not (holders or is_due):
            return NOTHING
        wanted = votes.of_set[holders]
        leaving: list[Decision] = []
        while not self.room.fits(block.fragments):
            victim = self._victim(None if is_due else wanted)
            if victim is None:
                return leaving
            leaving.append(self._evict(victim))
        self._enter(key, block.fragments)
        return (*leaving, Admit(key))

    def _ask_experts(self, block: Block, times: int) -> int:
        """Ask each for the block; who holds it now."""
        key = block.key
        learned = self._learned
        learned.ask(block, times)
        for evicted in learned.evicted:
            self._let_go(evicted, 1)
        holders = 1 if block.held else 0
        size = self._size(block.fragments)
        for bit, shadow in self._published:
            shadow.ask(key, size)
            holders |= bit
            for evicted in shadow.evicted:
                self._let_go(evicted, bit)
        if holders:
            self._holders[key] = holders
        else:
            self._holders.pop(key, None)
        return holders

    def _let_go(self, key: Key, bit: int) -> None:
        """An expert does not hold a block any more."""
        holders = self._holders.get(key, 0) & ~bit
        if holders:
            self._holders[key] = holders
        else:
            self._holders.pop(key, None)
        if key in self.votes:
            self.votes.put(key, holders)

    def _victim(self, at_most: float | None = None) -> Key | None:
        """The block to evict next, if its tenant has to give it and it has no more votes than that."""
        shares, tenant = self._shares, self._tenant
        for looked_at, (key, votes) in enumerate(self.votes.least_first()):
            if at_most is not None and votes > at_most:
                return None
            if key not in self.pinned and (shares is None or shares.may_take(key, tenant)):
                return key
            if shares is not None and looked_at >= LOOKED_AT:
                return shares.victim(tenant, self.pinned)
        return None

    def _evict(self, key: Key) -> Evict:
        self._leave(key)
        block = self._learned.blocks.get(key)
        return Evict(key, None if block is None else self._learned.chance(block))

    def _enter(self, key: Key, fragments: int) -> None:
        self.votes.put(key, self._holders.get(key, 0))
        self.room.entered(key, fragments)
        if self._shares is not None:
            self._shares.entered(key, self._tenant, self.room.fragments(key))

    def _leave(self, key: Key) -> None:
        self.votes.remove(key)
        self.room.left(key)
        if self._shares is not None:
            self._shares.left(key)
