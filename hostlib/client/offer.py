"""An offer: a block being put to its homes, until each of these says that it holds it.

A PUT names all homes and goes to the first; switches on the way copy it to the others (or, without such
switches, each home gets its own). Every home acknowledges every fragment by itself. What one does not
acknowledge is sent to it alone. A home is done when it says HELD, whatever else has not been sent to it by
then; one that has acknowledged all fragments without that has lost some of them, and gets all of them again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence

    from hostlib.native.lane import Request
    from hostlib.protocol.members import Member
    from hostlib.protocol.transfer import BlockRef


class OfferKeeper(Protocol):
    """Interface of the keeper of all offers that an offer uses."""

    def encode(self, leg: Leg, request: Request[Leg], sequence: int, now_s: float) -> bytes:
        """Return a PUT; where it goes to several homes, it is in flight to all of them from now on."""

    def gave_up(self, offer: Offer, why: str) -> None:
        """End an offer of which a home did not answer."""

    def silent(self, leg: Leg) -> None:
        """See what to do about a home that does not answer."""


@dataclass(slots=True, eq=False)
class Leg:
    """Part of an offer that one home has."""

    offer: Offer
    member: Member
    first_sequence: int
    """A number that no earlier request has: what the home said before may be of before it fell."""
    requests: list[Request[Leg]] = field(default_factory=list)
    missing: int = 0
    rounds: int = 0
    held: bool = False
    created: bool = False
    """Whether the home said that it made its block of this PUT."""
    alone: bool = False
    """Whether it gets packets of its own from the start."""

    @property
    def until_s(self) -> float:
        """Return when the offer has taken as long as it may."""
        return self.offer.until_s

    def datagrams(self, requests: Sequence[Request[Leg]], sequence: int, now_s: float) -> list[bytes]:
        """Return the PUTs of fragments, for all homes if they are the first of the first home's."""
        encode = self.offer.offers.encode
        return [
            encode(self, request, sequence + number & 0xFFFFFFFF, now_s)
            for number, request in enumerate(requests)
        ]

    def retried(self, request: Request[Leg]) -> None:
        """Do nothing more: a PUT that is sent again goes to this home alone."""

    def gave_up(self, request: Request[Leg]) -> None:
        """Take note that no acknowledgement came before the deadline."""
        self.offer.offers.gave_up(self.offer, f"{self.member.address} did not acknowledge it in time")

    def overdue(self) -> None:
        """End the offer, which has taken as long as it may."""
        self.offer.offers.gave_up(self.offer, f"{self.member.address} did not acknowledge all of it in time")

    def silent(self, home: str) -> None:
        """Go on without a home that fell silent; without a controller, nobody will name another one."""
        if home == self.member.address and not self.held:
            self.offer.offers.silent(self)

    def fallen(self, home: str) -> None:
        """Do nothing: `Offers` replaces a home that a list names as down."""


@dataclass(slots=True, eq=False)
class Offer:
    """One block on its way out."""

    offers: OfferKeeper
    block: BlockRef
    content: memoryview
    write: int
    """The content id of this write."""
    durable: bool
    replicas: int
    """Homes that shall have it; fewer once a silent home was left out."""
    least: int
    """Homes that must have it whoever is silent."""
    future: asyncio.Future[None]
    until_s: float
    """Time at which it has taken as long as it may."""
    first_sequence: int
    """A number that no earlier request has."""
    legs: list[Leg] = field(default_factory=list)
    tags: list[bytes] = field(default_factory=list)
    """Tags of the fragments that were sent so far; empty where one was not."""

    @property
    def fragments(self) -> int:
        """Return the number of fragments of the block."""
        return len(self.tags)

    @property
    def held(self) -> bool:
        """Return whether as many homes as were asked for have it."""
        return len(self.legs) == self.replicas and all(leg.held for leg in self.legs)

    @property
    def unproven(self) -> list[str]:
        """Addresses of homes that hold the block of somebody else's PUT, as far as they said."""
        return [leg.member.address for leg in self.legs if not leg.created]
