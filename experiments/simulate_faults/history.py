"""What was asked for and what came of it, and whether that may be."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from hostlib import wire
from hostlib.block import Block, Place, decode_record
from hostlib.errors import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from experiments.simulate_faults.plan import Operation
    from hostlib.simulated_disk import SimulatedDisk

MAX_VIOLATIONS: Final = 20
"""That are kept; one is enough to fail."""


class History:
    """Of one run."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        """Operations, by what became of them."""
        self.violations: list[str] = []
        self.durable: dict[Place, int] = {}
        """Acknowledged as on so many disks, at most."""
        self._written: dict[Place, dict[bytes, int]] = defaultdict(dict)
        """All contents that were ever offered, and by which operation."""

    def violation(self, text: str) -> None:
        """Something was promised and not kept."""
        self.outcomes["violations"] += 1
        if len(self.violations) < MAX_VIOLATIONS:
            self.violations.append(text)

    def offered(self, operation: Operation, place: Place) -> bytes:
        """A write begins; its content, which no other has."""
        rng = random.Random(operation.number)
        full = (operation.fragments - 1) * wire.VALUE_BYTES
        content = rng.randbytes(full + rng.randint(8, wire.VALUE_BYTES))
        self._written[place][content] = operation.number
        return content

    def acknowledged(
        self, operation: Operation, place: Place, disks: Sequence[SimulatedDisk], now_s: float
    ) -> None:
        """A write was said to be done; a durable one is on as many disks as were asked for, synced."""
        self.outcomes["written"] += 1
        if not operation.durable:
            return
        self.durable[place] = max(operation.replicas, self.durable.get(place, 0))
        held = sum(self._is_whole(place, disk.synced(place.name())) for disk in disks)
        if held < operation.replicas:
            self.violation(
                f"{now_s:.4f} s: operation {operation.number} was acknowledged as on {operation.replicas} "
                f"disks, and is on {held}"
            )

    def read(self, operation: Operation, place: Place, content: bytes, now_s: float) -> None:
        """A block was read."""
        self.outcomes["read"] += 1
        if not self.is_one_write(place, content):
            self.violation(f"{now_s:.4f} s: operation {operation.number} read what nobody wrote there")

    def not_read(self, place: Place) -> None:
        """There is no such block, a read was told."""
        self.outcomes["not_found"] += 1
        self.outcomes["not_found_though_durable"] += place in self.durable

    def is_one_write(self, place: Place, content: bytes) -> bool:
        """Whether somebody wrote just that there."""
        return content in self._written[place]

    def check_disks(self, disks: Sequence[SimulatedDisk]) -> None:
        """After all power is gone: what was acknowledged is there."""
        for place, replicas in self.durable.items():
            held = sum(self._is_whole(place, disk.synced(place.name())) for disk in disks)
            if held < replicas:
                self.violation(
                    f"block {place.key.hex()} was acknowledged on {replicas} disks, and is on {held}"
                )

    def _is_whole(self, place: Place, record: bytes | None) -> bool:
        """Whether a record is one write's of that place."""
        if record is None:
            return False
        try:
            block = decode_record(place, record)
        except UnreadableError:
            return False
        return isinstance(block, Block) and block.content in self._written[place]
