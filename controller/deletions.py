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

from controller.operations import DeletionDone, ForgetWrite

if TYPE_CHECKING:
    from ipaddress import IPv4Address

    from controller.operations import Answer

MAX_UNDER_WAY: Final = 1024
GIVEN_UP_S: Final = 2.0
AGAIN_S: Final = 0.05
"""Seconds after which a switch that has not answered is asked again to forget a write."""


class Write(NamedTuple):
    """One write of a block."""

    block: bytes
    content: int
    fragments: int


@dataclass(slots=True)
class _Deletion:
    """Deletion of one write for one host.

    Each host has its own, because what a switch did before another host asked may be undone by now.
    """

    write: Write
    owner: IPv4Address
    """Host that asks for it."""
    switch: str
    """Switch by which it asked last."""
    sequence: int
    """Sequence number of its last question."""
    until_s: float
    untold: set[str]
    """Switches that have not said that they forgot it."""
    told_s: dict[str, float] = field(default_factory=dict)
    """Time at which each switch was asked last."""


class Deletions:
    """Deletions at all switches of a controller. Each switch has a thread of its own, which calls `work` for
    it."""

    def __init__(self, first: int = 1) -> None:
        """Make the deletions; `first` is the number of the first one."""
        self._switches: dict[str, Callable[[], None]] = {}
        """By name, what wakes its thread."""
        self._next = first
        self._under_way: dict[int, _Deletion] = {}
        """By the number that switches are told, and say."""
        self._changing = threading.Lock()

    def joins(self, switch: str, wake: Callable[[], None]) -> None:
        """Take one more switch into account."""
        self._switches[switch] = wake

    def asked(self, switch: str, answer: Answer, now_s: float) -> None:
        """Take note that a node has had a write deleted, and wants no pool to serve it."""
        message, owner = answer.message, answer.source
        write = Write(answer.block, message.content, message.fragments)
        with self._changing:
            self._expire(now_s)
            same = (one for one in self._under_way.values() if one.owner == owner and one.write == write)
            if (again := next(same, None)) is not None:
                again.switch, again.sequence = switch, message.sequence
            elif len(self._under_way) < MAX_UNDER_WAY or self._make_room(owner):
                until_s, untold = now_s + GIVEN_UP_S, set(self._switches)
                self._under_way[self._next] = _Deletion(
                    write, owner, switch, message.sequence, until_s, untold
                )
                self._next = self._next + 1 & 0xFFFFFFFF
            else:
                return
        for wake in self._switches.values():
            wake()

    def obeyed(self, switch: str, answer: Answer) -> None:
        """Take note that a switch has forgotten a write."""
        message = answer.message
        with self._changing:
            deletion = self._under_way.get(message.sequence)
            if deletion is None or deletion.write != (answer.block, message.content, message.fragments):
                return
            deletion.untold.discard(switch)
            wake = None if deletion.untold else self._switches[deletion.switch]
        if wake is not None:
            wake()

    def work(self, switch: str, now_s: float, epoch: int) -> list[ForgetWrite | DeletionDone]:
        """Return what to send by a switch now. `epoch` is that of the list of storage nodes."""
        if not self._under_way:
            return []
        made: list[ForgetWrite | DeletionDone] = []
        with self._changing:
            self._expire(now_s)
            for number, one in list(self._under_way.items()):
                if switch in one.untold:
                    if now_s - one.told_s.get(switch, float("-inf")) >= AGAIN_S:
                        one.told_s[switch] = now_s
                        made.append(ForgetWrite(*one.write, number))
                elif not one.untold and one.switch == switch:
                    del self._under_way[number]
                    made.append(DeletionDone(*one.write, one.owner, one.sequence, epoch))
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

    def _make_room(self, source: IPv4Address) -> bool:
        """Give up the oldest of the host that asks for most; False if that is who asks now."""
        owned = Counter(one.owner for one in self._under_way.values())
        ((most, count),) = owned.most_common(1)
        if owned[source] >= count:
            return False
        del self._under_way[next(number for number, one in self._under_way.items() if one.owner == most)]
        return True

    def _expire(self, now_s: float) -> None:
        for number in [number for number, one in self._under_way.items() if now_s >= one.until_s]:
            del self._under_way[number]
