"""Whether the process with a node's client is worth asking: a silent one is left alone for a while. Pure."""

from __future__ import annotations

LONGEST_REST_S = 60.0


class Reach:
    """Open at first. Each failure in a row doubles the rest, up to a minute; an answer ends it."""

    def __init__(self, retry_s: float) -> None:
        self._failures = 0
        """In a row."""
        self._retry_s = retry_s
        self._until_s = 0.0

    def allows(self, now_s: float) -> bool:
        """Return whether to ask at all."""
        return now_s >= self._until_s

    def failed(self, now_s: float) -> None:
        """Note that no answer came."""
        if now_s < self._until_s:
            return  # one of several requests that were under way together
        self._until_s = now_s + min(LONGEST_REST_S, self._retry_s * 2 ** min(self._failures, 16))
        self._failures += 1

    def answered(self) -> None:
        """Note that an answer came."""
        self._failures, self._until_s = 0, 0.0
