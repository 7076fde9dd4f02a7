"""Keys that any process derives alike, and parameters that sharers compare."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostlib.engine import KvSpace
from hostlib.errors import KeySpaceError
from hostlib.seal import Seal

SEAL = Seal(3, bytes(range(32)))
SPACE = KvSpace(
    name="chat",
    model="weights:1",
    layout="row by row",
    dtype="float32",
    block_tokens=4,
    object_bytes=(96, 32),
)
TOKENS = list(range(1, 14))

IN_ANOTHER_PROCESS = """
from hostlib.engine import KvSpace
from hostlib.seal import Seal
space = KvSpace(name="chat", model="weights:1", layout="row by row", dtype="float32", block_tokens=4,
                object_bytes=(96, 32))
for key in space.block_keys(Seal(3, bytes(range(32))), range(1, 14)):
    print(key.hex())
"""


def keys(
    space: KvSpace = SPACE, tokens: list[int] = TOKENS, salt: bytes = b"", seal: Seal = SEAL
) -> list[bytes]:
    return list(space.block_keys(seal, tokens, salt))


def test_another_process_derives_the_same_keys() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == [key.hex() for key in keys()]


def test_only_whole_blocks_have_keys() -> None:
    assert [len(keys(tokens=TOKENS[:count])) for count in (0, 3, 4, 7, 8, 13)] == [0, 0, 1, 1, 2, 3]


@settings(max_examples=40)
@given(st.lists(st.integers(0, 2**31), min_size=8, max_size=24), st.integers(0, 23), st.integers(1, 9))
def test_keys_agree_exactly_as_far_as_the_blocks_of_tokens_do(tokens: list[int], at: int, by: int) -> None:
    at %= len(tokens)
    other = [*tokens[:at], tokens[at] + by, *tokens[at + 1 :]]
    mine, theirs = keys(tokens=tokens), keys(tokens=other)
    same = at // SPACE.block_tokens
    assert mine[:same] == theirs[:same]
    assert not set(mine[same:]) & set(theirs[same:])


@pytest.mark.parametrize(
    "other",
    [
        {"model": "weights:2"},
        {"layout": "column by column"},
        {"dtype": "bfloat16"},
        {"object_bytes": (64, 64)},
        {"tensor_parallel": 2},
        {"tensor_parallel": 2, "rank": 1},
        {"name": "code"},
    ],
)
def test_whatever_shapes_the_bytes_changes_every_key(other: dict[str, Any]) -> None:
    assert not set(keys()) & set(keys(replace(SPACE, **other)))


def test_ranks_salts_tenants_and_objects_have_keys_of_their_own() -> None:
    ranks = [keys(replace(SPACE, tensor_parallel=2, rank=rank)) for rank in (0, 1)]
    assert not set(ranks[0]) & set(ranks[1])
    assert not set(keys()) & set(keys(salt=b"adapter"))
    assert not set(keys()) & set(keys(seal=Seal(3, bytes(32))))
    (first, *_) = keys()
    assert SPACE.object_key(SEAL, first, 0) != SPACE.object_key(SEAL, first, 1)


def test_the_same_parameters_pass_whatever_the_rank() -> None:
    two = replace(SPACE, tensor_parallel=2)
    two.check_same(replace(two, rank=1).descriptor)


def test_the_refusal_names_what_differs_and_what_to_do() -> None:
    other = replace(SPACE, dtype="bfloat16", block_tokens=16)
    with pytest.raises(KeySpaceError) as refused:
        SPACE.check_same(other.descriptor)
    text = str(refused.value)
    assert "dtype is 'float32' here and 'bfloat16' there" in text
    assert "block_tokens is 4 here and 16 there" in text
    assert "layout" not in text
    assert "another key space name" in text


@settings(max_examples=40)
@given(
    st.one_of(st.binary(max_size=200), st.sampled_from([b"[]", b"{}", b"null", b'{"evil": 1}', b"[" * 5000]))
)
def test_anything_may_be_stored_as_the_descriptor(stored: bytes) -> None:
    with pytest.raises(KeySpaceError):
        SPACE.check_same(stored)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"name": ""}, "needs a name"),
        ({"rank": 1}, "rank 1 is not within"),
        ({"block_tokens": 0}, "at least one token"),
        ({"object_bytes": ()}, "at least one byte"),
        ({"object_bytes": (4, 0)}, "at least one byte"),
    ],
)
def test_unusable_parameters_are_refused(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(KeySpaceError, match=why):
        replace(SPACE, **wrong)


def test_descriptors_are_bounded() -> None:
    with pytest.raises(KeySpaceError, match="at most"):
        _ = replace(SPACE, layout="x" * 5000).descriptor
