"""GETs of blocks that a storage node reads from its disk, within bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostlib.protocol.block import Place

if TYPE_CHECKING:
    from hostlib.protocol.wire import Message
    from hostlib.storage.ssd_reader import SsdReader

MAX_WAITING_BLOCKS = 4096
"""For the disk; a GET of one more is refused."""
MAX_WAITING_OF_TENANT = MAX_WAITING_BLOCKS // 2
"""Of them: one tenant can't take all the room."""
MAX_WAITING_GETS = 256
"""For one block."""


class WaitingGets:
    """By block, then by sender and fragment: the GETs that `reader` has to read blocks for."""

    def __init__(self, reader: SsdReader) -> None:
        self._reader = reader
        self._by_block: dict[Place, dict[tuple[str, int], Message]] = {}

    def add(self, address: str, message: Message) -> bool | None:
        """Have a GET of the host with that address wait for its block, for which the disk is asked with the
        first; None if too much waits, else whether it is the first."""
        place, sender = Place(message.tenant, message.key), (address, message.fragment)
        waiting = self._by_block.get(place, {})
        is_first = not waiting
        if is_first:
            if len(self._by_block) >= MAX_WAITING_BLOCKS:
                return None
            if self._reader.waiting(place.tenant) >= MAX_WAITING_OF_TENANT:
                return None
            self._by_block[place] = waiting
            self._reader.ask(place)
        if len(waiting) >= MAX_WAITING_GETS and sender not in waiting:
            return None
        waiting[sender] = message
        return is_first

    def take(self, place: Place) -> list[tuple[str, Message]]:
        """Return the GETs of a block with the addresses that they came from, and forget them."""
        return [(address, message) for (address, _), message in self._by_block.pop(place, {}).items()]
