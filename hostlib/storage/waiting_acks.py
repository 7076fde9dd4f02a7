"""PUTs whose acknowledgement waits for the disk of a storage node, within bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostlib.protocol import wire
from hostlib.protocol.block import Place

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_WAITING_ACKS = 4096
"""Most acknowledgements that wait for one block: a sender that repeats itself has one for each fragment."""
MAX_WAITING_ACKS_OF_ALL = 65_536
"""Most acknowledgements that wait for all blocks together."""


class WaitingAcks:
    """PUTs without their values, which acknowledgements echo, by block, then by sender and fragment."""

    def __init__(self) -> None:
        self._by_block: dict[Place, dict[tuple[str, int], wire.Message]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, address: str, message: wire.Message, is_new: bool) -> bool | None:
        """Keep a PUT of the host with that address; None if too many wait, else whether it is the first of
        its block.

        `is_new`: whether it made the block, which stays in mind whatever is sent again meanwhile.
        """
        place, sender = Place(message.tenant, message.key), (address, message.fragment)
        acks = self._by_block.get(place, {})
        before = acks.get(sender)
        if before is None and (len(acks) >= MAX_WAITING_ACKS or self._count >= MAX_WAITING_ACKS_OF_ALL):
            return None
        self._by_block[place] = acks
        self._count += before is None
        flags = message.flags & wire.FLAG_RECLAIM
        if is_new or (before is not None and before.flags & wire.FLAG_CREATED):
            flags |= wire.FLAG_CREATED
        is_first = not acks
        acks[sender] = message._replace(value=b"", flags=flags)
        return is_first

    def take(self, place: Place) -> Iterator[tuple[str, wire.Message]]:
        """Return the PUTs of a block with the addresses that they came from, and forget them."""
        acks = self._by_block.pop(place, {})
        self._count -= len(acks)
        return ((address, message) for (address, _), message in acks.items())
