"""A table for each pool size: ways of telling below each other, shapes beside each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from rich.console import Console
from rich.table import Table


class Told(Protocol):
    """What a cell is of."""

    @property
    def trace(self) -> str: ...

    @property
    def blocks(self) -> int: ...

    @property
    def told(self) -> str: ...


Row = TypeVar("Row", bound=Told)


def print_sizes(
    console: Console, rows: Sequence[Row], about: str, cell: Callable[[Row], str], no_wrap: bool = False
) -> None:
    """`about`: what the cells have, behind the size in the title."""
    names = list(dict.fromkeys(row.trace for row in rows))
    for blocks in dict.fromkeys(row.blocks for row in rows):
        table = Table(title=f"{blocks:,} blocks: {about}")
        for name in ("told", *names):
            table.add_column(name, no_wrap=no_wrap)
        for told in dict.fromkeys(row.told for row in rows):
            table.add_row(told, *(cell(row) for row in rows if (row.blocks, row.told) == (blocks, told)))
        console.print(table)
