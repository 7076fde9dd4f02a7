"""The compiled core of `reuse`: all that is done for each access, in C.

`make setup`, or `python -m controller.policies.reuse.native`, compiles it where there are a C compiler and
Python's headers. `compiled()` is None where that has not happened, or where WEIR_PURE=1 forbids it; then
`reference.py` does the same in Python. That is the reference: a test plays both and compares every decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from controller.policies.events import Key
from controller.policies.reuse.reuse_ages import BUCKETS
from controller.policies.reuse.reuse_classes import CLASSES
from controller.policies.reuse.reuse_model import Floats, Learner
from hostlib.native import extension
from hostlib.native.build import build

MODULE = "weir_policy"
FOLDER = Path(__file__).resolve().parent

IN_POOL, UNKNOWN = -1, -2
"""Answers beside 1 and 0: whether the pool should have a block."""

Facts = tuple[int, int, int, float, Key | None, bool]
"""Times asked for, ticks since the last, place, value, the block before it, whether that is held."""


class Core(Protocol):
    """State of the policy for each access: what is remembered of blocks, which are wanted, and what the pool
    holds."""

    def __contains__(self, key: object) -> bool: ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Key]: ...

    def ask(
        self, key: Key, parent_key: Key | None, is_last: bool, place: int, fragments: int, times: int, /
    ) -> int:
        """Count a request for a block. Return IN_POOL, or whether it is wanted in the pool now; UNKNOWN, and
        nothing is counted, where neither it nor its parent is remembered."""

    def hits(self, key: Key, times: int, /) -> int:
        """Record hits of a block of which nothing new was said; return its place, UNKNOWN if it is not
        remembered."""

    def give_up(self, key: Key, /) -> bool:
        """Give up a block until it is asked for again; return False, and change nothing, where blocks behind
        it are wanted."""

    def resize(self, blocks: int, slots: int, /) -> None:
        """Set the capacity. The blocks of least worth beyond it are wanted no longer. Raises ValueError."""

    def end_tick(self) -> int:
        """Let the clock go on by a tick; return how often any block was asked for again, ever."""

    def set_worths(self, seconds: list[float], steps: list[int], /) -> None:
        """Set what a hit saves by place, as Worth has it."""

    def refresh(self, ticks: float, learner: Learner) -> None:
        """Put to use what was learned in so many ticks."""

    def enter(self, key: Key, /) -> None:
        """Record that a block enters the pool."""

    def leave(self, key: Key, /) -> None:
        """Take a block out of the pool; raises KeyError."""

    def least(self, most: int, /) -> list[Key]:
        """Return at most so many blocks of the pool, in the order in which they leave.

        Blocks that are not wanted leave first; among equals, the one that was asked for, or given up, longest
        ago.
        """

    def is_wanted(self, key: Key, /) -> bool:
        """Return whether a block is among those that the pool should have."""

    def chance(self, key: Key, /) -> float | None:
        """Return the probability that a block is asked for again; None if it is not remembered."""

    def facts(self, key: Key, /) -> Facts | None:
        """Return what is known of a block; None if it is not remembered."""

    def cheapest_value(self) -> float | None:
        """Return the lowest value among what is wanted; None where there is room."""

    def known(self) -> int:
        """Return the number of blocks that are remembered."""


MakeCore = Callable[[int, int, int, float, bool], Core]
"""Function that makes a core. Its arguments: blocks; slots (0: nobody counts them); blocks to be remembered;
by how much a newcomer must be worth more than the block that it displaces; whether only prefixes are of use.
"""


def load(path: Path) -> MakeCore:
    """Return the core in a shared object; raises ImportError."""
    return _core(extension.load(MODULE, path))


def compiled() -> MakeCore | None:
    """See the module."""
    module = extension.compiled(MODULE, FOLDER)
    return None if module is None else _core(module)


@cache
def _core(module: Any) -> MakeCore:
    base: Any = module.Core

    class Compiled(base):  # type: ignore[misc]
        __slots__ = ()

        def __iter__(self) -> Iterator[Key]:
            return iter(self.least(len(self)))

        def refresh(self, ticks: float, learner: Learner) -> None:
            reuses, exposure, passed, index, chance = self._tables()
            learned = learner.learn(reuses, exposure, passed, ticks)
            reuses[:], exposure[:], index[:], chance[:] = learned

        def _tables(self) -> list[Floats]:
            return [np.frombuffer(table).reshape(CLASSES, BUCKETS) for table in self.tables()]

    return Compiled


def make(extra_flags: tuple[str, ...] = ()) -> Path:
    """Compile the core unless it is there; BuildError."""
    return build(extra_flags, folder=FOLDER, module=MODULE)
