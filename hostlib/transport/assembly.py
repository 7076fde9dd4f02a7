"""Blocks put together from fragments that come one by one, each write by itself, within bounds."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hostlib.protocol.block import Block
from hostlib.protocol.wire import VALUE_BYTES

if TYPE_CHECKING:
    from hostlib.native import Core
    from hostlib.protocol.wire import Message

Write = tuple[int, bytes, int, str]
"""Tenant, key, content id, and the address of the host that sends it: who knows a content id adds nothing to
another host's write."""
Source = tuple[int, str]
"""A tenant, and the address of a host that writes for it."""
FRAGMENT_BYTES = 1024
"""What a fragment that waits takes, about: its value, its tag and what Python adds."""


@dataclass(slots=True)
class _Partial:
    fragments: int
    values: dict[int, tuple[bytes, bytes] | bytes] = field(default_factory=dict)
    """By number: value and tag, or, from the compiled core, the message that they came in. As large as what
    came, not as what was announced."""


class Assembly:
    """Incomplete writes, at most `max_partial` of them in `max_bytes`. Of the tenant that has most there, and
    of that tenant's hosts the one that has most, the oldest is given up and counted: who floods gives way to
    itself."""

    def __init__(self, max_partial: int, max_bytes: int = 256 << 20, core: Core | None = None) -> None:
        self.given_up = 0
        self._core = core
        self._max_partial, self._max_fragments = max_partial, max_bytes // FRAGMENT_BYTES
        self._held = 0
        self._by_tenant: Counter[int] = Counter()
        """Fragments, and one for each write."""
        self._by_source: Counter[Source] = Counter()
        """The same for each host of each tenant."""
        self._partial: OrderedDict[Write, _Partial] = OrderedDict()

    def __len__(self) -> int:
        return len(self._partial)

    def add(self, message: Message, address: str = "") -> Block | None:
        """Take a fragment from a host; the block once all are there. A fragment that is there already is
        ignored."""
        write = (message.tenant, message.key, message.content, address)
        partial = self._partial.get(write)
        if partial is None:
            partial = self._partial[write] = _Partial(message.fragments)
            self._count(write, 1)
        if message.fragments != partial.fragments or message.fragment in partial.values:
            return None
        partial.values[message.fragment] = bytes(message.value), message.tag
        self._held += 1
        self._count(write, 1)
        if len(partial.values) == partial.fragments:
            self._drop(write)
            return self._join(write, partial)
        while len(self._partial) > self._max_partial or self._held > self._max_fragments:
            self._give_up_one()
        return None

    def add_run(
        self, core: Core, write: Write, fragments: int, puts: list[bytes], at: int, count: int
    ) -> tuple[int, Block | None]:
        """As `add` for so many messages of one write from a place on: how many were taken, up to the one with
        which all are there, and the block then. (0, None): these have to come one by one."""
        partial = self._partial.get(write)
        if partial is None:
            if len(self._partial) >= self._max_partial or self._held + count > self._max_fragments:
                return 0, None
            partial = self._partial[write] = _Partial(fragments)
            self._count(write, 1)
        elif partial.fragments != fragments or self._held + count > self._max_fragments:
            return 0, None
        before = len(partial.values)
        taken = core.keep(partial.values, puts, at, count, fragments)
        added = len(partial.values) - before
        self._held += added
        self._count(write, added)
        if len(partial.values) < fragments:
            return taken, None
        self._drop(write)
        return taken, self._join(write, partial)

    def _join(self, write: Write, partial: _Partial) -> Block:
        if self._core is not None:
            content, tags = self._core.join(partial.values, partial.fragments)
            return Block(write[2], content, tags)
        kept = (partial.values[at] for at in range(partial.fragments))
        parts = [one for one in kept if isinstance(one, tuple)]  # without a core, all are
        return Block(write[2], b"".join(value for value, _ in parts), b"".join(tag for _, tag in parts))

    def _drop(self, write: Write) -> None:
        count = len(self._partial.pop(write).values)
        self._held -= count
        self._count(write, -count - 1)

    def _count(self, write: Write, more: int) -> None:
        tenant, address = write[0], write[3]
        self._by_tenant[tenant] += more
        self._by_source[tenant, address] += more
        if not self._by_tenant[tenant]:
            del self._by_tenant[tenant]
        if not self._by_source[tenant, address]:
            del self._by_source[tenant, address]

    def _give_up_one(self) -> None:
        ((tenant, _),) = self._by_tenant.most_common(1)
        sources = [source for source in self._by_source if source[0] == tenant]
        source = max(sources, key=self._by_source.__getitem__)
        self._drop(next(write for write in self._partial if (write[0], write[3]) == source))
        self.given_up += 1


def is_whole_fragment(message: Message) -> bool:
    """Whether a value has the length that its place asks for: 512 bytes, the last at least one."""
    if message.fragment + 1 == message.fragments:
        return len(message.value) > 0
    return len(message.value) == VALUE_BYTES and message.fragment < message.fragments
