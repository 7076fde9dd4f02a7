"""An adapter that keeps what it is asked for, behaves like a switch's table, and fails when told to."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from controller.errors import ConnectionLostError
from controller.operations import HintAnswer, Install, PacketOperation, Remove, Replace, Result, SetGroup

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from controller.operations import PoolPacket, TableOperation


class RecordingAdapter:
    """`entries` is the pool index, `groups` are those of subscribers; `refusals` are results to give instead,
    in order of the updates.

    `backwards`: updates of one write are carried out from the last to the first, as a switch may.
    """

    def __init__(self, table_size: int = 1 << 20, backwards: bool = False) -> None:
        self.table_size = table_size
        self.backwards = backwards
        self.entries: dict[bytes, Install] = {}
        self.groups: dict[int, frozenset[int]] = {}
        self.hits: dict[int, int] = {}
        self.operations: list[TableOperation] = []
        self.packets: list[PacketOperation] = []
        self.hint_answers: list[HintAnswer] = []
        self.writes = 0
        self.refusals: deque[Result] = deque()
        self.lost = False

    def write(self, operations: Sequence[TableOperation]) -> Sequence[Result]:
        self._check()
        self.writes += 1
        self.operations += operations
        turn = -1 if self.backwards else 1
        results = [self.refusals.popleft() if self.refusals else self._apply(op) for op in operations[::turn]]
        return results[::turn]

    def send(self, operations: Sequence[PoolPacket]) -> None:
        self._check()
        self.packets += [one for one in operations if not isinstance(one, HintAnswer)]
        self.hint_answers += [one for one in operations if isinstance(one, HintAnswer)]

    def read_blocks(self) -> list[Install]:
        self._check()
        return list(self.entries.values())

    def read_hits(self, base_slots: Iterable[int]) -> dict[int, int]:
        self._check()
        return {base_slot: self.hits.get(base_slot, 0) for base_slot in base_slots}

    def _check(self) -> None:
        if self.lost:
            raise ConnectionLostError("no switch")

    def _apply(self, operation: TableOperation) -> Result:
        if isinstance(operation, Remove):
            return Result.OK if self.entries.pop(operation.key, None) else Result.NOT_FOUND
        if isinstance(operation, Install):
            present = operation.key in self.entries
            if present != isinstance(operation, Replace):
                return Result.ALREADY_EXISTS if present else Result.NOT_FOUND
            if not present and len(self.entries) >= self.table_size:
                return Result.FAILED
            self.entries[operation.key] = operation
        if isinstance(operation, SetGroup):
            if operation.present != (operation.group in self.groups):
                return Result.NOT_FOUND if operation.present else Result.ALREADY_EXISTS
            self.groups[operation.group] = operation.ports
            if not operation.ports:
                del self.groups[operation.group]
        return Result.OK
