"""Fair shares of a pool: no tenant loses a block to another while it holds no more than its share.

A share is the pool divided by the tenants that asked lately. What a tenant does not use, others may borrow: a
tenant below its share takes from those above theirs, whatever the blocks are worth."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container, Iterable

from controller.policies.events import Key

IDLE_POOLS = 8
"""A tenant that asked for nothing while so many times the pool's size was asked for has no share."""


class Shares:
    """Who owns which block of the pool. A block belongs to the tenant whose request brought it in."""

    def __init__(self, capacity_blocks: int, held: Iterable[Key], tenant: int) -> None:
        self._capacity_blocks = capacity_blocks
        self._owners: dict[Key, int] = dict.fromkeys(held, tenant)
        self._blocks: dict[int, OrderedDict[Key, None]] = {tenant: OrderedDict.fromkeys(self._owners)}
        """By tenant, what was asked for longest ago first."""
        self._asked_at: dict[int, int] = {tenant: 0}
        self._now = 0

    def held(self, tenant: int) -> int:
        """Blocks of a tenant in the pool."""
        return len(self._blocks.get(tenant, ()))

    def share(self) -> int:
        """Blocks that each tenant may have in any case."""
        return self._capacity_blocks // len(self._asked_at)

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

    def entered(self, key: Key, tenant: int) -> None:
        """A tenant's block entered the pool."""
        self._owners[key] = tenant
        self._blocks.setdefault(tenant, OrderedDict())[key] = None

    def left(self, key: Key) -> None:
        """A block left the pool."""
        owner = self._owners.pop(key, None)
        if owner is not None:
            del self._blocks[owner][key]
            if not self._blocks[owner]:
                del self._blocks[owner]

    def is_below(self, tenant: int) -> bool:
        """Whether a tenant has less than its share."""
        return self.held(tenant) < self.share()

    def may_take(self, key: Key, tenant: int) -> bool:
        """Whether a block may leave for one of a tenant."""
        owner = self._owners.get(key, tenant)
        return self._is_above(owner) or (owner == tenant and not self.is_below(tenant))

    def victim(self, tenant: int, pinned: Container[Key]) -> Key | None:
        """The block that leaves for one of a tenant, if the leader has none to give."""
        above = [owner for owner in self._blocks if owner != tenant and self._is_above(owner)]
        above.sort(key=self.held, reverse=True)
        owners = [*above, tenant] if self.is_below(tenant) else [tenant, *above]
        for owner in owners:
            for key in self._blocks.get(owner, ()):
                if key not in pinned:
                    return key
        return None

    def _is_above(self, tenant: int) -> bool:
        return self.held(tenant) > (self.share() if tenant in self._asked_at else 0)
