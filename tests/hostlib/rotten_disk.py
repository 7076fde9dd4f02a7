"""Damages LMDB's file and opens it, in a process of its own for each time: what became of these.

python -m tests.hostlib.rotten_disk DIRECTORY KIND SEED COUNT

KIND is "bit" (one flipped), "sector" (512 bytes of zeros), "page" (as it was some commits before) or "end"
(the file ends early). Says in JSON how often a process ended how.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import sys
from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from hostlib.protocol.block import decode_record, encode_record
from hostlib.protocol.errors import DiskError, UnreadableError
from hostlib.storage.disk import LmdbDisk
from tests.hostlib.power_cut_writer import block_of, place_of

PAGE = 4096
MAP_BYTES = 8 << 20
BLOCKS = 200
GROUP = 10
"""Blocks are kept so many at a time."""
FINE, ASIDE, LOST, WRONG = 0, 10, 11, 12
NAMES = {FINE: "fine", ASIDE: "put aside", LOST: "lost", WRONG: "wrong"}


def make(directory: Path) -> tuple[bytes, bytes]:
    """What the file was, and is after some more commits."""
    disk = LmdbDisk(directory, MAP_BYTES)
    kept = b""
    for first in range(0, BLOCKS, GROUP):
        group = range(first, first + GROUP)
        _keep(disk, group)
        disk.write([(place_of(number // 2).name(), None) for number in group[::3]])
        if first == BLOCKS - 2 * GROUP:
            kept = (directory / "data.mdb").read_bytes()
    disk.close()
    return kept, (directory / "data.mdb").read_bytes()


def damaged(before: bytes, data: bytes, kind: str, chance: random.Random) -> bytes:
    """Where the trees are, mostly: of pages with records only their first bytes matter to LMDB."""
    made = bytearray(data)
    pages = [
        at for at in range(0, len(data), PAGE) if data[at + 10 : at + 12] in (b"\1\0", b"\2\0", b"\x08\0")
    ]
    page = chance.choice(pages) if chance.random() < 0.8 else PAGE * chance.randrange(len(data) // PAGE)
    if kind == "bit":
        made[page + chance.randrange(chance.choice((200, PAGE)))] ^= 1 << chance.randrange(8)
    elif kind == "sector":
        at = page + 512 * chance.randrange(8)
        made[at : at + 512] = bytes(512)
    elif kind == "page":
        made[page : page + PAGE] = before[page : page + PAGE].ljust(PAGE, b"\0")
    else:
        del made[chance.randrange(1, len(made)) :]
    return bytes(made)


def use(directory: Path) -> int:
    """Open it, read all, write some: as a storage node does."""
    disk = LmdbDisk(directory, MAP_BYTES)
    wrong = False
    for name, _ in list(disk.scan()):
        number = int.from_bytes(name[2:], "big")
        try:
            block = disk.read(name, partial(decode_record, place_of(number)))
            wrong = wrong or block != block_of(number)
        except UnreadableError:
            disk.write([(name, None)])
    lost = False
    for first in range(BLOCKS, BLOCKS + 3 * GROUP, GROUP):
        group = range(first, first + GROUP)
        try:
            _keep(disk, group)
        except DiskError:
            continue
        for number in group:
            said = disk.read(place_of(number).name(), bytes)
            lost = lost or said != encode_record(place_of(number), number, block_of(number))
    disk.close()
    return WRONG if wrong else LOST if lost else ASIDE if disk.was_damaged else FINE


def _keep(disk: LmdbDisk, numbers: Iterable[int]) -> None:
    disk.write([(place_of(one).name(), encode_record(place_of(one), one, block_of(one))) for one in numbers])


def outcome(directory: Path) -> str:
    """Of a process that uses it."""
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
        code = 99
        try:
            code = use(directory)
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    code = os.waitstatus_to_exitcode(status)
    return NAMES.get(code, f"signal {-code}" if code < 0 else f"exit {code}")


def main(directory: Path, kind: str, seed: int, count: int) -> Counter[str]:
    chance = random.Random(f"{kind} {seed}")
    before, data = make(directory / "base")
    outcomes: Counter[str] = Counter()
    for _ in range(count):
        trial = directory / "trial"
        shutil.rmtree(trial, ignore_errors=True)
        trial.mkdir()
        (trial / "data.mdb").write_bytes(damaged(before, data, kind, chance))
        outcomes[outcome(trial)] += 1
    return outcomes


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
