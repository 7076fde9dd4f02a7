"""Layout of registers' cells in memory.

P4 programs spread values wider than a register's widest cell over several arrays and read them at one index.
The cells of such arrays lie side by side: the value is one piece of memory, and costs no cache miss for each
array.
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
    """Place of a register's cells in memory that it may share with the registers before it."""

    offset_bytes: int
    """Bytes before its first cell; 0 if no other register lies before it in this memory."""
    stride_bytes: int
    """Bytes from one cell to the next."""


def layouts(registers: Sequence[ir.ExternInstance]) -> list[RegisterLayout]:
    """Return each register's layout: neighbours of equal size whose cells are byte arrays share memory."""
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
