"""Records of blocks: whole, or not readable."""

from __future__ import annotations

import pytest

from hostlib.protocol.block import Block, Derived, decode_record, encode_record, read_header
from hostlib.protocol.errors import UnreadableError
from hostlib.protocol.wire import TAG_BYTES
from tests.hostlib.sealed import place

PLACE = place(bytes(16))
WHOLE = Block(7, bytes(range(200)) * 4, bytes(2 * TAG_BYTES))


@pytest.mark.parametrize("block", [WHOLE, Derived(800)])
def test_a_record_that_is_shorter_or_longer_than_it_says_is_not_readable(block: Block | Derived) -> None:
    record = encode_record(PLACE, 1, block)
    assert decode_record(PLACE, record) == block
    for damaged in (record[:-1], record[:40], b"", record + b"x", record + record):
        with pytest.raises(UnreadableError):
            decode_record(PLACE, damaged)
        with pytest.raises(UnreadableError):
            read_header(PLACE, damaged)


def test_a_record_of_another_block_is_not_readable() -> None:
    with pytest.raises(UnreadableError, match="another block"):
        decode_record(place(bytes([1]) * 16), encode_record(PLACE, 1, WHOLE))


def test_a_header_says_what_deletes_the_block_and_how_old_it_is() -> None:
    block = Block(7, bytes(600), bytes(range(2 * TAG_BYTES)))
    assert read_header(PLACE, encode_record(PLACE, 5, block)) == (5, 7, 600, bytes(range(TAG_BYTES)))
    assert read_header(PLACE, encode_record(PLACE, 5, Derived(800)))[2:] == (800, None)
