from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

import pytest

from hostlib.content import block_content
from hostlib.errors import ConfigError
from hostlib.ssd import SsdTier

BLOCK_BYTES = 1024 + 10


def key(number: int) -> bytes:
    return blake2b(number.to_bytes(4, "big"), digest_size=16).digest()


def content(number: int) -> bytes:
    return block_content(key(number), BLOCK_BYTES)


def test_ssd_is_bounded_and_the_oldest_goes(tmp_path: Path) -> None:
    tier = SsdTier(tmp_path, 3 * BLOCK_BYTES, BLOCK_BYTES)
    for number in range(5):
        tier.put(key(number), content(number))
    tier.put(key(3), content(3))
    tier.put(key(5), content(5))
    assert [key(n) in tier for n in range(6)] == [False, False, False, True, True, True]
    assert (len(tier), tier.dropped) == (3, 3)
    tier.close()


def test_ssd_survives_a_restart_and_blocks_of_another_size_do_not_count(tmp_path: Path) -> None:
    tier = SsdTier(tmp_path, 3 * BLOCK_BYTES, BLOCK_BYTES)
    tier.put(key(1), content(1))
    tier.close()
    again = SsdTier(tmp_path, 3 * BLOCK_BYTES, BLOCK_BYTES)
    assert again.get(key(1)) == content(1)
    again.close()
    other = SsdTier(tmp_path, 3 * BLOCK_BYTES, 2 * BLOCK_BYTES)
    assert other.get(key(1)) is None
    other.close()


def test_a_directory_that_cannot_be_used_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConfigError, match=r"SSD directory .*file"):
        SsdTier(tmp_path / "file", 10 * BLOCK_BYTES, BLOCK_BYTES)
