"""Work that a storage node has promised: blocks whose first fragment was asked for, and whose others will be.

Windows keep short what waits at a link, so its length says little of what is coming: a node that fetches a
hundred blocks has at most 64 fragments on their way. The promised work tells it to nodes that ask before they
fetch (STAT). It is not known here whether the other fragments are asked for, or a switch merges or serves
them. So a promise takes its time on the link and is over then, whatever came of it. A sender that begins to
read and never goes on could keep others away by that: what is promised to one sender counts up to `SENDER_S`.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from hostlib.protocol.wire import VALUE_FRAME_BYTES

SENDER_S = 2.0
"""Seconds of a link's time that one sender can be promised: a chain of 600 blocks of 84 MB at 200 Gbit/s."""
MAX_SENDERS = 1024


class CommittedWork:
    """Promised work of one node on its link. Times are those of the running loop."""

    def __init__(self, link_bit_s: float) -> None:
        """Make it for a link of so many bits per second; 0 for a link without a limit, on which nothing
        waits."""
        self._fragment_s = 8 * VALUE_FRAME_BYTES / link_bit_s if link_bit_s else 0.0
        self._free_s = 0.0
        """When all that was promised has left."""
        self._own_s: OrderedDict[str, float] = OrderedDict()
        """When what was promised to a sender would have left if nothing else did."""

    def add(self, sender: str, fragments: int) -> None:
        """Note that a sender has begun to read a block of so many fragments."""
        if not self._fragment_s:
            return
        now_s = asyncio.get_running_loop().time()
        own_s = max(now_s, self._own_s.get(sender, 0.0))
        taken_s = min(fragments * self._fragment_s, now_s + SENDER_S - own_s)
        self._own_s[sender] = own_s + taken_s
        self._own_s.move_to_end(sender)
        if len(self._own_s) > MAX_SENDERS:
            self._own_s.popitem(last=False)
        self._free_s = max(now_s, self._free_s) + taken_s

    def wait_ms(self) -> int:
        """Return how long it takes until all that was promised has left, as FOUND says it."""
        if not self._fragment_s:
            return 0
        return min(0xFFFF, max(0, round(1000 * (self._free_s - asyncio.get_running_loop().time()))))
