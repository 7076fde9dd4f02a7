"""Fair shares of a pool: no tenant loses a block to another while it holds no more than its share.

A share is the pool's slots (where nobody counts those, its entries) divided by the tenants that asked lately.
What a tenant does not use, others may borrow: a tenant below its share takes from those above theirs,
whatever the blocks are worth."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container, Mapping

from controller.policies.events import Key

IDLE_POOLS = 8
"""A tenant that asked for nothing while so many times the pool's size was asked for has no share."""


class Shares:
    """Who owns which block of the pool. A block belongs to the tenant whose request brought it in."""

    def __init__(self, capacity: int, capacity_blocks: int, held: Mapping[Key, int], tenant: int) -> None:
        """`capacity` is in what sizes are in: slots, or blocks where each counts as one.

        What is held already, by size, is that tenant's.
        """
        self._capacity, self._capacity_blocks = capacity, capacity_blocks
        self._owners: dict[Key, int] = dict.fromkeys(held, tenant)
        self._blocks: dict[int, OrderedDict[Key, int]] = {tenant: OrderedDict(held)}
        """By tenant, sizes by key, what was asked for longest ago first."""
        self._held: dict[int, int] = {tenant: sum(held.values())}
        self._asked_at: dict[int, int] = {tenant: 0}
        self._now = 0

    def held(self, tenant: int) -> int:
        """What a tenant has in the pool."""
        return self._held.get(tenant, 0)

    def share(self) -> int:
        """What each tenant may have in any case."""
        return self._capacity // len(self._asked_at)

    def share_of(self, tenant: int) -> int:
        """What this one may have: nothing, if it asked for nothing lately."""
        return self.share() if tenant in self._asked_at else 0

    def owner(self, key: Key) -> int | None:
        """Whose a block of the pool is."""
        return self._owners.get(key)

    def asked(self, tenant: int) -> None:
        """A tenant asked for a block."""
        self._now += 1
        self._asked_at[tenant] = self._now
        if self._now % self._capacity_blocks == 0:
            oldest = self._now - IDLE_POOLS * self._capacity_blocks
            self._asked_at = {name: at for name, at in self._asked_at.items() if at > oldest}

    def touched(self, key: Key) -> None:
        """A block of the pool was asked for."""
        owner = self._owners.get(key)
        if owner is not None:
            self._blocks[owner].move_to_end(key)
            self._asked_at[owner] = self._now

    def entered(self, key: Key, tenant: int, size: int = 1) -> None:
        """A tenant's block entered the pool."""
        self._owners[key] = tenant
        self._blocks.setdefault(tenant, OrderedDict())[key] = size
        self._held[tenant] = self._held.get(tenant, 0) + size

    def left(self, key: Key) -> None:
        """A block left the pool."""
        owner = self._owners.pop(key, None)
        if owner is not None:
            self._held[owner] -= self._blocks[owner].pop(key)
            if not self._blocks[owner]:
                del self._blocks[owner], self._held[owner]

    def is_below(self, tenant: int) -> bool:
        """Whether a tenant has less than its share."""
        return self.held(tenant) < self.share()

    def may_take(self, key: Key, tenant: int) -> bool:
        """Whether a block may leave for one of a tenant."""
        owner = self._owners.get(key, tenant)
        return self._is_above(owner) or (owner == tenant and not self.is_below(tenant))

    def victim(self, tenant: int, pinned: Container[Key]) -> Key | None:
        """The block that leaves for one of a tenant, if none of those with the least votes may."""
        above = [owner for owner in self._blocks if owner != tenant and self._is_above(owner)]
        above.sort(key=self.held, reverse=True)
        owners = [*above, tenant] if self.is_below(tenant) else [tenant, *above]
        for owner in owners:
            for key in self._blocks.get(owner, ()):
                if key not in pinned:
                    return key
        return None

    def _is_above(self, tenant: int) -> bool:
        return self.held(tenant) > self.share_of(tenant)
