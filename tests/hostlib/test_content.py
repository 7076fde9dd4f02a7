from __future__ import annotations

import pytest

from hostlib.content import block_content, is_intact

KEY = bytes(range(16))


def test_content_depends_on_the_key_alone() -> None:
    block_content.cache_clear()
    first = block_content(KEY, 16384)
    block_content.cache_clear()
    assert block_content(KEY, 16384) == first != block_content(KEY[::-1], 16384)
    assert len(first) == 16384


@pytest.mark.parametrize("at", [0, 511, 512, 16383])
def test_any_wrong_byte_is_found(at: int) -> None:
    content = bytearray(block_content(KEY, 16384))
    assert is_intact(KEY, bytes(content))
    content[at] ^= 1
    assert not is_intact(KEY, bytes(content))
