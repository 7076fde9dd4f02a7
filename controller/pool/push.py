"""Push: prefixes that several nodes keep asking for are multicast to their subscribers before they ask.

A node subscribes by asking for the first block of a prefix with the flag SUBSCRIBE; after `lease_s` without
that it is no subscriber any more. A resident block that was asked for again since it was last pushed, of a
prefix with enough subscribers, is pushed. What was pushed is asked for no more, so pushing ends by itself.

A node that joins subscribes to the block before all first blocks (NO_PARENT), once: what its tenant's nodes
asked for most is pushed to it, and to who else joined within `interval_s`.

A prefix has the same group number at every switch, computed from its root: a pushed value names its group,
and the next switch has its own subscribers in the group of that number. Pure: time is a parameter.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Final, NamedTuple

from controller.block_id import key_of, tenant_of
from controller.operations import PushFragment, SetGroup
from controller.pool.pace import Pace
from hostlib.protocol.wire import fingerprint
from workload.keys import NO_PARENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from controller.config import PushOptions
    from controller.pool.slots import Slots

FIRST_GROUP: Final = 2
"""Group 1 is that of all ports."""
GROUPS: Final = 1024
_TO_ITS_GROUP: Final = IPv4Address("255.255.255.255")
"""Destination of a push; each copy is addressed anew at its port."""
WELCOME_S: Final = 10.0
"""Most seconds that pushes to joining nodes may take, and least seconds before the same node may join again.
"""
MAX_PLACES: Final = 65_536
"""Blocks whose place in a prefix is remembered; the oldest are forgotten."""


class _Place(NamedTuple):
    root: int
    parent: int


@dataclass(slots=True)
class _Prefix:
    """One prefix with subscribers."""

    leases: dict[int, float] = field(default_factory=dict)
    """Port -> until when."""
    group: frozenset[int] = frozenset()
    """Ports in the group on the switch; empty: it is not there."""
    asked: dict[bytes, int] = field(default_factory=dict)
    """Resident blocks -> requests since the block was last pushed."""
    pushed_s: float = float("-inf")
    welcome: bool = False
    """Whether a node joined and nothing was pushed since."""


class _Job(NamedTuple):
    key: bytes
    root: int
    """Root of the prefix whose subscribers get the push."""
    parent: int
    fragment: int


class Push:
    """The pushes of one switch."""

    def __init__(self, options: PushOptions, max_fragments: int, interval_s: float) -> None:
        self.blocks = 0
        """Blocks pushed."""
        self._options = options
        self._max_jobs = max_fragments * options.max_prefixes
        self._pace = Pace(max_fragments, interval_s)
        self._places: OrderedDict[bytes, _Place] = OrderedDict()
        self._roots: dict[int, int] = {}
        self._prefixes: dict[int, _Prefix] = {}
        self._hits: Counter[bytes] = Counter()
        """Of resident blocks, since they came."""
        self._jobs: deque[_Job] = deque()

    # What happens.

    def heard_of(self, key: bytes, parent: int) -> None:
        """Take note of a block and its parent's fingerprint (0: it is the first of its prefix)."""
        own = _name(key, fingerprint(key_of(key)))
        root = own
        if parent:
            of_parent = _name(key, parent)
            root = self._roots.get(of_parent, of_parent)
        self._roots[own] = root
        if key in self._places and self._places[key].root != root:
            self._asked_no_more(key)
        self._places[key] = _Place(root, parent)
        self._places.move_to_end(key)
        if len(self._places) > MAX_PLACES:
            oldest = next(iter(self._places))
            self._asked_no_more(oldest)
            del self._places[oldest]
            self._roots.pop(_name(oldest, fingerprint(key_of(oldest))), None)

    def subscribed(self, key: bytes, parent: int, port: int, now_s: float) -> None:
        """Note that the node behind `port` asks for `key` and wants more of its prefix."""
        joins = key_of(key) == NO_PARENT
        if joins:
            root = _name(key, 0)
        else:
            self.heard_of(key, parent)
            root = self._places[key].root
        prefix = self._prefixes.get(root)
        if prefix is None:
            taken = {group_of(other) for other in self._prefixes}
            if len(self._prefixes) >= self._options.max_prefixes or group_of(root) in taken:
                return  # as if it had not subscribed: it asks, and is served
            prefix = self._prefixes[root] = _Prefix()
        if not joins:
            prefix.leases[port] = now_s + self._options.lease_s
        elif port not in prefix.leases:  # who asks again and again joins once in WELCOME_S
            prefix.leases[port] = now_s + WELCOME_S
            if not prefix.welcome:
                prefix.welcome, prefix.pushed_s = True, now_s

    def hits(self, key: bytes, times: int) -> None:
        """Count requests for a resident block."""
        self._hits[key] += times
        if (place := self._places.get(key)) and (prefix := self._prefixes.get(place.root)):
            prefix.asked[key] = prefix.asked.get(key, 0) + times

    def removed(self, key: bytes) -> None:
        """Note that a block left the pool."""
        self._hits.pop(key, None)
        self._asked_no_more(key)
        self._jobs = deque(job for job in self._jobs if job.key != key)

    def _asked_no_more(self, key: bytes) -> None:
        """Remove a block from the prefix that it was asked for in."""
        if (place := self._places.get(key)) and (prefix := self._prefixes.get(place.root)):
            prefix.asked.pop(key, None)

    def clear(self) -> None:
        """Forget the switch's groups and blocks, which are not there any more. Leases stay."""
        self._jobs.clear()
        self._hits.clear()
        for prefix in self._prefixes.values():
            prefix.group = frozenset()

    # What is done about it.

    def groups(self, now_s: float) -> list[SetGroup]:
        """Return the groups that have to change: subscribers came, or their lease ended."""
        changes = []
        for root, prefix in list(self._prefixes.items()):
            prefix.leases = {port: until for port, until in prefix.leases.items() if until > now_s}
            ports = frozenset(prefix.leases)
            if ports != prefix.group:
                changes.append(SetGroup(group_of(root), ports, present=bool(prefix.group)))
                prefix.group = ports
            if not ports:
                del self._prefixes[root]
        return changes

    def refused(self, change: SetGroup) -> None:
        """Note that a group is not as it should be: it is set anew with the next change of its prefix."""
        for root, prefix in self._prefixes.items():
            if group_of(root) == change.group:
                prefix.group = frozenset()

    def due(self, now_s: float, resident: Mapping[bytes, Slots]) -> Iterator[PushFragment]:
        """Yield the fragments to push now, within the bound of what may be on its way."""
        self._plan(now_s, resident)
        while self._jobs and self._pace.room(now_s):
            key, root, parent, fragment = self._jobs.popleft()
            if key in resident:
                self._pace.sent(now_s)
                yield PushFragment(
                    key, fragment, resident[key].fragments, _TO_ITS_GROUP, group_of(root), parent=parent,
                )  # fmt: skip

    def _plan(self, now_s: float, resident: Mapping[bytes, Slots]) -> None:
        options = self._options
        for root, prefix in self._prefixes.items():
            enough = prefix.welcome or len(prefix.group) >= options.subscribers
            if not enough or now_s < prefix.pushed_s + options.interval_s:
                continue
            if prefix.welcome:
                hot = self._hottest(root >> 32, resident)
                prefix.welcome = False
            else:
                hot = [
                    key for key, times in prefix.asked.items() if times >= options.hits and key in resident
                ]
            if not hot or len(self._jobs) >= self._max_jobs:
                continue
            prefix.pushed_s = now_s
            self.blocks += len(hot)
            for key in hot:
                prefix.asked.pop(key, None)
                fragments, parent = range(resident[key].fragments), self._places[key].parent
                self._jobs.extend(_Job(key, root, parent, fragment) for fragment in fragments)

    def _hottest(self, tenant: int, resident: Mapping[bytes, Slots]) -> list[bytes]:
        """Return the resident blocks of a tenant that were asked for most.

        Each stands behind the blocks before it in its chain, without which nobody wants it.
        """
        named = {
            _name(key, fingerprint(key_of(key))): key
            for key in self._places
            if key in resident and tenant_of(key) == tenant
        }
        chosen: dict[int, None] = {}
        for last in sorted(named, key=lambda name: -self._hits[named[name]]):
            chain: dict[int, None] = {}
            name = last
            while name in named and name not in chosen and name not in chain:
                chain[name] = None
                parent = self._places[named[name]].parent
                name = _name(named[name], parent) if parent else 0
            if (not name or name in chosen) and len(chosen) + len(chain) <= self._options.welcome_blocks:
                chosen.update(reversed(chain.items()))
        return [named[name] for name in chosen]


def _name(key: bytes, fingerprint_: int) -> int:
    """Return a fingerprint with the tenant of `key` before it: nobody can subscribe to another tenant's
    prefix."""
    return tenant_of(key) << 32 | fingerprint_


def group_of(root: int) -> int:
    """Return the multicast group of a prefix, at every switch the same."""
    return FIRST_GROUP + root % GROUPS
