"""Keeps blocks on a disk with faults, one kind after the other: for tests.

python -m tests.hostlib.faulty_disk_writer DIRECTORY CONTROL LETTERS

Says in JSON lines of each letter that was written into CONTROL which blocks were said to be safe, which were
refused, and whether all of the former could be read.
"""

from __future__ import annotations

import asyncio
import json
import sys
from functools import partial
from pathlib import Path

from hostlib.protocol.errors import DiskError
from hostlib.storage.disk import LmdbDisk
from hostlib.storage.ssd import SsdTier
from tests.hostlib.power_cut_writer import TIER_BYTES, block_of, place_of

BLOCKS = 12
"""Of each letter, in three groups."""


async def _play(tier: SsdTier, first: int) -> dict[str, object]:
    safe: list[int] = []
    refused: list[int] = []

    def told(number: int, error: DiskError | None) -> None:
        (safe if error is None else refused).append(number)

    loop = asyncio.get_running_loop()
    slowest_s = 0.0
    for group in range(0, BLOCKS, BLOCKS // 3):
        for number in range(first + group, first + group + BLOCKS // 3):
            tier.keep(place_of(number), block_of(number), partial(told, number))
        while len(safe) + len(refused) < group + BLOCKS // 3:
            before_s = loop.time()
            await asyncio.sleep(0.001)
            slowest_s = max(slowest_s, loop.time() - before_s)
    read = [number for number in safe if await tier.load(place_of(number)) == block_of(number)]
    return {"safe": safe, "refused": refused, "read": read == safe, "slowest_s": slowest_s}


async def _main(directory: Path, control: Path, letters: str) -> None:
    tier = SsdTier(LmdbDisk(directory, 2 * TIER_BYTES), TIER_BYTES)
    for at, letter in enumerate(letters):
        control.write_text(letter)
        print(json.dumps({"letter": letter, **await _play(tier, at * BLOCKS)}), flush=True)


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
