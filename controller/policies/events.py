"""Events that a policy gets and decisions that it returns: plain tuples, cheap to make and easy to log."""

from __future__ import annotations

from typing import NamedTuple

WHOLE_END = 2**31
"""No whole number of an event that is counted with is as large."""

Key = bytes | int
"""A block key (16 bytes) in the live system, a trace's block id in a replay."""


class Miss(NamedTuple):
    """A block was asked for and is not in the pool."""

    key: Key
    now_s: float
    depth: int = 0
    """Place in its chain, 0 is the first block."""
    chain_blocks: int = 0
    """Length of the chain it was asked with, 0 where unknown."""
    parent: Key | None = None
    """The block before it, None for the first block or where unknown."""
    times: int = 1
    """Requests that this event stands for (a sketch's estimate since the last event)."""
    home: int = 0
    """The storage node that holds it."""
    recompute_s: float = 0.0
    """Time to compute it, as the node that asks says; 0 where unknown."""
    tenant: int = 0
    """Tenant that asked."""
    fragments: int = 1
    """Slots that it takes."""


class Hits(NamedTuple):
    """A block in the pool was asked for."""

    key: Key
    now_s: float
    times: int = 1


class HomeLoad(NamedTuple):
    """Seconds that a fetch from a storage node has to wait at present."""

    home: int
    now_s: float
    wait_s: float
    link_bit_s: float = 0.0
    """Rate of its link at real scale; 0 where that is as usual."""


class Lost(NamedTuple):
    """The pool does not hold the block, whatever the policy decided."""

    key: Key
    now_s: float


class Found(NamedTuple):
    """The pool holds the block, whatever the policy decided."""

    key: Key
    now_s: float
    fragments: int = 1
    """Slots that it takes."""


class Pin(NamedTuple):
    """The block must stay until it is unpinned."""

    key: Key
    now_s: float


class Unpin(NamedTuple):
    """The block may be evicted again."""

    key: Key
    now_s: float


class Demoted(NamedTuple):
    """A node says that the block will not be asked for soon."""

    key: Key
    now_s: float


class Admit(NamedTuple):
    """Bring the block into the pool."""

    key: Key


class Evict(NamedTuple):
    """Take the block out of the pool."""

    key: Key
    reuse_chance: float | None = None
    """Chance that it will be asked for again; None where the policy cannot say."""


Event = Miss | Hits | HomeLoad | Lost | Found | Pin | Unpin | Demoted
Decision = Admit | Evict
EVENTS: dict[str, type[Event]] = {
    kind.__name__: kind for kind in (Miss, Hits, HomeLoad, Lost, Found, Pin, Unpin, Demoted)
}
