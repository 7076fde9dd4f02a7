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
    value: float
    """Of its value and the cheapest block's, only the ratio says something."""
    cheapest_value: float | None
    experts: Sequence[Standing]
    votes: float
    """Weight of the experts that hold it; only what is more or less says something."""
    votes_needed: float
    """What the next block to leave has; 0 where there is room."""
    parent: Key | None
    parent_held: bool


def in_words(account: Account) -> list[str]:
    """Sentences, the answer first."""
    key = account.key.hex() if isinstance(account.key, bytes) else account.key
    if not account.asked:
        where = (
            "in the pool, but nothing is remembered of it"
            if account.in_pool
            else "not in the pool: never heard of"
        )
        return [f"{key} is {where}."]
    return [
        f"{key} is {'in' if account.in_pool else 'not in'} the pool, {_reason(account)}.",
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
    holders = ", ".join(expert.name for expert in account.experts if expert.holds) or "no expert"
    followed = " and ".join(expert.name for expert in account.experts if expert.followed)
    wants = f"{holders} would have it, and the pool follows {followed}"
    if account.in_pool and account.votes <= account.votes_needed:
        return f"and among the next to leave: {wants}"
    if not account.in_pool and account.votes and account.votes >= account.votes_needed:
        return f"although {wants}: it enters when it is asked for again"
    return f"because {wants}"


def _by_value(account: Account) -> str:
    if account.parent is not None and not account.parent_held:
        return "By learned value it is of no use: the block before it is not held."
    if account.cheapest_value is None:
        return "By learned value it has a place: there is room."
    ratio = account.value / account.cheapest_value if account.cheapest_value else float("inf")
    return f"By learned value per slot and time it is worth {ratio:.2f} times the cheapest block held."
