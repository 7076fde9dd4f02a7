"""Disks that rot, and disks that fail: LMDB's file is put aside where LMDB can't work on it, nothing wrong is
read, and what was said to be safe is there."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from experiments.faults.faulty_disk import build
from hostlib.protocol.block import encode_record
from hostlib.protocol.tombstones import ALIVE, ENDS, Tombstone
from hostlib.storage.disk import MOST_DEATHS, LmdbDisk
from hostlib.storage.ssd import SsdTier
from tests.hostlib import rotten_disk
from tests.hostlib.faulty_disk_writer import BLOCKS
from tests.hostlib.power_cut_writer import TIER_BYTES, block_of, place_of

DIES = """
import os, sys
from pathlib import Path
from typing import Any
import weir.logs
from hostlib.storage.disk import LmdbDisk
weir.logs.begin("test")
disk = LmdbDisk(Path(sys.argv[1]), 1 << 20, counts_deaths=True)
os.truncate(Path(sys.argv[1]) / "data.mdb", 8192)
list(disk.scan())
"""
"""The file is gone while LMDB reads it: the process gets SIGBUS."""


def run(*arguments: str, **variables: str) -> list[dict[str, Any]]:
    """What a module says, in JSON lines."""
    command = [sys.executable, "-m", *arguments]
    environment = os.environ | variables
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, timeout=120, env=environment, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("kind", ["bit", "sector", "page", "end"])
def test_whatever_rots_the_node_starts_and_reads_nothing_wrong(tmp_path: Path, kind: str) -> None:
    (outcomes,) = run("tests.hostlib.rotten_disk", str(tmp_path), kind, "1", "25")
    assert set(outcomes) <= {"fine", "put aside"}
    assert outcomes["put aside"]


def test_what_is_not_damaged_is_not_put_aside(tmp_path: Path) -> None:
    """After each of many commits."""
    disk = LmdbDisk(tmp_path / "made", rotten_disk.MAP_BYTES)
    for number in range(60):
        disk.write([(place_of(number % 40).name(), bytes(number * 300))])
        disk.write([(place_of(number // 3).name(), None)])
        copy = tmp_path / "copy"
        copy.mkdir(exist_ok=True)
        shutil.copy(tmp_path / "made" / "data.mdb", copy / "data.mdb")
        again = LmdbDisk(copy, rotten_disk.MAP_BYTES)
        assert not again.was_damaged
        again.close()
    disk.close()


def test_records_that_are_no_blocks_are_no_damage(tmp_path: Path) -> None:
    """A tombstone, a lifetime, and the note of when the node was last there."""
    disk = LmdbDisk(tmp_path, rotten_disk.MAP_BYTES)
    stone = Tombstone(place_of(1), 7, bytes(16))
    notes = (stone.name(), stone.name(ENDS), ALIVE)
    disk.write([(place_of(1).name(), b"block"), *((name, b"note") for name in notes)])
    disk.close()
    again = LmdbDisk(tmp_path, rotten_disk.MAP_BYTES)
    assert not again.was_damaged
    assert len(list(again.scan())) == 4
    again.close()


def test_a_file_in_which_the_process_died_twice_is_put_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "ssd"
    disk = LmdbDisk(directory, 1 << 20)
    disk.write([(place_of(number).name(), bytes(1000)) for number in range(20)])
    disk.close()
    file = directory / "data.mdb"
    data = file.read_bytes()
    for _ in range(MOST_DEATHS):
        disk = LmdbDisk(directory, 1 << 20)
        assert len(list(disk.scan())) == 20
        disk._env.close()  # as of a process that was killed: that says nothing
        os.close(disk._lock)
        with pytest.raises(subprocess.CalledProcessError) as died:
            subprocess.run([sys.executable, "-c", DIES, str(directory)], check=True, timeout=60)
        assert died.value.returncode == -signal.SIGBUS
        file.write_bytes(data)
    caplog.clear()
    disk = LmdbDisk(directory, 1 << 20)
    assert disk.was_damaged
    assert list(disk.scan()) == []
    assert "died 2 times" in caplog.text
    assert "Bus error" in caplog.text
    assert "disk.py" in caplog.text
    disk.close()
    disk = LmdbDisk(directory, 1 << 20)
    assert not disk.was_damaged
    disk.close()


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
def test_what_a_failing_disk_took_is_there_and_what_it_did_not_take_was_refused(tmp_path: Path) -> None:
    """No room, also in the middle of a write; errors, also after half of a write, of syncs, of meta pages
    alone; slow syncs. Each ends, and the disk is used again."""
    faulty = build(tmp_path)
    faults = "fhetsmw"
    said = run(
        "tests.hostlib.faulty_disk_writer", str(tmp_path / "ssd"), str(faulty.control),
        "-" + "-".join(faults) + "-", LD_PRELOAD=str(faulty.library), FAULTY_DISK=str(faulty.control),
    )  # fmt: skip
    assert len(said) == 2 * len(faults) + 1
    safe: list[int] = []
    for before, one in zip([{}, *said], said, strict=False):
        now_safe = one["safe"]
        assert one["read"]
        if one["letter"] in "fhetsm":
            assert not now_safe
        elif before.get("letter") == "m":  # the first write finds that LMDB gave up, and opens it again
            assert len(now_safe) >= BLOCKS // 2
        else:
            assert len(now_safe) == BLOCKS
        safe += now_safe
    disk = LmdbDisk(tmp_path / "ssd", 2 * TIER_BYTES)
    assert not disk.was_damaged
    tier = SsdTier(disk, TIER_BYTES)
    assert [number for number in safe if tier.get(place_of(number)) != block_of(number)] == []
    tier.close()


READS = """
import json, sys
from pathlib import Path
import weir.logs
from hostlib.storage.disk import LmdbDisk
from hostlib.storage.ssd import SsdTier
from tests.hostlib.power_cut_writer import TIER_BYTES, block_of, place_of
weir.logs.begin("test")
disk = LmdbDisk(Path(sys.argv[1]), 2 * TIER_BYTES, counts_deaths=True)
tier = SsdTier(disk, TIER_BYTES)
read = {number: tier.get(place_of(number)) for number in range(4)}
wrong = [number for number, block in read.items() if block not in (None, block_of(number))]
print(json.dumps({"damaged": disk.was_damaged, "read": len(tier), "wrong": wrong}))
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
@pytest.mark.parametrize("page", ["meta", "meta, but for those who look first", "record"])
def test_a_page_that_can_not_be_read_costs_two_deaths_at_most_and_gives_nothing_wrong(
    tmp_path: Path, page: str
) -> None:
    """A page that is looked at before the file is opened has it put aside; one of records kills."""
    faulty, directory = build(tmp_path), tmp_path / "ssd"
    disk = LmdbDisk(directory, 2 * TIER_BYTES)
    for number in range(4):
        disk.write([(place_of(number).name(), encode_record(place_of(number), number, block_of(number)))])
    disk.close()
    file = directory / "data.mdb"
    last = file.read_bytes().index(block_of(3).content) + len(block_of(3).content)
    number = last // 4096 if page == "record" else 0
    faulty.set_failure("r")
    environment = os.environ | {
        "LD_PRELOAD": str(faulty.library), "FAULTY_DISK": str(faulty.control), "FAULTY_PAGE": str(number),
        "FAULTY_INODE": str(file.stat().st_ino), "FAULTY_LOOK": "no" if "but" in page else "yes",
    }  # fmt: skip
    deaths = 0
    while True:
        done = subprocess.run(
            [sys.executable, "-c", READS, str(directory)], stdout=subprocess.PIPE, text=True, timeout=60,
            env=environment, check=False,
        )  # fmt: skip
        if not done.returncode:
            break
        assert done.returncode == -signal.SIGBUS
        deaths += 1
    said = json.loads(done.stdout)
    assert deaths == (MOST_DEATHS if page == "record" else 0)
    assert said == {"damaged": True, "read": 0, "wrong": []}
