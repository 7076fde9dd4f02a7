"""Log of the packets that a switch drops: a line for each port and reason, less often as it continues."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from v1model.binding.ports import MAX_FRAME_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from v1model.binding.ports import Statistics

logger = logging.getLogger(__name__)

FIRST_PAUSE_S = 1.0
LAST_PAUSE_S = 60.0

_OF_PORTS = {
    "oversize_drops": f"longer than the longest frame that the switch takes ({MAX_FRAME_BYTES} bytes)",
    "beyond_mtu_drops": "to be sent, but longer than the interface's MTU",
    "transmit_drops": "to be sent, but the interface did not take them",
    "kernel_drops": "came faster than the switch took them",
}
# Causes that the program does not intend, except those of ports and those that are logged at once.
_OF_SWITCH = {
    "no_port": "for ports that are not attached or gone",
    "no_buffer": "without a free buffer",
    "again_queue_full": "to be resubmitted or recirculated, but too many waited",
    "too_many_passes": "resubmitted or recirculated too often",
    "endless_loop": "in a loop that did not end",
    "event_queue_full": "or messages for the control plane, which did not fetch them",
}


class DropLog:
    """Comparison of a switch's counts with those that were logged.

    `clock` returns seconds. A continuing reason is logged after 1, 2, 4 ... 60 s.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._logged: dict[tuple[str, str], int] = {}
        self._pauses: dict[tuple[str, str], tuple[float, float]] = {}  # (not before, pause)

    def report(self, statistics: Statistics) -> None:
        """Log what was dropped since the last line about it."""
        for key, count, reason in _counts(statistics):
            known = self._logged.get(key, 0)
            not_before, pause = self._pauses.get(key, (0.0, FIRST_PAUSE_S))
            if count < known:  # another switch, which counts from 0
                known = self._logged[key] = 0
            if count == known or self._clock() < not_before:
                continue
            where = f"{key[0]}: " if key[0] else ""
            packets = "1 packet" if count - known == 1 else f"{count - known} packets"
            logger.warning("%sdropped %s: %s", where, packets, reason)
            self._logged[key] = count
            self._pauses[key] = (self._clock() + pause, min(2 * pause, LAST_PAUSE_S))


def _counts(statistics: Statistics) -> Iterator[tuple[tuple[str, str], int, str]]:
    """Yield ((port, reason), packets, reason in words) of all counts that are not 0."""
    for number, port in statistics["ports"].items():
        for name, reason in _OF_PORTS.items():
            if count := int(str(dict(port)[name])):
                yield (f"port {number} ({port['interface']})", name), count, reason
    for name, reason in _OF_SWITCH.items():
        if count := statistics["drops"][name]:
            yield ("", name), count, reason
