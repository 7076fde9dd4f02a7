"""The switch of a replay, block by block: entries and their slots, requests in flight, and the sketch of
misses, as `p4/` has them. What it reports it gathers into lists, as the digests of a switch are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Final

from controller.operations import HotMiss

SKETCH_CELLS: Final = 4096
SKETCH_EPOCH_S: Final = 2**26 / 1e6
PENDING_TIMEOUT_S: Final = 0.2
_ROWS: Final = (slice(12, 16), slice(8, 12), slice(4, 8))
"""Of a key's bytes: what picks the cell in each row."""
_MOST: Final = 0xFFFF


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a GET says of its block, and where that lives."""

    key: bytes
    depth: int
    chain_blocks: int
    parent: int
    """First 32 bits of the parent's key, 0 for none."""
    home: IPv4Address
    recompute_ms: int
    fragments: int = 1

    def report(self, count: int, nodes: int, backlog_ms: int = 0) -> HotMiss:
        """What the switch says of it when so many nodes waited for the value."""
        return HotMiss(
            0, self.key, self.parent, self.depth, self.chain_blocks, self.fragments, backlog_ms,
            self.recompute_ms, count, (1 << nodes) - 1, self.home,
        )  # fmt: skip


class Sketch:
    """Fetches by block, as p4/include/sketch.p4 counts them: never too few, halved each epoch."""

    def __init__(self) -> None:
        self._cells: list[dict[int, tuple[int, int]]] = [{} for _ in _ROWS]

    def count(self, key: bytes, now_s: float) -> int:
        """One more; the estimate."""
        epoch = int(now_s / SKETCH_EPOCH_S)
        least = _MOST
        for cells, part in zip(self._cells, _ROWS, strict=True):
            at = int.from_bytes(key[part], "big") % SKETCH_CELLS
            counted, seen = cells.get(at, (epoch, 0))
            if counted != epoch:
                seen = seen >> 1 if counted + 1 == epoch else 0
            seen = min(_MOST, seen + 1)
            cells[at] = epoch, seen
            least = min(least, seen)
        return least


@dataclass(slots=True)
class Entry:
    """A block of the pool index."""

    base_slot: int
    generation: int
    fragments: int
    since_s: float
    filled: int = 0
    """Bit n: fragment n is there."""

    @property
    def is_whole(self) -> bool:
        """Whether all of it is there."""
        return self.filled == (1 << self.fragments) - 1


@dataclass(slots=True)
class Claim:
    """A request in flight."""

    since_s: float
    nodes: int = 1
    """That wait for its value."""


class SwitchModel:
    """See the module. `report` is called with a block, its count and who waited; 0 as threshold: never."""

    def __init__(self, report: Callable[[Wanted, int, int, float], None], threshold: int) -> None:
        self.entries: dict[bytes, Entry] = {}
        self.served: dict[int, int] = {}
        """Fragments, by the block's first slot."""
        self.threshold = threshold
        self._report = report
        self._sketch = Sketch()
        self._claims: dict[bytes, Claim] = {}
        self._there: set[bytes] = set()
        """Blocks that a home is known to have."""

    def probe(self, wanted: Wanted, now_s: float) -> bool | None:
        """A GET of fragment 0: whether it is served here; None: it waits for the value that another asked
        for."""
        entry = self.entries.get(wanted.key)
        if entry is not None and entry.filled & 1:
            self._serve(entry, 1)
            return True
        claim = self._claims.get(wanted.key)
        if claim is not None and now_s - claim.since_s < PENDING_TIMEOUT_S:
            claim.nodes += 1
            return None
        self._claims[wanted.key] = Claim(now_s)
        return False

    def value(self, wanted: Wanted, now_s: float) -> None:
        """The value of fragment 0 passes: it fills its slot, or is counted."""
        claim = self._claims.pop(wanted.key, None)
        self._there.add(wanted.key)
        entry = self.entries.get(wanted.key)
        if entry is not None:
            entry.filled |= 1
            return
        count, threshold = self._sketch.count(wanted.key, now_s), self.threshold
        if threshold and (count == threshold or (count > threshold and not count & (count - 1))):
            self._report(wanted, count, claim.nodes if claim is not None else 1, now_s)

    def rest(self, wanted: Wanted) -> int:
        """GETs of the other fragments: how many of them are served here."""
        entry = self.entries.get(wanted.key)
        if entry is None:
            return 0
        held = (entry.filled & ~1).bit_count()
        self._serve(entry, held)
        return held

    def rest_values(self, wanted: Wanted, first_s: float, last_s: float) -> None:
        """The values of the other fragments have passed, evenly from the first to the last: those that came
        after the entry did fill their slots."""
        entry = self.entries.get(wanted.key)
        if entry is None:
            return
        others = wanted.fragments - 1
        step_s = (last_s - first_s) / max(1, others)
        for fragment in range(1, wanted.fragments):
            if first_s + fragment * step_s >= entry.since_s:
                entry.filled |= 1 << fragment

    def put(self, wanted: Wanted) -> None:
        """A block on its way to its home passes, and then the acknowledgement: if it has an entry it is
        filled, unless a home had it already, as somebody has put or got it before."""
        entry = self.entries.get(wanted.key)
        is_new = wanted.key not in self._there
        self._there.add(wanted.key)
        if is_new and entry is not None and entry.fragments == wanted.fragments:
            entry.filled = (1 << entry.fragments) - 1

    def fill(self, key: bytes, generation: int, fragment: int) -> None:
        """A value that was fetched for a slot arrives."""
        entry = self.entries.get(key)
        if entry is not None and entry.generation == generation:
            entry.filled |= 1 << fragment

    def _serve(self, entry: Entry, fragments: int) -> None:
        self.served[entry.base_slot] = self.served.get(entry.base_slot, 0) + fragments
