"""Membership: which storage nodes are there, as all hosts are told.

A storage node says HELLO ten times a second, and answers probes with it (`controller.ways`). One that was
heard and then is silent for three HELLOs is down; so is one that none of six probes reaches, or that loses
many more of them than the others do. One that comes back is joining until it says, knowing that it was away,
that it has caught up. Every change makes a new version of the list (its epoch), which goes to every host. A
controller that begins, or goes on from another one's list, does not know who missed what by that: all are
joining. One that says no HELLO is down after a while if others do, and up if none does: not all networks have
storage nodes that know of the controller. Pure: time is a parameter.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Final, NamedTuple

from controller.flaps import Flaps
from controller.later_lists import LaterLists
from controller.operations import Announce
from controller.ways import Doubts, Ways
from hostlib.protocol import wire
from hostlib.protocol.members import (
    EPOCHS,
    HEARTBEAT_S,
    Member,
    Members,
    State,
    next_epoch,
    other_size,
    suspects_in,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from controller.operations import Answer

log = logging.getLogger(__name__)

SILENCE_S: Final = 3 * HEARTBEAT_S
HELD_UP_S: Final = 2 * HEARTBEAT_S
"""A controller that did not look for longer than this was held up itself, and counts that time for nobody,
but LISTENED_S of it if it heard others meanwhile: one that is always late still misses who is gone."""
LISTENED_S: Final = 0.75 * HEARTBEAT_S
NEVER_HEARD_S: Final = 1.0
"""Seconds after the first HELLO of any host after which a host without a HELLO is judged."""
REPEAT_S: Final = 2.0
"""Seconds after which a host is told again what it was told already, because a packet may get lost. The wait
doubles each time: a host that hears of a later list asks for it by itself."""
MOST_REPEAT_S: Final = 32.0

PROBES_BIT: Final = 12
"""A controller's first probe has the number of its first epoch, shifted by so many bits: no earlier one's."""
EPOCHS_PER_S: Final = 10
EPOCHS_SINCE_S: Final = 1_760_000_000
"""Seconds since 1970 from which epochs count. After 13 years the numbers begin anew, and count as later all
the same."""


def first_epoch(now_s: float) -> int:
    """Return the first epoch of a controller that starts at `now_s` since 1970.

    It is higher than those of controllers that started before, if these made no more than EPOCHS_PER_S lists
    a second.
    """
    return next_epoch(int((now_s - EPOCHS_SINCE_S) * EPOCHS_PER_S) % EPOCHS)


class Membership:
    """One list for all switches; the workers of several may call it."""

    def __init__(self, stores: Iterable[IPv4Address], replicas: int, epoch: int) -> None:
        """Make the membership. `epoch` is that of the first list, see `first_epoch`; if storage nodes know a
        higher one, it is corrected."""
        listed = Members.of(map(str, stores), replicas)
        self.members = Members(epoch, replicas, _all_joining(listed))
        self._own_from = epoch
        self._later = LaterLists(epoch)
        self._flaps = Flaps()
        self._began_s: float | None = None
        self._first_heard_s: dict[str, float] = {}
        """When each storage node first said HELLO, of those that ever did."""
        self._other_sizes: set[str] = set()
        """Whose values have another size, as was logged once."""
        self.counts_heartbeats = False
        """Whether any host said HELLO: without that, none is told anything."""
        self.on_change: list[Callable[[], None]] = []
        """Called, from whichever thread, when there is a new list."""
        self._heard_s: dict[str, float] = {}
        self._looked_s: dict[str, float] = {}
        self._ways = Ways(epoch << PROBES_BIT)
        self._doubts = Doubts()
        self._lock = threading.Lock()

    def hello(self, answer: Answer, now_s: float) -> None:
        """Take a host's HELLO; the switch has checked that it is the host that it says."""
        source = str(answer.source)
        with self._lock:
            self.counts_heartbeats = True
            if self._has_other_size(source, answer):
                return
            if self._began_s is None:
                self._began_s = now_s
            knows_of = answer.message.generation
            is_store = self.members.at(source) is not None
            if self._later.follows(source, is_store, knows_of, self.members.epoch, now_s):
                self._follow(knows_of)
            member = self.members.at(source)
            if member is None:
                self._suspected(source, suspects_in(answer.message.value), now_s)
                return
            self._heard_s[source] = now_s
            self._ways.heard(source, answer.message.sequence, now_s)
            caught_up = bool(answer.message.flags & wire.FLAG_HELD)
            knows = knows_of == self.members.epoch
            unheard = member.address not in self._first_heard_s
            self._first_heard_s.setdefault(source, now_s)
            misses = not caught_up or (unheard and not self._made(knows_of))
            if member.state is State.DOWN:
                if not self._is_of_no_use(member, now_s):
                    self._set(member, State.JOINING)
            elif member.state is State.UP and misses:
                self._flaps.fell(source, now_s)
                self._set(member, State.JOINING)
            elif (
                member.state is State.JOINING and caught_up and knows and self._flaps.may_rise(source, now_s)
            ):
                self._set(member, State.UP)

    def _has_other_size(self, source: str, answer: Answer) -> bool:
        """Return whether a host's values have another size, which no switch of this network lets through."""
        why = other_size(answer.message)
        if not why:
            self._other_sizes.discard(source)
        elif source not in self._other_sizes:
            self._other_sizes.add(source)
            log.error("%s is left out: %s", source, why)
        return bool(why)

    def out_of_sight(self, hosts: Iterable[IPv4Address]) -> None:
        """Ignore the silence of hosts whose switch can't be heard, until they are heard again."""
        with self._lock:
            for host in hosts:
                self._heard_s.pop(str(host), None)
                self._ways.forget(str(host))

    def probe(self, hosts: Iterable[IPv4Address], now_s: float) -> dict[IPv4Address, int]:
        """Return those of these hosts that are storage nodes and are to be probed now, each with the probe's
        number."""
        with self._lock:
            due = self._ways.probe(map(str, hosts), now_s)
        return {IPv4Address(address): number for address, number in due.items()}

    def probe_due_s(self, hosts: Iterable[IPv4Address]) -> float:
        """Return when the next of these is to be probed."""
        with self._lock:
            return self._ways.due_s(map(str, hosts))

    def look(self, now_s: float, hosts: Iterable[IPv4Address] | None = None) -> None:
        """Count those who were silent for too long as down, of all, or of these.

        Each worker looks at the hosts of its own switch: one that is held up hears nobody, whatever others
        hear meanwhile.
        """
        watched = None if hosts is None else set(map(str, hosts))
        with self._lock:
            members = [one for one in self.members.nodes if watched is None or one.address in watched]
            listened_s = LISTENED_S if any(map(self._was_heard, members)) else 0.0
            for member in members:
                lost_s = now_s - self._looked_s.get(member.address, now_s)
                self._looked_s[member.address] = now_s
                if lost_s > HELD_UP_S and member.address in self._heard_s:
                    pardoned_s = self._heard_s[member.address] + lost_s - listened_s
                    self._heard_s[member.address] = min(pardoned_s, now_s)
                heard_s = self._heard_s.get(member.address, now_s)
                if member.address not in self._first_heard_s:
                    self._judge_unheard(member, now_s)
                    continue
                silent_s = now_s - heard_s
                is_silent = silent_s > SILENCE_S and silent_s > self._ways.patience_s(member.address, now_s)
                if is_silent:
                    self._ways.silent(member.address)
                if (is_silent or self._is_of_no_use(member, now_s)) and member.state is not State.DOWN:
                    why = f"silent for {silent_s:.1f} s" if is_silent else "probes do not reach it"
                    self._set(member, State.DOWN, f" ({why})")

    def _judge_unheard(self, member: Member, now_s: float) -> None:
        """Judge a storage node that never said HELLO.

        It is up as long as no storage node says HELLO, and then down, because it may have missed what was
        written before this controller began.
        """
        since_s = min(self._first_heard_s.values(), default=self._began_s)
        if since_s is None or now_s - since_s <= NEVER_HEARD_S:
            return
        if self._first_heard_s and member.state is not State.DOWN:
            self._set(member, State.DOWN, " (never heard)")
        elif not self._first_heard_s and member.state is State.JOINING:
            self._set(member, State.UP)

    def _suspected(self, node: str, suspects: frozenset[int], now_s: float) -> None:
        """Take note of storage nodes that a node suspects. The node may lie, so the controller only looks for
        itself."""
        self._doubts.heard(node, suspects, now_s)
        if any(one.number in suspects and one.state is not State.DOWN for one in self.members.nodes):
            self._ways.alarm(now_s)

    def _was_heard(self, member: Member) -> bool:
        """Return whether a storage node was heard since it was looked at last."""
        never = float("-inf")
        return self._heard_s.get(member.address, never) > self._looked_s.get(member.address, never)

    def _is_of_no_use(self, member: Member, now_s: float) -> bool:
        """Return whether a storage node that is heard is of no use: nothing reaches it, or much is lost on
        its way alone.

        Without R others that are up, none is kept away because of losses.
        """
        in_doubt = self._doubts.about(member.number, now_s)
        if self._ways.is_cut_off(member.address, in_doubt, now_s):
            return True
        others = sum(one.state is State.UP and one is not member for one in self.members.nodes)
        return self._ways.is_bad(member.address, in_doubt, now_s) and others >= self.members.replicas

    def _follow(self, epoch: int) -> None:
        """Go on from a later list: an earlier controller got further, or the clock was set back."""
        self._own_from = next_epoch(epoch)
        self._replace(Members(self._own_from, self.members.replicas, _all_joining(self.members)))

    def _made(self, epoch: int) -> bool:
        """Return whether an epoch is that of one of this controller's lists, as far as it knows."""
        return (epoch - self._own_from) % EPOCHS <= (self.members.epoch - self._own_from) % EPOCHS

    def _set(self, member: Member, state: State, why: str = "") -> None:
        log.info("storage node %s is %s, and was %s%s", member.address, state.name, member.state.name, why)
        nodes = tuple(replace(node, state=state) if node is member else node for node in self.members.nodes)
        self._replace(Members(next_epoch(self.members.epoch), self.members.replicas, nodes))

    def _replace(self, members: Members) -> None:
        self.members = members
        for tell in self.on_change:
            tell()


