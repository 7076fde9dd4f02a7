"""Fair shares of a pool: no tenant loses a block to another while it holds no more than its share.

A share is the pool's slots (where nobody counts those, its entries) divided by the tenants that asked lately.
What a tenant does not use, others may borrow: a tenant below its share takes from the one that holds most
above its own, whatever the blocks are worth, and what is borrowed is divided evenly among those who want it.
Else a tenant gives for its blocks from its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import NamedTuple

from controller.policies.events import Key

IDLE_POOLS = 8
"""A tenant that asked for nothing while so many times the pool's size was asked for has no share."""


class Owned(NamedTuple):
    """A block in the pool."""

    tenant: int
    """Tenant whose request brought the block in."""
    size: int


class Shares:
    """Owners of the pool's blocks. A block belongs to the tenant whose request brought it in."""

    def __init__(self, capacity: int, capacity_blocks: int, tenant: int) -> None:
        """Make shares of `capacity`, in what sizes are in: slots, or blocks where each counts as one.

        Until now only `tenant` asked.
        """
        self._capacity, self._capacity_blocks = capacity, capacity_blocks
        self._owned: dict[Key, Owned] = {}
        self._held: Counter[int] = Counter()
        self._total = 0
        self._asked_at: dict[int, int] = {tenant: 0}
        self._now = 0

    def __contains__(self, key: object) -> bool:
        return key in self._owned

    def __iter__(self) -> Iterator[Key]:
        return iter(self._owned)

    def tenants(self) -> set[int]:
        """Return those who have a share, or a block."""
        return self._asked_at.keys() | self._held.keys()

    def held(self, tenant: int) -> int:
        """Return what a tenant has in the pool."""
        return self._held[tenant]

    def share(self) -> int:
        """Return what each tenant may have in any case."""
        return self._capacity // len(self._asked_at)

    def share_of(self, tenant: int) -> int:
        """Return what this one may have: nothing, if it asked for nothing lately."""
        return self.share() if tenant in self._asked_at else 0

    def capacity(self, tenant: int) -> int:
        """Return what a tenant may have: its share, or what others leave of the pool."""
        return max(1, self.share_of(tenant), self._capacity - (self._total - self._held[tenant]))

    def capacity_beside(self, apart: Collection[int]) -> int:
        """Return what all tenants but these may have together."""
        held = sum(self._held[tenant] for tenant in apart)
        sharing = len(self._asked_at) - sum(tenant in self._asked_at for tenant in apart)
        return max(1, sharing * self.share(), self._capacity - held)

    def owner(self, key: Key) -> int | None:
        """Return whose a block of the pool is."""
        owned = self._owned.get(key)
        return None if owned is None else owned.tenant

    def asked(self, tenant: int) -> None:
        """Record that a tenant asked for a block."""
        self._now += 1
        self._asked_at[tenant] = self._now
        if self._now % self._capacity_blocks == 0:
            oldest = self._now - IDLE_POOLS * self._capacity_blocks
            self._asked_at = {name: at for name, at in self._asked_at.items() if at > oldest}

    def touched(self, key: Key) -> None:
        """Note that a block of the pool was asked for."""
        owned = self._owned.get(key)
        if owned is not None:
            self._asked_at[owned.tenant] = self._now

    def entered(self, key: Key, tenant: int, size: int = 1) -> None:
        """Record that a tenant's block entered the pool."""
        self._owned[key] = Owned(tenant, size)
        self._held[tenant] += size
        self._total += size

    def left(self, key: Key) -> None:
        """Note that a block left the pool."""
        tenant, size = self._owned.pop(key)
        self._held[tenant] -= size
        self._total -= size
        if not self._held[tenant]:
            del self._held[tenant]

    def giver(self, tenant: int, size: int) -> int:
        """Return who gives for a block of that size of a tenant: who holds most above its share, if the
        tenant is below its own or would still hold no more; else the tenant itself."""
        above = [owner for owner in self._held if owner != tenant and self._is_above(owner)]
        if not above:
            return tenant
        most = max(above, key=self.held)
        is_due = self.held(tenant) < self.share() or self.held(most) > self.held(tenant) + size
        return most if is_due else tenant

    def _is_above(self, tenant: int) -> bool:
        return self.held(tenant) > self.share_of(tenant)
