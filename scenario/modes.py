"""Modes of the switch in the runs that are compared: no caching, merging, or merging and a pool.

A further mode checks the comparison: a pool that is managed like any other, but whose entries no GET finds.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mode:
    """Mode of one run. `name` is its key in the summary and in MODES, `title` its name for people, and `does`
    what the switch does."""

    name: str
    title: str
    does: str
    merging: bool
    pool: bool
    phantom: bool = False
    """Whether no GET finds the pool's entries."""


_ALL = (
    Mode("no_pool", "no pool", "only forwards", merging=False, pool=False),
    Mode("merging", "merging", "merges requests", merging=True, pool=False),
    Mode("pool", "pool", "merges requests and keeps a pool", merging=True, pool=True),
    Mode("phantom", "phantom pool", "keeps a pool that no GET finds", merging=False, pool=True, phantom=True),
)
MODES = {mode.name: mode for mode in _ALL}
COMPARED = ("no_pool", "merging", "pool")
