"""Blocks that come unasked: which of them a node takes, and their assembly.

A node wants a pushed block if it asked for that block before, or for the block before it in its chain, not
too long ago, and does not hold it already. Its request for the first block of a prefix carries SUBSCRIBE:
so the controller knows whom to push to. Everything here is bounded; what does not fit is not taken.
Pure: time is a parameter.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from hostlib.assembly import Assembly, is_whole_fragment
from hostlib.wire import Message, fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable

    from hostlib.seal import Seal
    from hostlib.transfer import BlockRef

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class PushedOptions:
    """Bounds of what a node takes."""

    max_partial: int = 256
    """Blocks of which some fragments are there; the oldest gives way."""
    max_partial_bytes: int = 64 << 20
    """What these take."""
    max_interests: int = 8192
    """Blocks asked for that are remembered."""
    subscribe_again_s: float = 20.0
    """A node renews its subscription when it asks again after that."""


@dataclass(slots=True)
class PushedStats:
    """Blocks unless the name says otherwise."""

    fragments: int = 0
    """Fragments that came unasked."""
    unwanted: int = 0
    """Of them: not taken."""
    taken: int = 0
    corrupt: int = 0
    """Fragments whose tag is wrong: dropped."""
    dropped: int = 0
    """Incomplete: dropped for newer ones."""


class PushedBlocks:
    """`holds(key)` says whether the node has a block already, `keep(key)` gives it one that is whole."""

    def __init__(
        self,
        seal: Seal,
        holds: Callable[[bytes], bool],
        keep: Callable[[bytes], None],
        options: PushedOptions | None = None,
    ) -> None:
        self.stats = PushedStats()
        self.subscribing = True
        """Whether the node wants to be pushed to at all."""
        self._seal, self._holds, self._keep = seal, holds, keep
        self._options = options or PushedOptions()
        self._assembly = Assembly(self._options.max_partial, self._options.max_partial_bytes)
        self._interests: OrderedDict[int, None] = OrderedDict()
        self._subscribed_s: OrderedDict[int, float] = OrderedDict()

    def asks(self, block: BlockRef, now_s: float) -> bool:
        """The node asks for a block; whether it should subscribe to the prefix that begins with it."""
        own = fingerprint(block.key)
        starts_here = block.parent not in self._interests
        self._remember(self._interests, own, None)
        if (
            not self.subscribing
            or not starts_here
            or now_s - self._subscribed_s.get(own, -1e9) < self._options.subscribe_again_s
        ):
            return False
        self._remember(self._subscribed_s, own, now_s)
        return True

    def offer(self, message: Message) -> None:
        """A pushed fragment that nobody here asked for."""
        self.stats.fragments += 1
        if not self._wants(message):
            self.stats.unwanted += 1
            return
        if not self._seal.is_genuine(message):
            self.stats.corrupt += 1
            return
        block = self._assembly.add(message)
        self.stats.dropped = self._assembly.given_up
        if block is not None:
            self.stats.taken += 1
            self._remember(self._interests, fingerprint(message.key), None)  # so its children are wanted too
            self._keep(message.key)

    def _wants(self, message: Message) -> bool:
        if not is_whole_fragment(message):
            return False
        known = fingerprint(message.key) in self._interests or message.parent in self._interests
        return known and not self._holds(message.key)

    def _remember(self, memory: OrderedDict[int, Value], fingerprint: int, value: Value) -> None:
        memory[fingerprint] = value
        memory.move_to_end(fingerprint)
        if len(memory) > self._options.max_interests:
            memory.popitem(last=False)
