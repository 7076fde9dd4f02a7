"""The project's own policy: follows the expert that saves most seconds, by shadow caches of them all.

Experts are the learned value (`learned.py`) and published policies (`shadows.py`). Each says what it would
hold; `leader.py` chooses the one to follow. The pool holds what the leader holds, as far as that was asked
for since it leads: a block enters when it is asked for and the leader holds it, and what leaves first is what
the leader does not hold. So a change of leader writes nothing by itself."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence

from controller.policies.base import NOTHING, Policy
from controller.policies.events import Admit, Decision, Evict, Found, Hits, HomeLoad, Key, Lost, Miss
from controller.policies.explain import Account, Standing
from controller.policies.leader import Leader
from controller.policies.learned import LearnedValue
from controller.policies.reuse_history import Block
from controller.policies.reuse_model import TICK_ACCESSES
from controller.policies.reuse_parts import Parts, Tuning
from controller.policies.shadows import MIN_BLOCKS, SHADOWS, Shadow
from controller.policies.tenants import Shares
from controller.policies.worth import Worth
from workload.cost import DEFAULT_LINK_BIT_S, CostModel

PRICED_BLOCKS = 256
"""Blocks looked at for the price of a change."""
SHADOW_BLOCKS = 256
"""Shadows of larger pools are sampled by key (Waldspurger et al., FAST'15): a shadow of a half, a quarter or
less of the pool's size is asked for that share of all blocks, and is no smaller than this. What
smaller ones hit depends on which hot blocks happen to be in the sample."""
MAX_SAMPLE = 64
REPLAYED = 4
"""Accesses a slot of the pool from which an expert's content is made up when it begins to lead."""


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
        self._sample = sample_of(capacity_blocks)
        shadows = SHADOWS if parts.experts and capacity_blocks >= MIN_BLOCKS else ()
        self._published: list[tuple[int, Shadow]] = [
            (2 << number, make(capacity_blocks // self._sample, self._sample))
            for number, make in enumerate(shadows)
        ]
        self._experts: list[LearnedValue | Shadow] = [
            self._learned,
            *(shadow for _, shadow in self._published),
        ]
        check_ticks = max(1, capacity_blocks // TICK_ACCESSES)
        self.leader = Leader(len(self._experts), check_ticks, first=0 if parts.learned or not shadows else 1)
        self._followed = self._full_size(self.leader.now)
        self._is_apart = self._followed not in self._experts
        """Whether what is followed has to be asked on its own."""
        self._everyone = (2 << len(shadows)) - 1
        """All experts, as bits."""
        self._pool: dict[Key, None] = {}
        self._stale: OrderedDict[Key, None] = OrderedDict()
        """Blocks in the pool that the leader does not hold: they leave first."""
        self._tenant = 0
        """Whose request is being answered."""
        self._shares: Shares | None = None
        """Who owns what, once there is more than one tenant."""

    def __contains__(self, key: object) -> bool:
        return key in self._pool

    def __len__(self) -> int:
        return len(self._pool)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._pool)

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
        if event.key in self._pool:
            self._leave(event.key)

    def found(self, event: Found) -> Sequence[Decision]:
        key = event.key
        if key in self._pool:
            return NOTHING
        evicted: list[Decision] = []
        while not self.room.fits(event.fragments):
            victim = self._victim() or next((k for k in self._pool if k not in self.pinned), None)
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
        names = [expert.name for expert in self._experts]
        parent = block.parent if block else None
        return Account(
            key=key,
            in_pool=key in self._pool,
            asked=block.count if block else 0,
            accesses_ago=learned.age(block) * TICK_ACCESSES if block else 0,
            home=home,
            compute_s=compute_s,
            fetch_s=fetch_s,
            worth_s=worth.seconds[place],
            chance=learned.chance(block) if block else 0.0,
            value=learned.value(block) if block else 0.0,
            cheapest_value=learned.cheapest_value(),
            leads=names[self.leader.now],
            experts=[
                Standing(
                    name,
                    saved_s,
                    key in (self._followed if number == self.leader.now else expert),
                )
                for number, (name, saved_s, expert) in enumerate(
                    zip(names, self.leader.saved_s, self._experts, strict=True)
                )
            ],
            is_stale=key in self._stale,
            parent=parent.key if parent else None,
            parent_held=parent.held if parent else False,
        )

    def _asked_by(self, tenant: int) -> None:
        if self._shares is None:
            self._shares = Shares(self.capacity_blocks, self._pool, self._tenant)
        self._tenant = tenant
        self._shares.asked(tenant)

    def _pass_and_ask(self, block: Block, times: int, may_admit: bool = True) -> Sequence[Decision]:
        """The clock goes on, then the block is asked for: it may have been forgotten in between."""
        if self._learned.passed(times):
            if len(self._experts) > 1 and self.leader.tick(self._price_s):
                self._follow()
            if block.count and block.key not in self._learned.blocks:
                forgotten = block
                block = self._new(block.key, block.parent, block.place, block.is_last)
                block.fragments = forgotten.fragments
        self._learned.blocks[block.key] = block
        return self._asked(block, times, may_admit)

    def _new(self, key: Key, parent: Block | None, place: int, is_last: bool) -> Block:
        block = Block(key, parent, place, is_last)
        block.sampled = self._sample == 1 or spread(key) % self._sample == 0
        return block

    def _asked(self, block: Block, times: int, may_admit: bool) -> Sequence[Decision]:
        """Ask all experts for the block, count what it saved each, and follow the leader."""
        key, followed = block.key, self._followed
        had = 1 if self._learned.ask(block, times) else 0
        parent = block.parent
        served = self._everyone if parent is None else parent.served
        if block.sampled:
            for bit, shadow in self._published:
                if shadow.ask(key):
                    had |= bit
            served &= had
            if served:
                self.leader.gains[served] += times * self._sample * self._worth.seconds[block.place]
        block.served = served
        if self._is_apart:
            followed.ask(key)  # type: ignore[call-arg, arg-type]  # only shadows are apart
        pool = self._pool
        for evicted in followed.evicted:
            if evicted in pool:
                self._stale[evicted] = None
        shares = self._shares
        if key in pool:
            if key in self._stale and key in followed:
                del self._stale[key]
            if shares is not None:
                shares.touched(key)
            return NOTHING
        wanted = key in followed or (shares is not None and shares.is_below(self._tenant))
        if not may_admit or not wanted:
            return NOTHING
        leaving: list[Decision] = []
        while not self.room.fits(block.fragments):
            victim = self._victim()
            if victim is None:
                return leaving
            leaving.append(self._evict(victim))
        self._enter(key, block.fragments)
        return (*leaving, Admit(key))

    def _victim(self) -> Key | None:
        """The block to evict next: one that the leader does not hold, if its tenant has to give it."""
        shares, tenant = self._shares, self._tenant
        for key in self._stale:
            if key not in self.pinned and (shares is None or shares.may_take(key, tenant)):
                return key
        return None if shares is None else shares.victim(tenant, self.pinned)

    def _evict(self, key: Key) -> Evict:
        self._leave(key)
        block = self._learned.blocks.get(key)
        return Evict(key, None if block is None else self._learned.chance(block))

    def _enter(self, key: Key, fragments: int) -> None:
        self._pool[key] = None
        self.room.entered(key, fragments)
        if key not in self._followed:
            self._stale[key] = None
        if self._shares is not None:
            self._shares.entered(key, self._tenant)

    def _leave(self, key: Key) -> None:
        del self._pool[key]
        self.room.left(key)
        self._stale.pop(key, None)
        if self._shares is not None:
            self._shares.left(key)

    def _price_s(self, expert: int) -> float:
        """What going over to an expert costs: its blocks that the pool lacks and that will be asked for."""
        lacking = [key for key in self._experts[expert] if key not in self._pool]
        seen = lacking[:: len(lacking) // PRICED_BLOCKS + 1]
        cost_s = sum(self._expected_s(key) for key in seen)
        return cost_s * len(lacking) / len(seen) * self._share(expert) if seen else 0.0

    def _expected_s(self, key: Key) -> float:
        """Seconds that holding a block saves, times the chance that it is asked for."""
        block = self._learned.blocks.get(key)
        return 0.0 if block is None else self._learned.chance(block) * self._worth.seconds[block.place]

    def _share(self, expert: int) -> int:
        """One of how many blocks the expert is asked for; the learned value, for all."""
        return self._sample if expert else 1

    def _full_size(self, expert: int) -> LearnedValue | Shadow:
        """What an expert would hold; of a sampled shadow, one of the pool's size that was asked the same."""
        if self._share(expert) == 1:
            return self._experts[expert]
        shadow = SHADOWS[expert - 1](self.capacity_blocks)
        for key in self._learned.last_asked(REPLAYED * self.capacity_blocks):
            shadow.ask(key)
        return shadow

    def _follow(self) -> None:
        """Another expert leads: what it does not hold leaves from now on, the longest unused first."""
        self._followed = self._full_size(self.leader.now)
        self._is_apart = self._followed not in self._experts
        blocks = self._learned.blocks

        def last_tick(key: Key) -> int:
            block = blocks.get(key)
            return -1 if block is None else block.cohort.tick

        stale = [key for key in self._pool if key not in self._followed]
        self._stale = OrderedDict.fromkeys(sorted(stale, key=last_tick))


def sample_of(capacity_blocks: int) -> int:
    """One of how many blocks the shadows of a pool of this size are asked for: a power of two."""
    return min(MAX_SAMPLE, 1 << max(0, (capacity_blocks // SHADOW_BLOCKS).bit_length() - 1))


def spread(key: Key) -> int:
    """A number that says nothing about the order of keys: part of a block key, or a trace's id, scattered."""
    return key[0] if isinstance(key, bytes) else (key * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF) >> 56
