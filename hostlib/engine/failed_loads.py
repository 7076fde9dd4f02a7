"""Memory of what failed to load, so that look-ups do not offer it again and again. Bounded, and pure.

A block can be found and fail to load: one of its objects is gone, or can't be read. After one failure a
look-up asks about all of the block's objects. If all are found and the block fails again, it counts as
missing for `REST_S`, or until this process has stored or loaded it.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

REST_S = 60.0
MAX_REMEMBERED = 16_384
"""Number of keys; beyond that the one that failed longest ago is forgotten."""


@dataclass(slots=True)
class _Failure:
    found_since: bool = False
    """Whether a look-up has found all of it after the failure."""
    rests_until_s: float = 0.0


class FailedLoads:
    """Keys of blocks or objects. Times are those of one monotonic clock, in seconds."""

    def __init__(self) -> None:
        self._failures: OrderedDict[bytes, _Failure] = OrderedDict()

    def __contains__(self, key: bytes) -> bool:
        """Return whether the key failed to load and was neither stored nor loaded since."""
        return key in self._failures

    def __len__(self) -> int:
        return len(self._failures)

    def add(self, key: bytes, now_s: float) -> None:
        """Note that a key failed to load."""
        before = self._failures.get(key)
        rests = before is not None and (before.found_since or now_s < before.rests_until_s)
        self._failures[key] = _Failure(rests_until_s=now_s + REST_S if rests else 0.0)
        self._failures.move_to_end(key)
        if len(self._failures) > MAX_REMEMBERED:
            self._failures.popitem(last=False)

    def found(self, key: bytes) -> None:
        """Note that a look-up has found all that belongs to the key."""
        if key in self._failures:
            self._failures[key].found_since = True

    def discard(self, key: bytes) -> None:
        """Forget the failures of a key that was stored, or loaded."""
        self._failures.pop(key, None)

    def rests(self, key: bytes, now_s: float) -> bool:
        """Return whether the key counts as missing whatever is said of it."""
        failure = self._failures.get(key)
        return failure is not None and now_s < failure.rests_until_s
