"""Power cuts with the real LMDB: what is left is what its file was at the last sync that returned.

A SIGKILL alone would prove nothing: what was written and not synced outlives it in the kernel.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hostlib.storage.disk import LmdbDisk
from hostlib.storage.ssd import SsdTier
from tests.hostlib.power_cut_writer import TIER_BYTES, block_of, place_of

BLOCKS = 40

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("power_cut") / "power_cut.so"
    source = Path(__file__).with_name("power_cut.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", made, source, "-ldl"], check=True)
    return made


def lost_blocks(library: Path, directory: Path, *arguments: str) -> int:
    """Of those that were said to be safe before the power was cut."""
    command = [sys.executable, "-m", "tests.hostlib.power_cut_writer", str(directory), *arguments]
    environment = os.environ | {"LD_PRELOAD": str(library)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as writer:
        assert writer.stdout is not None
        said = [writer.stdout.readline() for _ in range(BLOCKS)]
        writer.kill()
        said += writer.stdout.readlines()
    safe = [int(line) for line in said if line.endswith("\n")]
    assert len(safe) >= BLOCKS
    after = directory / "after"
    after.mkdir()
    shutil.copy(directory / "data.mdb.synced", after / "data.mdb")
    disk = LmdbDisk(after, 2 * TIER_BYTES)
    try:
        assert not disk.was_damaged
        tier = SsdTier(disk, TIER_BYTES)
        for number in safe:
            assert place_of(number) not in tier or tier.get(place_of(number)) == block_of(number)
        return sum(place_of(number) not in tier for number in safe)
    finally:
        disk.close()


def test_lmdb_has_after_a_power_cut_what_was_said_to_be_safe(library: Path, tmp_path: Path) -> None:
    assert lost_blocks(library, tmp_path, "0") == 0


def test_lmdb_without_the_sync_loses_what_was_said_to_be_safe(library: Path, tmp_path: Path) -> None:
    assert lost_blocks(library, tmp_path, str(BLOCKS), "forgetful") > 0
