"""Parts that reach a node without a request, subscribed to and taken by the rule of hosts
(`hostlib.client.pushed.Interests`)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from hostlib.client.pushed import Interests, PushedOptions
from simulator.messages import Block


class PushedParts:
    """Pushed parts of one node. `holds(block)` says whether it already has a block, `keep(block)` gives it
    one."""

    def __init__(self, holds: Callable[[Block], bool], keep: Callable[[Block], None]) -> None:
        self.taken = 0
        """Number of blocks taken."""
        options = PushedOptions()
        self._interests = Interests(options)
        self._holds, self._keep = holds, keep
        self._most = options.max_partial
        self._missing: OrderedDict[Block, int] = OrderedDict()
        """Parts that are still to come, as bits, of blocks that have come in part."""

    def asks(self, block: Block, now_s: float) -> bool:
        """Note that the node asks for a block; return whether the request subscribes to the prefix that
        begins there."""
        return self._interests.asks(block.key, block.parent, now_s)

    def offer(self, block: Block, part: int) -> None:
        """Take a part that nobody here asked for."""
        if self._holds(block) or not self._interests.want(block.key, block.parent):
            return
        missing = self._missing.get(block, (1 << len(block.parts)) - 1) & ~(1 << part)
        if missing:
            self._missing[block] = missing
            if len(self._missing) > self._most:
                self._missing.popitem(last=False)
            return
        self._missing.pop(block, None)
        self.taken += 1
        self._interests.note(block.key)
        self._keep(block)
