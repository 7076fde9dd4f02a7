"""New blocks that homes tell of (hostlib/news.py), until they are told to the policy as reports are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from controller.block_id import block_id
from controller.operations import written
from controller.pace import Pace
from hostlib.errors import MalformedError
from hostlib.members import HEARTBEAT_S
from hostlib.news import read_news

if TYPE_CHECKING:
    from controller.known_blocks import KnownBlocks
    from controller.operations import Answer, HotMiss


GATHER_S: Final = 2 * HEARTBEAT_S
"""From the first of what homes tell until the policy hears of it: each has said what is new by then, and
what is admitted together takes one Write."""


class NewsHeard:
    """What homes said since the first of them did: a chain has blocks at all of them."""

    def __init__(self, known: KnownBlocks, most_per_s: int) -> None:
        """What homes tell faster than switches may report is not heard."""
        self._known, self._pace = known, Pace(most_per_s, 1.0)
        self._heard: list[HotMiss] = []
        self._since_s = 0.0

    def __len__(self) -> int:
        return len(self._heard)

    def heard(self, answer: Answer, now_s: float) -> int:
        """A home has new blocks; returns how many of them are heard. Who wrote one had asked for it in vain,
        or would have."""
        try:
            news = read_news(answer.message.value)
        except MalformedError:
            return 0
        if not self._heard:
            self._since_s = now_s
        before = len(self._heard)
        for block in news:
            if not self._pace.room(now_s):
                break
            self._pace.sent(now_s)
            known = self._known.get(block_id(block.tenant, block.key))
            misses = known.misses if known else 0
            self._heard.append(written(block, misses, answer.message.backlog_ms, answer.source))
        return len(self._heard) - before

    @property
    def due_s(self) -> float:
        """When something is told."""
        return self._since_s + GATHER_S if self._heard else float("inf")

    def due(self, now_s: float) -> list[HotMiss]:
        """What is told now."""
        if now_s < self.due_s:
            return []
        heard, self._heard = self._heard, []
        return heard
