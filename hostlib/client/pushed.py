"""Blocks that come unasked: which of them a node takes (`Interests`), and their assembly (`PushedBlocks`).

A node wants a pushed block if it asked for that block before, or for the block before it in its chain, not
too long ago, and does not hold it already. Its request for the first block of a prefix carries SUBSCRIBE:
so the controller knows whom to push to. A node that joins asks for the block before all first blocks
(`workload.keys.NO_PARENT`), which nobody holds: so it subscribes to what others asked for most, and wants it.
Everything here is bounded; what does not fit is not taken. Pure: time is a parameter.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, TypeVar

from hostlib.protocol.wire import Message, fingerprint
from hostlib.transport.assembly import Assembly, is_whole_fragment

if TYPE_CHECKING:
    from collections.abc import Callable

    from hostlib.protocol.seal import Seal
    from hostlib.protocol.transfer import BlockRef

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class PushedOptions:
    """Bounds of what a node takes."""

    max_partial: int = 256
    """Blocks of which some fragments are there; the oldest gives way."""
    max_partial_bytes: int = 64 << 20
    """Most bytes that incomplete blocks take."""
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
    """Pushed fragments that were not taken."""
    taken: int = 0
    corrupt: int = 0
    """Fragments whose tag is wrong: dropped."""
    dropped: int = 0
    """Incomplete: dropped for newer ones."""


class Interests:
    """Blocks that a node wants to have pushed to it: what it asked for lately, or what follows that in its
    chain."""

    def __init__(self, options: PushedOptions) -> None:
        self._options = options
        self._blocks: OrderedDict[int, None] = OrderedDict()
        self._subscribed_s: OrderedDict[int, float] = OrderedDict()

    def asks(self, key: bytes, parent: int, now_s: float) -> bool:
        """Take note that the node asks for a block; return whether it should subscribe to the prefix that
        begins with it."""
        own = fingerprint(key)
        starts_here = not parent or parent not in self._blocks
        self.note(key)
        since_s = now_s - self._subscribed_s.get(own, -inf)
        if not starts_here or since_s < self._options.subscribe_again_s:
            return False
        self._remember(self._subscribed_s, own, now_s)
        return True

    def want(self, key: bytes, parent: int) -> bool:
        """Return whether the node wants a block, if it does not hold it."""
        return fingerprint(key) in self._blocks or parent in self._blocks

    def note(self, key: bytes) -> None:
        """Take note that the node asked for a block, or got it pushed: it is wanted, and so are its
        children."""
        self._remember(self._blocks, fingerprint(key), None)

    def _remember(self, memory: OrderedDict[int, Value], fingerprint: int, value: Value) -> None:
        memory[fingerprint] = value
        memory.move_to_end(fingerprint)
        if len(memory) > self._options.max_interests:
            memory.popitem(last=False)


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
        options = options or PushedOptions()
        self._assembly = Assembly(options.max_partial, options.max_partial_bytes)
        self._interests = Interests(options)

    def asks(self, block: BlockRef, now_s: float) -> bool:
        """Take note that the node asks for a block; return whether it should subscribe to the prefix that
        begins with it."""
        if not self.subscribing:
            self._interests.note(block.key)
            return False
        return self._interests.asks(block.key, block.parent, now_s)

    def offer(self, message: Message) -> None:
        """Take a pushed fragment that nobody here asked for."""
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
            self._interests.note(message.key)
            self._keep(message.key)

    def _wants(self, message: Message) -> bool:
        if not is_whole_fragment(message):
            return False
        return self._interests.want(message.key, message.parent) and not self._holds(message.key)
