"""A process beside the test's own, on the same node: does with its pool what it is told."""

from __future__ import annotations

import json
import sys
from typing import Any

from hostlib.engine import BlockingPool, Item, KvSpace, PoolConfig, large, objects, open_pool
from hostlib.protocol.errors import HostlibError
from hostlib.protocol.transfer import BlockRef


def content(number: int, size: int) -> bytes:
    """As the test's."""
    cycle = bytes((number + place) % 251 for place in range(251))
    return (cycle * (size // len(cycle) + 1))[:size]


LONGEST_BLOCK, PART = 200_000, 65_536
"""In place of what is possible, so that long objects are quickly made."""


def opened(command: dict[str, Any]) -> tuple[BlockingPool | None, dict[str, Any]]:
    """The pool, or why there is none."""
    objects.MAX_BLOCK_BYTES, large.PART_BYTES = LONGEST_BLOCK, PART  # type: ignore[attr-defined, misc]
    space = command["space"]
    space["object_bytes"] = tuple(space["object_bytes"])
    try:
        pool = open_pool(PoolConfig.from_mapping(command["config"]), KvSpace(**space))
    except HostlibError as error:
        return None, {"error": str(error)}
    return pool, {"host": pool.is_host}


def obey(pool: BlockingPool, command: dict[str, Any]) -> Any:
    """The answer to one command."""
    seven = list(pool.space.block_keys(pool.seal, [7] * 4))
    if "exists_stored" in command:
        return pool.exists(seven)
    if "stats" in command:
        return pool.stats()
    (block,) = pool.blocks.references(seven, 0)
    if "store" in command:
        return pool.store([Item(block, content(7, command["store"]))])
    if "load_stored" in command:
        room = bytearray(command["load_stored"])
        return pool.load([Item(block, room)]) == [True] and room == content(7, len(room))
    count = command["exists"] if "exists" in command else command["load"]
    keys = list(pool.space.block_keys(pool.seal, range(4 * count)))
    if "exists" in command:
        return pool.exists(keys)
    blocks: list[BlockRef] = pool.blocks.references(keys, 0)
    rooms = [bytearray(command["size"]) for _ in blocks]
    arrived = pool.load([Item(block, room) for block, room in zip(blocks, rooms, strict=True)])
    return [room.hex() if there else None for there, room in zip(arrived, rooms, strict=True)]


def main() -> None:
    """Until the end of stdin."""
    pool, said = opened(json.loads(sys.stdin.readline()))
    print(json.dumps(said), flush=True)
    if pool is None:
        return
    for line in sys.stdin:
        print(json.dumps(obey(pool, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
