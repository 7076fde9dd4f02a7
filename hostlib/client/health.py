"""Health of a client's homes: whom to ask for a key, and who does not answer.

A home is suspected to be dead if something has been in flight to it for `silence_s` and nothing comes. What
waits for it goes on to the next replica, and nobody waits for it until it is heard again. Before it is
suspected, it is asked for a sign of life (a STAT of no block). So a home that is only slow says that it
lives, and is asked again afterwards, less and less often. The module does no I/O, and time is a parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hostlib.protocol.members import Members, State
from hostlib.protocol.transfer import BlockRef


@dataclass(frozen=True, slots=True)
class HealthOptions:
    """Times in seconds."""

    silence_s: float = 0.28
    """Seconds of silence after which a home is suspected. With the tick that notices it, a dead home costs a
    node at most 300 ms."""
    doubt_s: float = 0.06
    """Silence after which a home is asked for a sign of life, and twice as long as the next such question
    waits."""
    probe_s: float = 0.25
    """Seconds until a suspected home is asked again. They double each time, up to `max_probe_s`."""
    max_probe_s: float = 2.0


_ORDERS_KEPT = 65_536


@dataclass(slots=True)
class _Suspect:
    next_probe_s: float
    every_s: float


class Health:
    """See the module."""

    def __init__(self, members: Members, options: HealthOptions) -> None:
        self._members = members
        self._known = {member.address for member in members.nodes}
        self._options = options
        self._heard_s: dict[str, float] = {}
        self._asked_s: dict[str, float] = {}
        self._suspects: dict[str, _Suspect] = {}
        self._orders: dict[bytes, tuple[list[str], bool]] = {}
        """What `reads` says while nobody is suspected."""

    @property
    def members(self) -> Members:
        """Return the newest list. Who is not in it is not watched, who is up again is no suspect any more."""
        return self._members

    @members.setter
    def members(self, members: Members) -> None:
        for member in members.nodes:
            before = self._members.at(member.address)
            if member.state is State.UP and before is not None and before.state is not State.UP:
                self._suspects.pop(member.address, None)
        self._members = members
        self._orders.clear()
        self._known = {member.address for member in members.nodes}
        memories: tuple[dict[str, Any], ...] = (self._heard_s, self._asked_s, self._suspects)
        for memory in memories:
            for address in memory.keys() - self._known:
                del memory[address]

    @property
    def suspects(self) -> list[str]:
        """Homes that are thought to be dead."""
        return list(self._suspects)

    def reads(self, key: bytes) -> tuple[list[str], bool]:
        """Return homes to ask for a key, best first, and whether one that may hold it is left out as it does
        not answer.

        Those are the first R that are up, and behind them those before the last of these that are only
        joining. If none of the key's homes is up, all others follow, as any of them may have been given the
        block in the place of a home that has not copied it yet. If so many are down that they may be all who
        were given the block, they come last: the list may be wrong about one.
        """
        if self._suspects:
            return self._reads(key)
        known = self._orders.get(key)
        if known is None:
            if len(self._orders) >= _ORDERS_KEPT:
                self._orders.clear()
            known = self._orders[key] = self._reads(key)
        homes, silent = known
        return homes.copy(), silent

    def homes_of(self, block: BlockRef) -> tuple[list[str], bool]:
        """Return the homes to read a block from, as `reads` does; if it is known who holds it, those."""
        if not block.homes:
            return self.reads(block.key)
        homes = [home for home in block.homes if home not in self._suspects]
        return homes, len(homes) < len(block.homes)

    def everyone(self, key: bytes) -> tuple[list[str], bool]:
        """Return all storage nodes of the list, the key's homes first, and whether one is left out as it does
        not answer: for who has to ask about a key and goes by another list than they do."""
        nodes = [member.address for member in self._members.order(key)]
        asked = [node for node in nodes if node not in self._suspects]
        return asked, len(asked) < len(nodes)

    def _reads(self, key: bytes) -> tuple[list[str], bool]:
        first: list[str] = []
        later: list[str] = []
        others: list[str] = []
        gone: list[str] = []
        silent, up, ends = False, 0, not self._members.homes_are_joining(key)
        for member in self._members.order(key):
            if member.state is State.DOWN:
                gone.append(member.address)
                continue
            up += member.state is State.UP
            if member.address in self._suspects:
                silent = True
            elif member.state is not State.UP:
                later.append(member.address)
            elif up <= self._members.replicas:
                first.append(member.address)
            else:
                others.append(member.address)
            if ends and up == self._members.replicas:
                break
        later += others
        if len(gone) >= self._members.replicas:
            silent = silent or any(home in self._suspects for home in gone)
            later += [home for home in gone if home not in self._suspects]
        return first + later, silent

    def in_blackout(self, key: bytes) -> bool:
        """Return whether all of a key's homes fell silent, and there should be several: that is the network,
        not they."""
        homes = self._members.homes(key)
        return self._members.replicas > 1 and all(home.address in self._suspects for home in homes)

    def seek(self, homes: Iterable[str], now_s: float) -> list[str]:
        """Return those of these suspected homes, for which a transfer waits, that are to be asked for a sign
        of life now."""
        due = [
            home for home in homes if now_s - self._asked_s.get(home, float("-inf")) >= self._options.doubt_s
        ]
        self._asked_s.update(dict.fromkeys(due, now_s))
        return due

    def is_suspected(self, address: str) -> bool:
        """Return whether the home is thought to be dead."""
        return address in self._suspects

    def heard(self, address: str, now_s: float) -> None:
        """Note that something came from this address, perhaps a home."""
        if address in self._known:
            self._heard_s[address] = now_s
        if self._suspects:
            self._suspects.pop(address, None)

    @property
    def patience_s(self) -> float:
        """Return the seconds of silence before which `judge` has nothing to say."""
        return min(self._options.doubt_s, self._options.silence_s)

    def quiet_from_s(self, address: str) -> float:
        """Return when a home from which nothing more comes will have been silent for so long."""
        return self._heard_s.get(address, float("-inf")) + self.patience_s

    def judge(
        self, oldest_s: Mapping[str, float], wait_s: Callable[[str], float], now_s: float
    ) -> tuple[list[str], list[str]]:
        """Return homes to be asked for a sign of life, and homes that are suspected from now on.

        `oldest_s`: by home, since when something has been in flight to it; `wait_s(home)`: what is left of
        the work that it last said waits there.
        """
        asked, dead = [], []
        for home, since_s in oldest_s.items():
            if home in self._suspects:
                continue
            silent_s = now_s - max(since_s, self._heard_s.get(home, 0.0))
            if silent_s >= self._options.silence_s and not wait_s(home):
                self._suspects[home] = _Suspect(now_s + self._options.probe_s, self._options.probe_s)
                dead.append(home)
            elif (
                silent_s >= self._options.doubt_s
                and now_s - self._asked_s.get(home, float("-inf")) >= self._options.doubt_s / 2
            ):
                self._asked_s[home] = now_s
                asked.append(home)
        return asked, dead

    def probes(self, now_s: float) -> list[str]:
        """Return suspected homes whose turn it is to be asked for a sign of life."""
        due = [home for home, suspect in self._suspects.items() if now_s >= suspect.next_probe_s]
        for home in due:
            suspect = self._suspects[home]
            suspect.every_s = min(self._options.max_probe_s, 2 * suspect.every_s)
            suspect.next_probe_s = now_s + suspect.every_s
        return due

    def next_probe_s(self) -> float | None:
        """Return when `probes` has something to say next."""
        return min((suspect.next_probe_s for suspect in self._suspects.values()), default=None)
