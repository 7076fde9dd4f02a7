"""GETs of blocks that a storage node reads from its disk, within bounds."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hostlib.protocol.block import Place

if TYPE_CHECKING:
    from hostlib.protocol.wire import Message
    from hostlib.storage.ssd_reader import SsdReader

MAX_WAITING_BLOCKS = 4096
"""Most blocks that GETs wait for; a GET of one more is refused."""
MAX_WAITING_OF_TENANT = MAX_WAITING_BLOCKS // 2
"""Most blocks that GETs of one tenant wait for, so that no tenant takes all the room."""
MAX_WAITING_GETS = 256
"""Most GETs that wait for one block."""
MAX_WAITING_GETS_OF_TENANT = 32_768
"""Most GETs that wait for all blocks of one tenant, and half of the bound for all blocks."""


class WaitingGets:
    """GETs that wait until `reader` has read their blocks, by block, then by sender and fragment."""

    def __init__(self, reader: SsdReader) -> None:
        self._reader = reader
        self._by_block: dict[Place, dict[tuple[str, int], Message]] = {}
        self._of_tenant: Counter[int] = Counter()
        """Number of GETs."""
        self._count = 0

    def add(self, address: str, message: Message) -> bool | None:
        """Have a GET wait for its block; return whether it is the first, which asks the disk.

        Returns None if too much waits. `address` is that of the host that asks.
        """
        place, sender = Place(message.tenant, message.key), (address, message.fragment)
        waiting = self._by_block.get(place, {})
        is_first = not waiting
        if sender not in waiting and self._is_full(place.tenant, len(waiting)):
            return None
        if is_first:
            if len(self._by_block) >= MAX_WAITING_BLOCKS:
                return None
            if self._reader.waiting(place.tenant) >= MAX_WAITING_OF_TENANT:
                return None
            self._by_block[place] = waiting
            self._reader.ask(place)
        self._counted(place.tenant, sender not in waiting)
        waiting[sender] = message
        return is_first

    def _is_full(self, tenant: int, of_block: int) -> bool:
        own, most = self._of_tenant[tenant], MAX_WAITING_GETS_OF_TENANT
        return of_block >= MAX_WAITING_GETS or own >= most or self._count >= 2 * most

    def _counted(self, tenant: int, more: int) -> None:
        self._of_tenant[tenant] += more
        self._count += more

    def take(self, place: Place) -> list[tuple[str, Message]]:
        """Return the GETs of a block with the addresses that they came from, and forget them."""
        waiting = self._by_block.pop(place, {})
        self._counted(place.tenant, -len(waiting))
        return [(address, message) for (address, _), message in waiting.items()]
