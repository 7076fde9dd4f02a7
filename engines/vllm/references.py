"""The names of a run's objects in the pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostlib.transfer import BlockRef
from hostlib.wire import fingerprint

if TYPE_CHECKING:
    from engines.vllm.jobs import BlockRun
    from hostlib.engine import BlockingPool


def run_references(
    pool: BlockingPool, run: BlockRun, index: int, rank: int, recompute_ms: int
) -> list[BlockRef]:
    """A rank's objects of one group of layers, in the order of the run's blocks."""
    keys = run.keys if run.parent is None else [run.parent, *run.keys]
    names = [pool.space.object_key(pool.seal, key, index, rank) for key in keys]
    parents = [fingerprint(name) for name in names[:-1]]
    if run.parent is None:
        parents.insert(0, 0)
    else:
        del names[0]
    blocks = run.first + len(names)
    return [
        BlockRef(name, run.first + number, blocks, parent, recompute_ms)
        for number, (name, parent) in enumerate(zip(names, parents, strict=True))
    ]
