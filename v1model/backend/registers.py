"""Where the cells of registers lie in memory.

Values wider than a register's widest cell are spread over several arrays and read at one index. Their
cells lie side by side, so that such a value is one piece of memory and not one miss or more an array.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from v1model.backend.layout import is_wide, storage_bytes, value_width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from v1model import ir


@dataclass(frozen=True, slots=True)
class RegisterLayout:
    """Where a register's cells lie in memory that it may share with the registers before it."""

    offset_bytes: int
    """Where its first cell begins; 0 if no other register lies before it in this memory."""
    stride_bytes: int
    """From one cell to the next."""


def layouts(registers: Sequence[ir.ExternInstance]) -> list[RegisterLayout]:
    """Return each register's layout: neighbours with as many cells, all of them byte arrays, share memory."""
    found: list[RegisterLayout] = []
    for _, group in groupby(enumerate(registers), lambda numbered: _shares(*numbered)):
        cells = [cell_bytes(register) for _, register in group]
        found += (RegisterLayout(sum(cells[:before]), sum(cells)) for before in range(len(cells)))
    return found


def _shares(number: int, register: ir.ExternInstance) -> tuple[int, int]:
    """Return a key that is the same for neighbours that share memory, and for no others."""
    if register.value_type is not None and is_wide(register.value_type):
        return -1, register.size
    return number, register.size


def cell_bytes(register: ir.ExternInstance) -> int:
    """Return the bytes of one cell."""
    return storage_bytes(value_width(register.value_type)) if register.value_type else 1
