"""A node that lends its memory: answers others' GETs for what it holds, and asks an index who holds what.

What it answers is what a storage node would, and `hostlib.storage.storage_node` answers it. What the index
does not answer in time is computed: an index that is gone, or hangs, costs time, never a request. It is gone
back to after a quarter of a second, and after twice as long each time that it does not answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from hostlib.model.watched_tiers import WatchedTiers
from hostlib.peer.lent import Lent
from hostlib.process.lines import KEYS_A_LINE, MAX_LINE_BYTES, in_lines, read_lines, to_line
from hostlib.protocol.errors import LineError
from hostlib.protocol.members import Members
from hostlib.protocol.transfer import BlockRef

FIND_TIMEOUT_S: Final = 1.0
REJOIN_S: Final = 0.25
MAX_REJOIN_S: Final = 32.0
MAX_UNSENT_BYTES: Final = 4 << 20
"""Most bytes that an index has not taken yet. An index that takes less is left."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class LendingStats:
    """Questions to the index."""

    asked: int = 0
    unanswered: int = 0
    asked_s: float = 0.0
    """Seconds, together, that requests waited for answers."""


class Lending:
    """One node's words with the index at `path`; `lent`, of which its GETs are answered, is kept at what
    `tiers` hold."""

    def __init__(self, path: str, address: str, tiers: WatchedTiers, lent: Lent, members: Members) -> None:
        """Make a client of the index; `members` are the nodes, of which no other may be named."""
        self.stats = LendingStats()
        self._path, self._address, self._tiers, self._lent = path, address, tiers, lent
        self._nodes = frozenset(member.address for member in members.nodes)
        self._loop = asyncio.get_running_loop()
        self._writer: asyncio.StreamWriter | None = None
        self._staying: asyncio.Task[None] | None = None
        self._rejoin_s = REJOIN_S
        self._numbers = count()
        self._questions: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._free_s: dict[str, float] = {}
        """By node, when what it has promised will have left, as the index said last."""
        tiers.on_change = self._tell_soon
        self._tell()

    def join(self) -> None:
        """Say what the node holds, soon and whenever the index is back; while there is none, others' memory
        is not asked."""
        self._staying = asyncio.create_task(self._stay())

    @property
    def joined(self) -> bool:
        """Return whether there is an index that listens."""
        return self._writer is not None

    async def locate(self, missing: Sequence[BlockRef]) -> list[BlockRef]:
        """Return the longest prefix of these blocks that other nodes hold, each with the node to ask for
        it."""
        began_s, number = self._loop.time(), next(self._numbers)
        self.stats.asked += 1
        self._questions[number] = answer = self._loop.create_future()
        self._say({"find": [block.key.hex() for block in missing[:KEYS_A_LINE]], "number": number})
        try:
            async with asyncio.timeout(FIND_TIMEOUT_S if self._writer is not None else 0.0):
                return self._located(missing, await answer)
        except (TimeoutError, LineError) as error:
            self.stats.unanswered += 1
            log.debug("the index did not answer: %s", error)
            self._leave()
            return []
        finally:
            del self._questions[number]
            self.stats.asked_s += self._loop.time() - began_s

    def promise(self, blocks: Sequence[BlockRef]) -> None:
        """Tell the index that these blocks are about to be fetched."""
        self._say({"promised": Counter(block.homes[0] for block in blocks)})

    def wait_s(self, node: str) -> float:
        """Return what is left of what the index last said that a node has promised."""
        return max(0.0, self._free_s.get(node, 0.0) - self._loop.time())

    def close(self) -> None:
        """Say nothing any more."""
        if self._staying is not None:
            self._staying.cancel()
        self._leave()

    def _located(self, missing: Sequence[BlockRef], answer: dict[str, Any]) -> list[BlockRef]:
        """Return the blocks with the nodes that an answer names; raises LineError for what is no answer to
        that."""
        now_s = self._loop.time()
        try:
            nodes: list[str] = list(answer["nodes"])
            if len(nodes) > len(missing) or not self._nodes.issuperset(nodes):
                raise ValueError("nodes that can't be")
            free_s = {node: now_s + float(answer["waits_s"][node]) for node in dict.fromkeys(nodes)}
        except (TypeError, ValueError, KeyError) as error:
            raise LineError(f"not an answer of an index: {error}") from None
        self._free_s |= free_s
        self._rejoin_s = REJOIN_S
        return [block._replace(homes=(node,)) for block, node in zip(missing, nodes, strict=False)]

    async def _stay(self) -> None:
        while True:
            reader = await self._connect()
            if reader is not None:
                await self._listen(reader)
                self._leave()
                log.warning("the index is gone: what this node does not hold is computed")
            await asyncio.sleep(self._rejoin_s)
            self._rejoin_s = min(MAX_REJOIN_S, 2 * self._rejoin_s)

    async def _connect(self) -> asyncio.StreamReader | None:
        try:
            reader, self._writer = await asyncio.open_unix_connection(self._path, limit=MAX_LINE_BYTES)
        except OSError:
            return None
        self._say({"node": self._address})
        self._say_keys("held", self._tiers.keys())
        return reader

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        try:
            async for message in read_lines(reader):
                number = message.get("number")
                answer = self._questions.get(number) if isinstance(number, int) else None
                if answer is not None and not answer.done():
                    answer.set_result(message)
        except LineError as error:
            log.warning("the index says nonsense: %s", error)

    def _tell_soon(self) -> None:
        self._loop.call_soon(self._tell)

    def _tell(self) -> None:
        """Tell the index, and the store that answers GETs, what changed."""
        came, left = self._tiers.changed()
        self._lent.remove(left)
        self._lent.add(came)
        self._say_keys("held", came)
        self._say_keys("gone", left)

    def _say_keys(self, name: str, keys: Iterable[bytes]) -> None:
        for message in in_lines(name, keys):
            self._say(message)

    def _say(self, message: dict[str, Any]) -> None:
        if self._writer is None:
            return
        self._writer.write(to_line(message))
        if self._writer.transport.get_write_buffer_size() > MAX_UNSENT_BYTES:
            self._leave()

    def _leave(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
