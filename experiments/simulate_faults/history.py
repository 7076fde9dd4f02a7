"""History of a run: what was asked for, what came of it, and whether that may be."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hostlib.protocol import wire
from hostlib.protocol.block import Block, Place, decode_record
from hostlib.protocol.errors import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from experiments.simulate_faults.plan import Operation
    from hostlib.storage.simulated_disk import SimulatedDisk

ANSWER_S: Final = 0.5
"""Seconds after a block was acknowledged in which an earlier answer may be on its way. A claim of the switch
lasts for 0.2 s, and a slow storage node is up to 0.25 s further away."""
WRONG, LOST, UNREADABLE, LATE, CRASHED = KINDS = ("wrong", "lost", "unreadable", "late", "crashed")
"""Kinds of violations: a read gives what nobody wrote; an acknowledged block is not where it was said to be,
or is said not to exist; it can't be read in the end; something takes too long; an exception is uncaught."""
MAX_VIOLATIONS: Final = 20
"""Number of violations that are recorded; one is enough to fail."""


@dataclass(slots=True, eq=False)
class Deletion:
    """A deletion of a block. `done_s` is when it was acknowledged; one that failed may take effect later."""

    place: Place
    began_s: float
    done_s: float = math.inf
    left: frozenset[bytes] = frozenset()
    """Second writes of the block that only storage nodes held which were down: these may come back."""


class History:
    """History of one run."""

    def __init__(self, replicas: int) -> None:
        """Begin a history; `replicas` is that of the list of members."""
        self._replicas = replicas
        self.outcomes: Counter[str] = Counter()
        """Number of operations, by what became of them."""
        self.violations: list[str] = []
        self.durable: dict[Place, int] = {}
        """Acknowledged as on so many disks, at most."""
        self.durable_s: dict[Place, float] = {}
        """Since when a block was acknowledged as on as many disks as the list says, or more."""
        self._deletions: dict[Place, list[Deletion]] = defaultdict(list)
        self._acknowledged_s: dict[Place, dict[bytes, float]] = defaultdict(dict)
        """When each content was said to be stored."""
        self._written: dict[Place, dict[bytes, int]] = defaultdict(dict)
        """All contents that were ever offered, and by which operation."""

    def violation(self, kind: str, text: str) -> None:
        """Record something that was promised and not kept; `kind` is one of KINDS."""
        self.outcomes["violations"] += 1
        self.outcomes[kind] += 1
        if len(self.violations) < MAX_VIOLATIONS:
            self.violations.append(text)

    def offered(self, operation: Operation, place: Place) -> bytes:
        """Begin a write; return its content, which no other has."""
        rng = random.Random(operation.number)
        full = (operation.fragments - 1) * wire.VALUE_BYTES
        content = rng.randbytes(full + rng.randint(8, wire.VALUE_BYTES))
        self._written[place][content] = operation.number
        return content

    def acknowledged(
        self,
        operation: Operation,
        place: Place,
        content: bytes,
        disks: Sequence[SimulatedDisk],
        began_s: float,
        now_s: float,
        is_found: bool,
    ) -> None:
        """Note that a write was acknowledged.

        A durable one is on as many disks as were asked for, synced, unless a deletion of the block may take
        effect meanwhile or later. `is_found`: whether all others find it from now on, as nobody goes by a
        later list than the writer.
        """
        self.outcomes["written"] += 1
        self._acknowledged_s[place][content] = now_s
        if not operation.durable or any(one.done_s > began_s for one in self._deletions[place]):
            return
        self.durable[place] = max(operation.replicas, self.durable.get(place, 0))
        if operation.replicas >= self._replicas and is_found:
            self.durable_s.setdefault(place, now_s)
        held = sum(self._is_whole(place, disk.synced(place.name())) for disk in disks)
        if held < operation.replicas:
            self.violation(
                LOST,
                f"{now_s:.4f} s: operation {operation.number} was acknowledged as on {operation.replicas} "
                f"disks, and is on {held}",
            )

    def delete_begins(self, place: Place, now_s: float) -> Deletion:
        """Begin a deletion: from now on nothing is promised of what is there."""
        deletion = Deletion(place, now_s)
        self._deletions[place].append(deletion)
        self.durable.pop(place, None)
        self.durable_s.pop(place, None)
        return deletion

    def deleted(self, deletion: Deletion, now_s: float, left: Iterable[bytes] = ()) -> None:
        """Note that a deletion was acknowledged.

        None of what was stored before it began is read by a read that begins from now on, but for what is
        left at storage nodes that are down.
        """
        self.outcomes["deleted"] += 1
        deletion.done_s, deletion.left = now_s, frozenset(left)

    def is_deleted(self, place: Place, content: bytes, asked_s: float) -> bool:
        """Return whether who asks then must not be given this any more."""
        stored_s = self._acknowledged_s[place].get(content, math.inf)
        return any(
            stored_s <= one.began_s and one.done_s < asked_s and content not in one.left
            for one in self._deletions[place]
        )

    def read(
        self,
        operation: Operation,
        place: Place,
        content: bytes,
        asked_s: float,
        now_s: float,
        *,
        is_cut_off: Callable[[], bool],
    ) -> None:
        """Check a block that was read, and asked for at `asked_s`.

        `is_cut_off` is asked about a deleted one: it says whether the reader and the giver may both not have
        heard of the deletion.
        """
        self.outcomes["read"] += 1
        if self.is_deleted(place, content, asked_s):
            if is_cut_off():
                self.outcomes["deleted_and_read_while_cut_off"] += 1
            else:
                self.violation(WRONG, f"{now_s:.4f} s: operation {operation.number} read what was deleted")
        if not self.is_one_write(place, content):
            self.violation(WRONG, f"{now_s:.4f} s: operation {operation.number} read what nobody wrote there")

    def not_read(
        self,
        operation: Operation,
        place: Place,
        durable_since_s: float | None,
        began_s: float,
        now_s: float,
    ) -> None:
        """Check that a read, which began at `began_s`, may have been told that there is no such block.

        Of a chain, that may be an answer to what was asked before.
        """
        self.outcomes["not_found"] += 1
        if durable_since_s is None or durable_since_s >= began_s:
            return
        if any(one.done_s > began_s for one in self._deletions[place]):
            return  # a deletion may have taken effect while it was read
        if not operation.chain:
            self.violation(
                LOST,
                f"{now_s:.4f} s: operation {operation.number} was told that there is no such block, which "
                f"was acknowledged {began_s - durable_since_s:.4f} s before it began",
            )
        self.outcomes["not_found_though_durable"] += 1
        self.outcomes["not_found_by_an_answer_on_its_way"] += began_s - durable_since_s < ANSWER_S

    def is_one_write(self, place: Place, content: bytes) -> bool:
        """Return whether somebody wrote just that there."""
        return content in self._written[place]

    def check_disks(self, disks: Sequence[SimulatedDisk]) -> None:
        """Check that what was acknowledged is on the disks after all power is gone."""
        for place, replicas in self.durable.items():
            held = sum(self._is_whole(place, disk.synced(place.name())) for disk in disks)
            if held < replicas:
                self.violation(
                    LOST, f"block {place.key.hex()} was acknowledged on {replicas} disks, and is on {held}"
                )

    def _is_whole(self, place: Place, record: bytes | None) -> bool:
        """Return whether a record is one write's of that place."""
        if record is None:
            return False
        try:
            block = decode_record(place, record)
        except UnreadableError:
            return False
        return isinstance(block, Block) and block.content in self._written[place]