def _all_joining(members: Members) -> tuple[Member, ...]:
    """Return the storage nodes, with those that are up now joining."""
    return tuple(
        replace(node, state=State.JOINING) if node.state is State.UP else node for node in members.nodes
    )


class Announcements:
    """Announcements of the list to the hosts of one switch."""

    def __init__(self, membership: Membership, hosts: Iterable[IPv4Address]) -> None:
        self._membership = membership
        self._told: dict[IPv4Address, _Told] = dict.fromkeys(hosts, _NEVER)
        self._stores = [host for host in self._told if membership.members.at(str(host))]
        self._again_s, self._epoch = float("-inf"), -1
        """When the next host is to be told again what it knows, and the list's epoch."""

    def asked(self, answer: Answer) -> None:
        """Send the list at once to a host that said HELLO, if it knows an older one."""
        if answer.source in self._told and answer.message.generation != self._membership.members.epoch:
            self._told[answer.source], self._again_s = _NEVER, float("-inf")

    def poll(self, now_s: float) -> list[Announce]:
        """Return what to send now: the list to those who are to hear of it, and probes."""
        if not self._membership.counts_heartbeats:
            return []
        if now_s < self.due_s:
            return []
        probes = self._membership.probe(self._stores, now_s)
        members = self._membership.members
        due = []
        if self._list_due_s <= now_s:
            due = [host for host, told in self._told.items() if told.again_s(members.epoch) <= now_s]
            for host in due:
                self._told[host] = self._told[host].told(members.epoch, now_s)
            again_s = [told.again_s(members.epoch) for told in self._told.values()]
            self._again_s, self._epoch = min(again_s, default=float("inf")), members.epoch
        value = members.encode() if due or probes else b""
        hosts = dict.fromkeys([*due, *probes])
        return [Announce(host, members.epoch, value, probes.get(host, 0)) for host in hosts]

    @property
    def due_s(self) -> float:
        """Return when `poll` has something to say again, if nobody asks and nothing changes before."""
        if not self._membership.counts_heartbeats:
            return float("inf")
        return min(self._list_due_s, self._membership.probe_due_s(self._stores))

    @property
    def _list_due_s(self) -> float:
        return self._again_s if self._membership.members.epoch == self._epoch else float("-inf")


class _Told(NamedTuple):
    """List that a host was sent last, when, and seconds after which it is sent again."""

    epoch: int
    at_s: float
    wait_s: float

    def again_s(self, epoch: int) -> float:
        """Return the time at which the host should hear of the list that has this epoch."""
        return self.at_s + self.wait_s if epoch == self.epoch else float("-inf")

    def told(self, epoch: int, now_s: float) -> _Told:
        """Return the state of a host that is sent that list now."""
        wait_s = min(MOST_REPEAT_S, 2 * self.wait_s) if epoch == self.epoch else REPEAT_S
        return _Told(epoch, now_s, wait_s)


_NEVER: Final = _Told(-1, 0.0, 0.0)
