"""Commands of simple_switch_CLI for parser value sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.remote.values import parse_match, show_match
from v1model.stf.names import find_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from v1model import ir
    from v1model.dataplane import Matches
    from v1model.remote.data_plane import RemoteDataPlane


class ValueSetCommands:
    """Value set commands. A member of several fields is given as that many words."""

    def __init__(self, data_plane: RemoteDataPlane, say: Callable[[str], None]) -> None:
        self._data_plane, self._say = data_plane, say
        self.commands: dict[str, Callable[[Sequence[str]], None]] = {
            "show_pvs": self._show,
            "pvs_add": self._add,
            "pvs_remove": self._remove,
            "pvs_get": self._get,
            "pvs_clear": self._clear,
        }

    def _show(self, _: Sequence[str]) -> None:
        for value_set in self._data_plane.program.value_sets:
            keys = ", ".join(f"{key.name}({key.match_kind})" for key in value_set.keys)
            self._say(f"{value_set.name:30} [{keys}]")

    def _value_set(self, name: str) -> ir.ValueSet:
        return find_whole(self._data_plane.program.value_sets, name, "value set")

    def _member(self, words: Sequence[str]) -> tuple[str, Matches]:
        value_set = self._value_set(words[0])
        if len(words) - 1 != len(value_set.keys):
            raise ValueError(f"{value_set.name} has {len(value_set.keys)} fields, {len(words) - 1} are given")
        pairs = zip(value_set.keys, words[1:], strict=True)
        return value_set.name, tuple(parse_match(key, text) for key, text in pairs)

    def _add(self, words: Sequence[str]) -> None:
        """Run pvs_add SET VALUE..."""
        name, member = self._member(words)
        self._data_plane.set_value_set(name, [*self._data_plane.value_set(name), member])

    def _remove(self, words: Sequence[str]) -> None:
        name, member = self._member(words)
        members = self._data_plane.value_set(name)
        if member not in members:
            raise ValueError(f"{name} has no such member; pvs_get shows them")
        self._data_plane.set_value_set(name, [one for one in members if one != member])

    def _get(self, words: Sequence[str]) -> None:
        for member in self._data_plane.value_set(self._value_set(words[0]).name):
            self._say(", ".join(map(show_match, member)))

    def _clear(self, words: Sequence[str]) -> None:
        self._data_plane.set_value_set(self._value_set(words[0]).name, [])
