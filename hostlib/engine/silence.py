"""Messages about storage nodes that do not answer: one each time a node falls silent, and one when it answers
again."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostlib.engine.shared_client import BlockClient

_log = logging.getLogger("weir")


class Silence:
    """Compares what a client knows of its storage nodes with what was said last."""

    def __init__(self, client: BlockClient) -> None:
        self.level = logging.WARNING
        """Where several processes of an engine use the pool, one of them says it at this level."""
        self._client = client
        self._silent: set[str] = set()
        self._answering = True

    def look(self) -> None:
        """Say what has changed."""
        suspects = self._client.suspects
        if not suspects and not self._silent:
            return
        before, self._silent = self._silent, set(suspects)
        was_answering, self._answering = self._answering, self._client.is_answering
        if not self._answering:
            if was_answering:
                text = "The pool does not answer (none of %s): prompts are computed until it does."
                _log.log(self.level, text, ", ".join(sorted(self._silent)))
            return
        if not was_answering:
            _log.log(self.level, "The pool answers again.")
            before = set()  # those that are still silent have not been named alone
        for home in sorted(self._silent - before):
            text = "Storage node %s does not answer: what only it holds is computed until it does."
            _log.log(self.level, text, home)
        for home in sorted(before - self._silent):
            _log.log(self.level, "Storage node %s answers again.", home)
