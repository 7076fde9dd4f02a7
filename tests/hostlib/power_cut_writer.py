"""Keeps blocks on a disk and says the number of each that is safe: for tests that cut its power.

python -m tests.hostlib.power_cut_writer DIRECTORY COUNT [forgetful]

Waits after COUNT blocks (0: never). `forgetful`: nothing is synced.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from hostlib.protocol.block import Block, Place
from hostlib.protocol.errors import DiskError
from hostlib.storage.disk import LmdbDisk
from hostlib.storage.ssd import SsdTier

BLOCK_BYTES = 4000
TIER_BYTES = 64 << 20


def place_of(number: int) -> Place:
    """Where block `number` belongs."""
    return Place(7, number.to_bytes(16, "big"))


def block_of(number: int) -> Block:
    """A block of eight fragments."""
    return Block(number + 1, number.to_bytes(4, "big") * (BLOCK_BYTES // 4), bytes(16 * 8))


class ForgetfulDisk(LmdbDisk):
    """One whose syncs do nothing."""

    def sync(self) -> None:
        """Say that it was done."""


async def _write(directory: Path, count: int, forgetful: bool) -> None:
    disk = (ForgetfulDisk if forgetful else LmdbDisk)(directory, 2 * TIER_BYTES)
    tier = SsdTier(disk, TIER_BYTES)
    number = 0
    while not count or number < count:
        safe: asyncio.Future[DiskError | None] = asyncio.get_running_loop().create_future()
        tier.keep(place_of(number), block_of(number), safe.set_result)
        if (error := await safe) is not None:
            raise error
        print(number, flush=True)
        number += 1
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_write(Path(sys.argv[1]), int(sys.argv[2]), "forgetful" in sys.argv[3:]))
