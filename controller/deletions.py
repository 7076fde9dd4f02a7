"""Deleted blocks leave the pools of all switches, also of those that the storage nodes' answers do not pass.

A node that has had a write of a block deleted tells the controller (DELETE). Each switch then forgets it
in band, as it does where a storage node's DELETED passes, and says so. When all have, the controller answers
the node (DELETED with HELD). Requests are bounded, so that who asks for most gives way, and given up after a
while: who asked asks again.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from controller.block_id import block_id
from controller.operations import DeletionDone, ForgetWrite

if TYPE_CHECKING:
    from ipaddress import IPv4Address

    from controller.operations import Answer

MAX_UNDER_WAY: Final = 1024
GIVEN_UP_S: Final = 2.0
AGAIN_S: Final = 0.05
"""How soon a switch that has not said that it forgot a write is told again."""


class Write(NamedTuple):
    """One write of a block."""

    block: bytes
    content: int
    fragments: int


@dataclass(slots=True)
class _Deletion:
    owner: IPv4Address
    """Who asked for it first."""
    until_s: float
    untold: set[str]
    """Switches that have not said that they forgot it."""
    askers: dict[IPv4Address, tuple[str, int]] = field(default_factory=dict)
    """By address: the switch that it asked by, and its sequence."""
    told_s: dict[str, float] = field(default_factory=dict)
    """When each switch was told last."""


class Deletions:
    """Of all switches of a controller; each has a thread of its own, which calls `work` for it."""

    def __init__(self) -> None:
        self._switches: dict[str, Callable[[], None]] = {}
        """By name, what wakes its thread."""
        self._under_way: dict[Write, _Deletion] = {}
        self._changing = threading.Lock()

    def joins(self, switch: str, wake: Callable[[], None]) -> None:
        """Take one more switch into account."""
        self._switches[switch] = wake

    def asked(self, switch: str, answer: Answer, now_s: float) -> None:
        """A node has had a write deleted, and wants no pool to serve it."""
        message = answer.message
        write = Write(answer.block, message.content, message.fragments)
        with self._changing:
            self._expire(now_s)
            if write not in self._under_way:
                if len(self._under_way) >= MAX_UNDER_WAY and not self._make_room(answer.source):
                    return
                until_s = now_s + GIVEN_UP_S
                self._under_way[write] = _Deletion(answer.source, until_s, set(self._switches))
            self._under_way[write].askers[answer.source] = switch, message.sequence
        for wake in self._switches.values():
            wake()

    def obeyed(self, switch: str, answer: Answer) -> None:
        """A switch has forgotten a write."""
        message = answer.message
        write = Write(block_id(message.tenant, message.key), message.content, message.fragments)
        wakes: list[str] = []
        with self._changing:
            deletion = self._under_way.get(write)
            if deletion is not None:
                deletion.untold.discard(switch)
                wakes = [by for by, _ in deletion.askers.values()] if not deletion.untold else []
        for name in wakes:
            self._switches[name]()

    def work(self, switch: str, now_s: float) -> list[ForgetWrite | DeletionDone]:
        """Return what to send by a switch now."""
        if not self._under_way:
            return []
        made: list[ForgetWrite | DeletionDone] = []
        with self._changing:
            self._expire(now_s)
            for write, deletion in list(self._under_way.items()):
                if switch in deletion.untold:
                    if now_s - deletion.told_s.get(switch, float("-inf")) >= AGAIN_S:
                        deletion.told_s[switch] = now_s
                        made.append(ForgetWrite(*write))
                elif not deletion.untold:
                    made += self._answers(switch, write, deletion)
        return made

    def due_s(self, switch: str) -> float:
        """Return when `work` has something to send by a switch, if nothing happens before."""
        with self._changing:
            told = [
                one.told_s.get(switch, float("-inf"))
                for one in self._under_way.values()
                if switch in one.untold
            ]
        return min(told, default=float("inf")) + AGAIN_S

    def _answers(self, switch: str, write: Write, deletion: _Deletion) -> list[DeletionDone]:
        """To those who asked by this switch; whoever asked last ends it."""
        here = {asker: said for asker, said in deletion.askers.items() if said[0] == switch}
        for asker in here:
            del deletion.askers[asker]
        if not deletion.askers:
            del self._under_way[write]
        return [DeletionDone(*write, asker, sequence) for asker, (_, sequence) in here.items()]

    def _make_room(self, source: IPv4Address) -> bool:
        """Give up the oldest of the host that asks for most; False if that is who asks now."""
        owned = Counter(one.owner for one in self._under_way.values())
        ((most, count),) = owned.most_common(1)
        if owned[source] >= count:
            return False
        del self._under_way[next(write for write, one in self._under_way.items() if one.owner == most)]
        return True

    def _expire(self, now_s: float) -> None:
        for write in [write for write, one in self._under_way.items() if now_s >= one.until_s]:
            del self._under_way[write]
