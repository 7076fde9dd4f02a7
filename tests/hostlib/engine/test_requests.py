"""Requests of guests: what is named comes out as it went in, and anything else is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.engine.frames import MAX_LINE_BYTES
from hostlib.engine.requests import (
    MAX_QUESTIONS,
    Cancel,
    Present,
    block_fields,
    parse_addresses,
    parse_block,
    parse_request,
)
from hostlib.protocol.transfer import BlockRef

U16, U32 = st.integers(0, 0xFFFF), st.integers(0, 0xFFFF_FFFF)
BLOCKS = st.builds(BlockRef, st.binary(min_size=16, max_size=16), U16, U16, U32, U16, st.just(()))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=9), inner, max_size=6),
    max_leaves=5,
)


@given(BLOCKS)
def test_a_block_is_named_so_that_it_can_be_read(block: BlockRef) -> None:
    assert parse_block(json.loads(json.dumps(block_fields(block)))) == block


@given(st.lists(BLOCKS, max_size=2), st.floats(0, 3600))
def test_questions_come_out_as_they_went_in(blocks: list[BlockRef], within_s: float) -> None:
    said = {"n": 3, "do": "present", "blocks": [block_fields(one) for one in blocks], "within_s": within_s}
    assert parse_request((json.loads(json.dumps(said)), b"")) == Present(3, blocks, within_s)


def test_the_longest_request_fits_a_frame() -> None:
    block = BlockRef(b"\xff" * 16, 0xFFFF, 0xFFFF, 0xFFFF_FFFF, 0xFFFF)
    said = {"n": 1 << 52, "do": "present", "blocks": [block_fields(block)] * MAX_QUESTIONS, "within_s": 0.1}
    assert len(json.dumps(said)) < MAX_LINE_BYTES


@given(
    JSON,
    JSON,
    JSON,
    JSON,
    st.sampled_from(["get", "put", "present", "delete", "hint", "cancel", "hello", 5, None]),
)
def test_whatever_is_said_is_a_request_or_a_value_error(a: Any, b: Any, c: Any, d: Any, do: Any) -> None:
    said = {"n": a, "do": do, "block": b, "blocks": b, "room": c, "replicas": c, "at_least": d, "within_s": d}
    said |= {"hint": c, "seconds": d}
    try:
        request = parse_request((said, b"body"))
    except ValueError:
        return
    assert request.number == a
    assert isinstance(request, Cancel) == (do == "cancel")


@pytest.mark.parametrize("given_", [None, {}, "10.0.0.1", ["10.0.0.256"], ["10.0.0.1"] * 4])
def test_what_is_no_list_of_addresses_is_refused(given_: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_addresses(given_, 3)
