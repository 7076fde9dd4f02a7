"""Whether the pool is worth asking: one that did not answer is left alone for a while. Pure."""

from __future__ import annotations

LONGEST_REST_S = 60.0


class Reach:
    """Open at first. Each failure in a row doubles the rest, up to a minute; an answer ends it."""

    def __init__(self, retry_s: float) -> None:
        self.failures = 0
        """In a row."""
        self._retry_s = retry_s
        self._until_s = 0.0

    def allows(self, now_s: float) -> bool:
        """Whether to ask at all."""
        return now_s >= self._until_s

    def failed(self, now_s: float) -> bool:
        """No answer came; whether that is news."""
        if now_s < self._until_s:
            return False  # one of several requests that were under way together
        self._until_s = now_s + min(LONGEST_REST_S, self._retry_s * 2 ** min(self.failures, 16))
        self.failures += 1
        return self.failures == 1

    def answered(self) -> bool:
        """An answer came; whether that is news."""
        was_silent = self.failures > 0
        self.failures, self._until_s = 0, 0.0
        return was_silent
