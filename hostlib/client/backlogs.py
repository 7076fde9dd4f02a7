"""Work that waits at storage nodes, as they said it last."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field


@dataclass
class Backlogs:
    """Seconds of work that waits at homes, as they said it last; as time passes, that work is done."""

    _until_s: dict[Hashable, float] = field(default_factory=dict)

    def report(self, home: Hashable, wait_s: float, now_s: float) -> None:
        """Note that a home said so much work waits there."""
        self._until_s[home] = now_s + wait_s

    def wait_s(self, home: Hashable, now_s: float) -> float:
        """Return what is left of it; 0 for a home that said nothing."""
        return max(0.0, self._until_s.get(home, 0.0) - now_s)
