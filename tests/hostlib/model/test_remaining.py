"""What of a request is left to compute, what is kept and stored, and where its blocks count."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.model.blending import Blending, Chunks
from hostlib.model.remaining import Prefill, Remaining, prefix_blocks
from workload.cost import make_cost_model
from workload.trace import Request

COST = make_cost_model("llama3-70b", "h800")
BLOCKS = 6


@dataclass(frozen=True)
class Placed:
    key: bytes
    depth: int


CHAIN = [Placed(f"block {depth}".encode(), depth) for depth in range(BLOCKS)]
CHUNKS = {depth: Placed(f"chunk {depth}".encode(), depth) for depth in (2, 3, 4)}
REQUEST = Request(
    0.0, 512 * BLOCKS + 60, 10, tuple(range(BLOCKS)), chunks=(None, None, *(90, 91, 92), None, None)
)


def sources(*there: int) -> dict[bytes, str]:
    return {CHAIN[depth].key: "dram" for depth in there}


def remaining(there: dict[bytes, str], had: Chunks | None = None, streams: bool = False) -> Remaining[Placed]:
    return Prefill(COST, Blending(COST, 0.15), streams).remaining(REQUEST, CHAIN, there, had)


def counts(left: Remaining[Placed]) -> dict[str, int]:
    into = Counter[str]()
    left.count(into)
    return dict(into)


def test_all_behind_the_first_missing_block_is_computed_and_only_what_nobody_had_is_new() -> None:
    left = remaining(sources(0, 1, 4))
    assert list(left.computed) == [2, 3, 4, 5]
    assert left.new({}) == [CHAIN[2], CHAIN[3], CHAIN[5]]
    assert left.kept({}) == CHAIN
    assert counts(left) == {"dram": 2, "recomputed": 4}
    assert left.work_s == COST.computed_s(REQUEST.input_tokens, BLOCKS, range(2, BLOCKS))


def test_a_stream_computes_what_it_left_out_alone() -> None:
    left = remaining(sources(0, 1, 4), streams=True)
    assert list(left.computed) == [2, 3, 5]
    assert counts(left) == {"dram": 3, "recomputed": 3}


def test_chunks_are_blended_behind_the_prefix() -> None:
    had = Chunks(0.0, 1.0, {2: "pool", 4: "remote"})
    left = remaining(sources(0), had)
    assert left.blended is not None
    assert list(left.computed) == [1]
    assert left.new(CHUNKS) == [CHAIN[1], CHUNKS[3]]
    assert left.kept(CHUNKS) == [CHAIN[0], CHAIN[1], CHUNKS[2], CHUNKS[3], CHUNKS[4]]
    assert counts(left) == {"dram": 1, "pool": 1, "remote": 1, "recomputed": 3}
    assert left.work_s < remaining(sources(0)).work_s


def test_a_prefix_over_all_chunks_leaves_nothing_to_blend() -> None:
    left = remaining(sources(0, 1, 2, 3, 4), Chunks(0.0, 0.0, {2: "pool"}))
    assert left.blended is None
    assert counts(left) == {"dram": 5, "recomputed": 1}


def test_seconds_are_those_of_the_node() -> None:
    real_s = Prefill(COST).seconds(REQUEST, BLOCKS, range(BLOCKS))
    assert Prefill(COST, scale_s=lambda s: 3 * s).seconds(REQUEST, BLOCKS, range(BLOCKS)) == pytest.approx(
        3 * real_s
    )


@given(
    there=st.sets(st.integers(0, BLOCKS - 1)),
    had=st.none() | st.dictionaries(st.sampled_from([2, 3, 4]), st.sampled_from(["pool", "remote"])),
)
def test_each_block_counts_once_and_nothing_that_is_held_is_stored(
    there: set[int], had: dict[int, str] | None
) -> None:
    held = sources(*there)
    left = remaining(held, None if had is None else Chunks(0.0, 0.0, had))
    assert sum(counts(left).values()) == BLOCKS
    assert not {block.key for block in left.new(CHUNKS)} & held.keys()
    assert min([BLOCKS, *({*range(BLOCKS)} - there)]) == prefix_blocks(CHAIN, held)
