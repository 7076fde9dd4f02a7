"""Why a block is in the pool or not, in words and seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from controller.policies.events import Key


@dataclass(frozen=True)
class Standing:
    """What is known of one expert, at this moment."""

    name: str
    saved_s: float
    followed: bool
    """The pool does as this one does, and asks the others where it is indifferent."""
    holds: bool


VALUED_ACCESSES = 1000
"""Values are what a block saves while so many accesses are made, whatever they ask for."""


@dataclass(frozen=True)
class Tenancy:
    """Whose a block is, and what that one has of the pool."""

    tenant: int
    held: int
    share: int
    unit: str
    """What is counted: slots or blocks."""


@dataclass(frozen=True)
class Account:
    """What a policy knows of one block, at this moment."""

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
    """What it saves per slot and VALUED_ACCESSES, by learned value."""
    cheapest_value_s: float | None
    """The lowest that the learned value holds; None where it has room."""
    experts: Sequence[Standing]
    votes: float
    """Weight of the experts that hold it; only what is more or less says something."""
    votes_needed: float
    """What the next block to leave has; 0 where there is room, or where another tenant gives it."""
    next_to_leave: Key | None
    """For this block, or another of its tenant; None where there is room."""
    parent: Key | None
    parent_held: bool
    tenancy: Tenancy | None
    """None where all is one tenant's, or where nobody said whose a block is that is not in the pool."""

    @property
    def holders(self) -> str:
        """The experts that would have it."""
        return ", ".join(expert.name for expert in self.experts if expert.holds) or "no expert"

    @property
    def may_enter(self) -> bool:
        """Whether it has the votes that it takes to enter."""
        return bool(self.votes) and self.votes >= self.votes_needed

    @property
    def barred(self) -> bool:
        """Whether it is out of the pool although an expert would have it, because its tenant has its share
        and has nothing that has no more votes."""
        is_wanted = not self.in_pool and bool(self.votes) and not self.may_enter
        return is_wanted and self.tenancy is not None and self.tenancy.held >= self.tenancy.share

    @property
    def is_leaving(self) -> bool:
        """Whether it is among the next to leave."""
        if not self.in_pool:
            return False
        return self.votes <= self.votes_needed if self.tenancy is None else self.key == self.next_to_leave


def name_of(key: Key) -> str:
    """A block's key as people read it."""
    return key.hex() if isinstance(key, bytes) else str(key)


def in_words(account: Account) -> list[str]:
    """Sentences, the answer first."""
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
        "Saved so far by each expert's own pool: "
        + ", ".join(
            f"{expert.name} {expert.saved_s:.2f} s{' (followed)' if expert.followed else ''}"
            for expert in account.experts
        )
        + ".",
    ]


def _reason(account: Account) -> str:
    followed = " and ".join(expert.name for expert in account.experts if expert.followed)
    wants = f"{account.holders} would have it, and the pool follows {followed}"
    tenancy = account.tenancy
    if account.barred and tenancy is not None:
        return (
            f"because its tenant {tenancy.tenant} holds its share, and all that it would give for it has "
            f"more votes, although {wants}"
        )
    if not account.in_pool and tenancy is not None and tenancy.held < tenancy.share:
        return (
            f"but its tenant {tenancy.tenant} is below its share: it enters when it is asked for again "
            f"({wants})"
        )
    if account.is_leaving:
        return f"and among the next to leave: {wants}"
    if not account.in_pool and account.may_enter:
        return f"although {wants}: it enters when it is asked for again"
    return f"because {wants}"


def _by_value(account: Account) -> str:
    if account.parent is not None and not account.parent_held:
        return "By learned value it is of no use: the block before it is not held."
    saves = (
        f"By learned value it saves {1e3 * account.value_s:.3g} ms per slot and {VALUED_ACCESSES:,} accesses"
    )
    if account.cheapest_value_s is None:
        return f"{saves} and has a place: there is room."
    ratio = account.value_s / account.cheapest_value_s if account.cheapest_value_s else float("inf")
    return f"{saves}, {ratio:.2f} times the cheapest block held."


def _by_tenant(tenancy: Tenancy | None) -> list[str]:
    if tenancy is None:
        return []
    return [
        f"Its tenant {tenancy.tenant} holds {tenancy.held:,} {tenancy.unit}; its share is {tenancy.share:,}."
    ]
