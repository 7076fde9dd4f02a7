"""A pool that is managed as any other and serves nobody: its entries have keys that no node asks for.

What a pool costs the control plane is there (digests, decisions, writes, counters) but for what it sends
itself, fills, reclaims and pushes; and nothing of what it does to the traffic. Compared with no pool at all,
that shows whether the machine which carries an emulation disturbs its figures
(`emulator.disturbance`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from controller.operations import Install, Remove

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from controller.operations import Adapter, PoolPacket, Result, TableOperation


class PhantomAdapter:
    """An `Adapter` under which every block has another key in the switch than in the pool.

    Packets are not sent: a phantom has no values to fill, reclaim or push.
    """

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter

    def write(self, operations: Sequence[TableOperation]) -> Sequence[Result]:
        """Carry out table operations; one result each."""
        return self._adapter.write([_disguised(operation) for operation in operations])

    def send(self, operations: Sequence[PoolPacket]) -> None:
        """Send nothing."""

    def read_blocks(self) -> list[Install]:
        """Return the pool index as the pool knows it."""
        return [replace(block, key=other_key(block.key)) for block in self._adapter.read_blocks()]

    def read_hits(self, base_slots: Iterable[int]) -> dict[int, int]:
        """Read the counters of the blocks that lie there; they have served nothing."""
        return self._adapter.read_hits(base_slots)


def _disguised(operation: TableOperation) -> TableOperation:
    if isinstance(operation, Install | Remove):
        return replace(operation, key=other_key(operation.key))
    return operation


def other_key(key: bytes) -> bytes:
    """Return what a phantom calls a block: a hash is hardly ever the complement of another. Its own
    inverse."""
    return bytes(byte ^ 0xFF for byte in key)
