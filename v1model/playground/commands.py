"""simple_switch_CLI's commands on a switch in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from v1model.remote.profiles import ProfileCommands
from v1model.remote.queues import QueueCommands
from v1model.remote.tables import TableCommands
from v1model.remote.value_sets import ValueSetCommands
from v1model.stf.switch_commands import SwitchCommands

if TYPE_CHECKING:
    from collections.abc import Callable

    from v1model.switch import Switch


class Commands:
    """One line at a time."""

    def __init__(self, switch: Switch, say: Callable[[str], None]) -> None:
        data_plane: Any = switch  # the commands use no more of a remote one than a Switch has
        tables = TableCommands(data_plane, say)
        self._named = {
            **tables.commands,
            **ProfileCommands(data_plane, tables, say).commands,
            **ValueSetCommands(data_plane, say).commands,
            **QueueCommands(data_plane).commands,
        }
        self._others = SwitchCommands(switch, say)

    def run(self, line: str) -> None:
        """Does what a line says; raises ValueError or DataPlaneError with what is wrong."""
        words = line.split("#", 1)[0].split()
        if not words:
            return
        name, arguments = words[0], words[1:]
        if name not in self._named:
            self._others.run(name, arguments)
            return
        least, command = self._named[name]
        if len(arguments) < least:
            raise ValueError(f"{name} takes {least} arguments or more")
        command(arguments)
