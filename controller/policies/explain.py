"""Why a block is in the pool or not, in words and seconds."""

from __future__ import annotations

from dataclasses import dataclass

from controller.policies.events import Key

VALUED_ACCESSES = 1000
"""Values are what a block saves while so many accesses are made, whatever they ask for."""


@dataclass(frozen=True)
class Tenancy:
    """Tenant of a block, and how much of the pool this tenant holds."""

    tenant: int
    held: int
    share: int
    unit: str
    """Unit of `held` and `share`: slots or blocks."""


@dataclass(frozen=True)
class Account:
    """Knowledge that a policy has of one block at this moment."""

    key: Key
    in_pool: bool
    asked: int
    """Times that it was asked for, as far as that is remembered; 0: not heard of."""
    accesses_ago: int
    home: int
    compute_s: float
    fetch_s: float
    worth_s: float
    chance: float
    value_s: float
    """Seconds that the block saves for each slot and VALUED_ACCESSES."""
    cheapest_value_s: float | None
    """The lowest among the blocks that are wanted; None where there is room."""
    wanted: bool
    """Whether it is among the blocks of the highest values for which the pool has room."""
    next_to_leave: Key | None
    """Block that would leave for this one, or for another of its tenant; None if there is room."""
    parent: Key | None
    parent_held: bool
    tenancy: Tenancy | None
    """None where all is one tenant's, or where nobody said whose a block is that is not in the pool."""

    @property
    def is_leaving(self) -> bool:
        """Return whether it is among the next to leave."""
        return self.in_pool and (not self.wanted or self.key == self.next_to_leave)


def name_of(key: Key) -> str:
    """Return a block's key as people read it."""
    return key.hex() if isinstance(key, bytes) else str(key)


def in_words(account: Account) -> list[str]:
    """Return the account as sentences, the answer first."""
    key = name_of(account.key)
    if not account.asked:
        where = (
            "in the pool, but nothing is remembered of it"
            if account.in_pool
            else "not in the pool: never heard of"
        )
        return [f"{key} is {where}."]
    return [
        f"{key} is {'in' if account.in_pool else 'not in'} the pool, {_reason(account)}.",
        *_by_tenant(account.tenancy),
        f"It was asked for {account.asked:,} times, last {account.accesses_ago:,} accesses ago; "
        f"the chance that it is asked for again is {account.chance:.0%}.",
        f"A hit saves {1e3 * account.worth_s:.1f} ms: fetching it from home {account.home} takes "
        f"{1e3 * account.fetch_s:.1f} ms on average, computing it {1e3 * account.compute_s:.1f} ms.",
        f"So holding it is worth {1e3 * account.worth_s * account.chance:.2f} ms in all.",
        _by_value(account),
    ]


def _reason(account: Account) -> str:
    tenancy = account.tenancy
    if account.is_leaving:
        return "and among the next to leave: " + ("wanted" if account.wanted else "not wanted any more")
    if account.in_pool:
        return "because it is wanted"
    if not account.wanted:
        return "because it is not wanted: others are worth more"
    if tenancy is not None and tenancy.held >= tenancy.share:
        return (
            "although it is wanted: it enters when it is asked for again, in place of another block of "
            f"tenant {tenancy.tenant}, which holds its share"
        )
    return "although it is wanted: it enters when it is asked for again"


def _by_value(account: Account) -> str:
    if account.parent is not None and not account.parent_held:
        return "It is of no use: the block before it is not wanted."
    saves = f"It saves {1e3 * account.value_s:.3g} ms per slot and {VALUED_ACCESSES:,} accesses"
    if account.cheapest_value_s is None:
        return f"{saves} and has a place: there is room."
    ratio = account.value_s / account.cheapest_value_s if account.cheapest_value_s else float("inf")
    return f"{saves}, {ratio:.2f} times the cheapest block that is wanted."


def _by_tenant(tenancy: Tenancy | None) -> list[str]:
    if tenancy is None:
        return []
    return [
        f"Its tenant {tenancy.tenant} holds {tenancy.held:,} {tenancy.unit}; its share is {tenancy.share:,}."
    ]
