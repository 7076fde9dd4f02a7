"""Blocks that nodes say they will put (hostlib/protocol/expected.py), as reports to the policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from controller.block_id import block_id
from controller.operations import expected
from controller.pool.pace import Pace
from hostlib.protocol.errors import MalformedError
from hostlib.protocol.expected import read_expected

if TYPE_CHECKING:
    from collections.abc import Callable
    from ipaddress import IPv4Address

    from controller.operations import Answer, Expected
    from controller.pool.known_blocks import KnownBlocks

WINDOW_S: Final = 4.0
"""Over which rates are bounded: a request tells of all its new blocks at once."""
LEAST_SHARES: Final = 2
"""Of what is heard one node causes half at most, and where more of them tell of blocks, none more than its
share: those who never stop leave as much for each of the others."""
MAX_SOURCES: Final = 1024
"""Nodes whose rates are remembered; a switch has fewer ports."""


class Expectations:
    """What nodes say, as far as it is heard."""

    def __init__(self, known: KnownBlocks, home: Callable[[bytes], IPv4Address], most_per_s: int) -> None:
        """`home(key)`: where a block will be kept. Of all nodes `most_per_s` blocks are heard."""
        self._known, self._home = known, home
        self._most = max(LEAST_SHARES, round(WINDOW_S * most_per_s))
        self._all = Pace(self._most, WINDOW_S)
        self._sources: dict[IPv4Address, Pace] = {}

    def heard(self, answer: Answer, now_s: float) -> list[Expected]:
        """What a node computes and will put, each as a block that was asked for in vain; nothing of a message
        that is no such list."""
        try:
            blocks = read_expected(answer.message.value)
        except MalformedError:
            return []
        own = self._sources.get(answer.source)
        if own is None:
            if len(self._sources) >= MAX_SOURCES:
                return []
            own = self._sources[answer.source] = Pace(self._most, WINDOW_S)
        others = sum(pace.within(now_s) > 0 for pace in self._sources.values() if pace is not own)
        share = self._most // max(LEAST_SHARES, others + 1)
        heard: list[Expected] = []
        for block in blocks:
            if own.within(now_s) >= share or not self._all.room(now_s):
                break
            own.sent(now_s)
            self._all.sent(now_s)
            tenant = answer.message.tenant
            known = self._known.get(block_id(tenant, block.key))
            heard.append(expected(block, tenant, known.misses if known else 0, self._home(block.key)))
        return heard
