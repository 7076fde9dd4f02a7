"""Questions how many blocks of a request the pool has. vLLM's scheduler asks without waiting for answers."""

from __future__ import annotations

import logging
import time
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hostlib.engine import BlockingPool

IDLE_WAIT_S = 0.005
"""Longest time to wait for answers if the engine has nothing to compute."""
MARGIN_S = 5.0
"""Seconds above `lookup_timeout_s` after which a question without an answer counts as one that found nothing.
"""
REST_S = 60.0
"""Time for which nothing is asked after a question without an answer."""

_log = logging.getLogger("weir")


@dataclass(slots=True)
class Lookup:
    """One question."""

    first: int
    """Number of the first block that was asked for."""
    answer: Future[int]
    deadline_s: float
    found: int | None = None
    """Number of blocks from the first one on that are there; None while that is not known."""

    def cancel(self) -> None:
        """Cancel the question, because nobody needs the answer any more."""
        self.answer.cancel()


class Lookups:
    """See the module."""

    def __init__(self, pool: BlockingPool) -> None:
        self._pool = pool
        self._patience_s = pool.config.lookup_timeout_s + MARGIN_S
        self._rests_until_s = 0.0

    @property
    def is_resting(self) -> bool:
        """Return whether the pool's client left a question without an answer lately."""
        return time.monotonic() < self._rests_until_s

    def begin(self, keys: Sequence[bytes], first: int) -> Lookup:
        """Ask how many of these blocks are there from number `first` on."""
        return Lookup(first, self._pool.begin_exists(keys, first), time.monotonic() + self._patience_s)

    def poll(self, lookup: Lookup) -> bool:
        """Return whether `lookup.found` became known with this call."""
        if lookup.found is not None:
            return False
        if lookup.answer.done():
            failed = lookup.answer.cancelled() or lookup.answer.exception() is not None
            lookup.found = 0 if failed else lookup.answer.result()
            return True
        if time.monotonic() > lookup.deadline_s:
            _log.error("The pool's client does not answer: prompts are computed.")
            lookup.cancel()
            lookup.found, self._rests_until_s = 0, time.monotonic() + REST_S
            return True
        return False

    def wait(self, lookups: Iterable[Lookup], others: Iterable[Future[Any]] = ()) -> None:
        """Give the pool a moment to answer one of these, or one of the `others` to be done."""
        pending = [*others, *(lookup.answer for lookup in lookups if lookup.found is None)]
        if pending:
            wait(pending, IDLE_WAIT_S, return_when="FIRST_COMPLETED")
