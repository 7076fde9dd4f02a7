"""Commands for queues, over weir-switch's own call beside P4Runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.stf.parser import parse_number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from v1model.remote.data_plane import RemoteDataPlane


class QueueCommands:
    """Queue commands of simple_switch_CLI, by name in `commands`.

    Priorities are those of standard_metadata.priority.
    """

    def __init__(self, data_plane: RemoteDataPlane) -> None:
        self._data_plane = data_plane
        self.commands: dict[str, Callable[[Sequence[str]], None]] = {
            "set_queue_depth": lambda words: self._limit("depth_packets", words),
            "set_queue_rate": lambda words: self._limit("packets_per_s", words),
        }

    def _limit(self, name: str, words: Sequence[str]) -> None:
        """Set a limit from VALUE [PORT [PRIORITY]]; without them for all ports and queues. 0 is no limit."""
        value, *place = (parse_number(word) for word in words)
        port, priority = (*place, None, None)[:2]
        self._data_plane.limit_queues({name: value}, port, priority)
