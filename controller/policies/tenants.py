"""Fair shares of a pool: no tenant loses a block to another while it holds no more than its share.

A share is the pool's slots (where nobody counts those, its entries) divided by the tenants that asked lately.
What a tenant does not use, others may borrow: a tenant below its share takes from the one that holds most
above its own, whatever the blocks are worth. A tenant at its share gives a block of its own, a leaf: one that
no other block in the pool follows."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Container, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from controller.policies.events import Key

IDLE_POOLS = 8
"""A tenant that asked for nothing while so many times the pool's size was asked for has no share."""


class Owned(NamedTuple):
    """A block in the pool."""

    tenant: int
    """Whose request brought it in."""
    size: int
    parent: Key | None


class Shares:
    """Who owns which block of the pool. A block belongs to the tenant whose request brought it in."""

    def __init__(self, capacity: int, capacity_blocks: int, tenant: int) -> None:
        """`capacity` is in what sizes are in: slots, or blocks where each counts as one; until now only that
        tenant asked."""
        self._capacity, self._capacity_blocks = capacity, capacity_blocks
        self._owned: dict[Key, Owned] = {}
        self._followers: Counter[Key] = Counter()
        """Blocks in the pool by what is before them, which need not be in the pool."""
        self._leaves: dict[int, OrderedDict[Key, None]] = {}
        """By tenant, what was looked at longest ago first."""
        self._held: Counter[int] = Counter()
        self._asked_at: dict[int, int] = {tenant: 0}
        self._now = 0

    def held(self, tenant: int) -> int:
        """What a tenant has in the pool."""
        return self._held[tenant]

    def share(self) -> int:
        """What each tenant may have in any case."""
        return self._capacity // len(self._asked_at)

    def share_of(self, tenant: int) -> int:
        """What this one may have: nothing, if it asked for nothing lately."""
        return self.share() if tenant in self._asked_at else 0

    def owner(self, key: Key) -> int | None:
        """Whose a block of the pool is."""
        owned = self._owned.get(key)
        return None if owned is None else owned.tenant

    def asked(self, tenant: int) -> None:
        """A tenant asked for a block."""
        self._now += 1
        self._asked_at[tenant] = self._now
        if self._now % self._capacity_blocks == 0:
            oldest = self._now - IDLE_POOLS * self._capacity_blocks
            self._asked_at = {name: at for name, at in self._asked_at.items() if at > oldest}

    def touched(self, key: Key) -> None:
        """A block of the pool was asked for."""
        owned = self._owned.get(key)
        if owned is not None:
            self._asked_at[owned.tenant] = self._now

    def entered(self, key: Key, tenant: int, size: int = 1, parent: Key | None = None) -> None:
        """A tenant's block entered the pool."""
        self._owned[key] = Owned(tenant, size, parent)
        self._held[tenant] += size
        if not self._followers[key]:
            self._leaves_of(tenant)[key] = None
        if parent is not None:
            self._followers[parent] += 1
            if parent in self._owned:
                self._leaves_of(self._owned[parent].tenant).pop(parent, None)

    def left(self, key: Key) -> None:
        """A block left the pool."""
        tenant, size, parent = self._owned.pop(key)
        self._held[tenant] -= size
        self._leaves_of(tenant).pop(key, None)
        if parent is not None:
            self._followers[parent] -= 1
            if not self._followers[parent]:
                del self._followers[parent]
                if parent in self._owned:
                    self._leaves_of(self._owned[parent].tenant)[parent] = None
        if not self._held[tenant]:
            del self._held[tenant], self._leaves[tenant]

    def is_below(self, tenant: int) -> bool:
        """Whether a tenant has less than its share."""
        return self.held(tenant) < self.share()

    def givers(self, tenant: int) -> list[int]:
        """Those of whom one gives a block for one of a tenant: who holds most above its share, and the tenant
        itself, unless it is below its own."""
        above = [owner for owner in self._held if owner != tenant and self._is_above(owner)]
        if not above:
            return [tenant]
        most = max(above, key=self.held)
        return [most] if self.is_below(tenant) else [most, tenant]

    def leaves(self, tenant: int, most: int, pinned: Container[Key]) -> list[Key]:
        """So many leaves of a tenant at most, those first that nobody looked at for longest."""
        leaves = list(islice((key for key in self._leaves_of(tenant) if key not in pinned), most))
        # Leaves may be pinned, and reports may name blocks before each other in a circle.
        return leaves or list(islice(self._unpinned(tenant, pinned), 1))

    def looked_at(self, keys: Iterable[Key]) -> None:
        """The next time others have their turn."""
        for key in keys:
            leaves = self._leaves_of(self._owned[key].tenant)
            if key in leaves:
                leaves.move_to_end(key)

    def _unpinned(self, tenant: int, pinned: Container[Key]) -> Iterator[Key]:
        return (key for key, owned in self._owned.items() if owned.tenant == tenant and key not in pinned)

    def _leaves_of(self, tenant: int) -> OrderedDict[Key, None]:
        return self._leaves.setdefault(tenant, OrderedDict())

    def _is_above(self, tenant: int) -> bool:
        return self.held(tenant) > self.share_of(tenant)
