"""Blocks put together from fragments that come one by one, each write by itself, within bounds."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hostlib import native
from hostlib.protocol.block import Block
from hostlib.protocol.wire import VALUE_BYTES

if TYPE_CHECKING:
    from hostlib.protocol.wire import Message

Write = tuple[int, bytes, int, str]
"""Tenant, key, content id, and the address of the host that sends it: who knows a content id adds nothing to
another host's write."""
Source = tuple[int, str]
"""A tenant, and the address of a host that writes for it."""
FRAGMENT_BYTES = VALUE_BYTES + 512
"""Approximate memory of a fragment that waits: value, tag and Python's overhead."""


@dataclass(slots=True)
class _Partial:
    fragments: int
    values: dict[int, tuple[bytes, bytes] | bytes] = field(default_factory=dict)
    """Value and tag of each fragment, by number; from the compiled core, the message that they came in. Takes
    memory for what came, not for what was announced."""


class _Shares:
    """Share of one bound that each tenant, and each host of a tenant, takes."""

    def __init__(self) -> None:
        self._by_tenant: Counter[int] = Counter()
        self._by_source: Counter[Source] = Counter()

    def count(self, write: Write, more: int) -> None:
        """Add to what the writer of `write` takes; `more` may be negative."""
        tenant, source = write[0], (write[0], write[3])
        self._by_tenant[tenant] += more
        self._by_source[source] += more
        if not self._by_tenant[tenant]:
            del self._by_tenant[tenant]
        if not self._by_source[source]:
            del self._by_source[source]

    def largest(self) -> Source:
        """Return, of the tenant that takes most, the host that takes most."""
        tenant = max(self._by_tenant, key=self._by_tenant.__getitem__)
        sources = [source for source in self._by_source if source[0] == tenant]
        return max(sources, key=self._by_source.__getitem__)


class Assembly:
    """Incomplete writes, at most `max_partial` of them in `max_bytes`.

    If a bound is exceeded, the oldest write is given up, and counted, of the tenant that takes most of that
    bound, and of that tenant's host that takes most of it: who floods gives way to itself."""

    def __init__(self, max_partial: int, max_bytes: int = 256 << 20) -> None:
        self.given_up = 0
        self._core = native.core()
        self._max_partial, self._max_fragments = max_partial, max_bytes // FRAGMENT_BYTES
        self._held = 0
        self._writes, self._fragments = _Shares(), _Shares()
        self._partial: OrderedDict[Write, _Partial] = OrderedDict()

    def __len__(self) -> int:
        return len(self._partial)

    def add(self, message: Message, address: str = "") -> Block | None:
        """Take a fragment from a host; the block once all are there. A fragment that is there already is
        ignored."""
        write = write_of(message, address)
        partial = self._partial.get(write)
        if partial is None:
            partial = self._partial[write] = _Partial(message.fragments)
            self._writes.count(write, 1)
        if message.fragments != partial.fragments or message.fragment in partial.values:
            return None
        partial.values[message.fragment] = bytes(message.value), message.tag
        self._held += 1
        self._fragments.count(write, 1)
        if len(partial.values) == partial.fragments:
            self._drop(write)
            return self._join(write, partial)
        self._make_room()
        return None

    def add_run(
        self, write: Write, fragments: int, puts: list[bytes], at: int, count: int
    ) -> tuple[int, Block | None]:
        """Add so many messages of one write, from index `at` on, as `add` does.

        Stops behind the message that completes the block. Returns how many were taken, and the block if it is
        complete. (0, None) means that the messages have to come one by one.
        """
        partial = self._partial.get(write)
        if partial is None:
            partial = self._partial[write] = _Partial(fragments)
            self._writes.count(write, 1)
        elif partial.fragments != fragments:
            return 0, None
        before = len(partial.values)
        taken = self._core.keep(partial.values, puts, at, count, fragments)
        added = len(partial.values) - before
        self._held += added
        self._fragments.count(write, added)
        if len(partial.values) < fragments:
            self._make_room()
            return taken, None
        self._drop(write)
        return taken, self._join(write, partial)

    def _join(self, write: Write, partial: _Partial) -> Block:
        content, tags = self._core.join(partial.values, partial.fragments)
        return Block(write[2], content, tags)

    def _drop(self, write: Write) -> None:
        count = len(self._partial.pop(write).values)
        self._held -= count
        self._fragments.count(write, -count)
        self._writes.count(write, -1)

    def _make_room(self) -> None:
        """Give up writes until the bounds are kept."""
        while len(self._partial) > self._max_partial:
            self._give_up_one_of(self._writes.largest())
        while self._held > self._max_fragments:
            self._give_up_one_of(self._fragments.largest())

    def _give_up_one_of(self, source: Source) -> None:
        self._drop(next(write for write in self._partial if (write[0], write[3]) == source))
        self.given_up += 1


def write_of(message: Message, address: str) -> Write:
    """Return which write a PUT of the host with that address belongs to."""
    return message.tenant, message.key, message.content, address


def is_whole_fragment(message: Message) -> bool:
    """Return whether a value has the length that its place asks for: 512 bytes, the last at least one."""
    if message.fragment + 1 == message.fragments:
        return len(message.value) > 0
    return len(message.value) == VALUE_BYTES and message.fragment < message.fragments
