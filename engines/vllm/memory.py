"""The engine's KV memory as the worker's side sees it."""

from __future__ import annotations

from typing import Protocol


class BlockMemory(Protocol):
    """The engine's KV memory. A block is stored as several objects, one for each group of layers."""

    def read(self, block_id: int, index: int) -> memoryview | None:
        """Return a copy of one object; None if it holds what is no number."""

    def empty(self, index: int) -> memoryview:
        """Return room for one object."""

    def write(self, block_id: int, index: int, content: memoryview) -> None:
        """Put an object where the engine looks for it."""
