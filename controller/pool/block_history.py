"""History of each block in a pool, for people to look at: how often it was wanted, when it came and went."""

from __future__ import annotations

from collections import deque
from heapq import nlargest
from typing import Any, Final, NamedTuple

from controller.block_id import key_of

MOST_BLOCKS: Final = 16_384
"""Number of blocks outside the pool whose history is kept; beyond it the half wanted least is forgotten."""
MOST_TURNS: Final = 16
"""Number of admissions and evictions kept of one block."""
MOST_DECISIONS: Final = 16
"""Number of decisions kept between two reports."""
MOST_HOT: Final = 5
"""Number of blocks in `hot_residents`."""
KEY_DIGITS: Final = 8
"""Hexadecimal digits of a key that are shown: enough to tell blocks apart on a screen."""


class Decision(NamedTuple):
    """An entry that came or went."""

    number: int
    """Position among all decisions of this pool, from 1."""
    what: str
    """"admitted" or "evicted"."""
    key: str
    depth: int
    """Number of blocks before it in its prefix."""
    hits: int
    """Requests that the pool served since the block was admitted."""


class BlockRecord:
    """The history of one block."""

    __slots__ = ("depth", "hits", "hits_before", "reported", "turns")

    def __init__(self) -> None:
        self.depth = 0
        self.reported = 0
        """Requests that missed the pool, as far as the switch reported them, or nodes computed the block."""
        self.hits = 0
        """Requests that the pool served."""
        self.hits_before = 0
        """Those of them before the block was admitted last."""
        self.turns: deque[tuple[float, str]] = deque(maxlen=MOST_TURNS)
        """(when, "admitted" or "evicted"), in seconds of the pool's clock."""

    @property
    def wanted(self) -> int:
        """Requests for the block, in the pool or not."""
        return self.reported + self.hits


class BlockHistory:
    """Histories by block, bounded. The thread of a pool writes it, another may read it."""

    def __init__(self) -> None:
        self._absent: dict[bytes, BlockRecord] = {}
        self._resident: dict[bytes, BlockRecord] = {}
        self._decisions: deque[Decision] = deque(maxlen=MOST_DECISIONS)
        self._decided = 0
        self._changes = self._seen_changes = 0
        """Number of changes of residents' hits, and how many of them `_hot` knows."""
        self._hot: list[dict[str, Any]] = []

    def reported(self, block: bytes, depth: int, times: int) -> None:
        """Note that the switch reported misses of a block, or that a node computes it."""
        record = self._record(block)
        record.depth = depth
        record.reported += times

    def hit(self, block: bytes, times: int) -> None:
        """Note that the pool served a block, which is in it."""
        record = self._resident.get(block)
        if record is None:  # it was there before the controller
            record = self._enter(block)
        record.hits += times
        self._changes += 1

    def admitted(self, block: bytes, depth: int, now_s: float) -> None:
        """Note that a block got its entry."""
        record = self._enter(block)
        record.depth = depth
        record.turns.append((now_s, "admitted"))
        self._decide("admitted", block, record)

    def evicted(self, block: bytes, now_s: float) -> None:
        """Note that a block lost its entry."""
        record = self._resident.pop(block, None) or self._record(block)
        self._absent[block] = record
        record.turns.append((now_s, "evicted"))
        self._changes += 1
        self._decide("evicted", block, record)

    def forget_residents(self) -> None:
        """Note that nothing is known any more of what the pool holds."""
        self._absent |= self._resident
        self._resident.clear()
        self._changes += 1

    def most_wanted(self, count: int) -> list[tuple[bytes, BlockRecord]]:
        """Return the blocks that were wanted most, in the pool or not; the most wanted first."""
        return nlargest(
            count, [*self._absent.items(), *self._resident.items()], key=lambda item: item[1].wanted
        )

    @property
    def decisions(self) -> list[dict[str, Any]]:
        """Return the last decisions, oldest first; their numbers tell which are new."""
        return [decision._asdict() for decision in tuple(self._decisions)]

    @property
    def hot_residents(self) -> list[dict[str, Any]]:
        """Return the blocks in the pool with most hits since they came; each stands for the prefix that it
        ends."""
        if (changes := self._changes) != self._seen_changes:
            self._seen_changes = changes  # what changes meanwhile is seen next time
            hits = [
                (one.hits - one.hits_before, key, one.depth) for key, one in tuple(self._resident.items())
            ]
            self._hot = [
                {"key": _shown(key), "depth": depth, "hits": count}
                for count, key, depth in nlargest(MOST_HOT, hits)
                if count
            ]
        return self._hot

    def _record(self, block: bytes) -> BlockRecord:
        record = self._resident.get(block) or self._absent.get(block)
        if record is None:
            if len(self._absent) >= MOST_BLOCKS:
                most_wanted = nlargest(
                    MOST_BLOCKS // 2, self._absent.items(), key=lambda item: item[1].wanted
                )
                self._absent = dict(most_wanted)
            record = self._absent[block] = BlockRecord()
        return record

    def _enter(self, block: bytes) -> BlockRecord:
        record = self._absent.pop(block, None) or self._resident.get(block)
        if record is None:
            record = BlockRecord()
        self._resident[block] = record
        record.hits_before = record.hits
        return record

    def _decide(self, what: str, block: bytes, record: BlockRecord) -> None:
        self._decided += 1
        hits = record.hits - record.hits_before
        self._decisions.append(Decision(self._decided, what, _shown(block), record.depth, hits))


def _shown(key: bytes) -> str:
    return key_of(key).hex()[:KEY_DIGITS]
