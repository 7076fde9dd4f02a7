"""Keys that any process derives alike, and parameters that sharers compare."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.engine import KeyChain, KvSpace
from hostlib.engine.space import UNNAMED
from hostlib.protocol.errors import KeySpaceError
from hostlib.protocol.seal import Seal

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
from hostlib.protocol.seal import Seal
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
        {"tensor_parallel": 2, "shards": 1},
        {"settings": "rope: long"},
        {"generation": "1"},
        {"name": "code"},
    ],
)
def test_whatever_shapes_the_bytes_changes_every_key(other: dict[str, Any]) -> None:
    assert not set(keys()) & set(keys(replace(SPACE, **other)))


def test_salts_and_tenants_have_keys_of_their_own() -> None:
    assert not set(keys()) & set(keys(salt=b"adapter"))
    assert not set(keys()) & set(keys(seal=Seal(3, bytes(32))))


def test_objects_have_a_key_for_each_shard_and_group_of_layers() -> None:
    (first, *_) = keys()

    def objects(space: KvSpace) -> list[bytes]:
        groups, ranks = range(len(space.object_bytes)), range(space.tensor_parallel)
        return [space.object_key(SEAL, first, group, rank) for group in groups for rank in ranks]

    assert len(set(objects(SPACE))) == 2
    assert len(set(objects(replace(SPACE, tensor_parallel=4)))) == 8
    assert len(set(objects(replace(SPACE, tensor_parallel=4, object_bytes=(96,))))) == 4
    assert objects(replace(SPACE, object_bytes=(96,))) == [first]


def test_ranks_that_hold_the_same_kv_share_its_objects() -> None:
    (first, *_) = keys()

    def names(shards: int) -> list[bytes]:
        space = replace(SPACE, tensor_parallel=4, shards=shards)
        return [space.object_key(SEAL, first, 0, rank) for rank in range(4)]

    assert len(set(names(1))) == 1
    of_two = names(2)
    assert of_two[0] == of_two[1] != of_two[2] == of_two[3]
    with pytest.raises(KeySpaceError, match="rank 4 is not within"):
        replace(SPACE, tensor_parallel=4).object_key(SEAL, first, 0, 4)


def test_a_chain_derives_block_after_block_what_a_prompt_gives_at_once() -> None:
    chain = KeyChain(SPACE, SEAL)
    assert [chain.extend(TOKENS[start : start + 4]) for start in (0, 4, 8)] == keys()
    assert chain.keys == keys()
    with pytest.raises(ValueError, match="a block has 4 tokens, not 3"):
        chain.extend(TOKENS[:3])


def test_what_a_block_depends_on_besides_its_tokens_changes_it_and_all_behind() -> None:
    def with_extra(at: int, extra: bytes) -> list[bytes]:
        chain = KeyChain(SPACE, SEAL)
        for number in range(3):
            chain.extend(TOKENS[4 * number : 4 * number + 4], extra if number == at else b"")
        return chain.keys

    image = with_extra(1, b"image")
    assert image[0] == keys()[0]
    assert not set(image[1:]) & set(keys())
    assert not set(image[1:]) & set(with_extra(1, b"another image"))


def test_a_new_generation_finds_nothing_of_any_other() -> None:
    new, other = SPACE.new_generation(), SPACE.new_generation()
    assert not set(keys(new)) & set(keys())
    assert not set(keys(new)) & set(keys(other))
    SPACE.check_same(new.descriptor)


def test_weights_and_settings_are_part_of_the_keys_and_not_compared() -> None:
    SPACE.check_same(SPACE.named("weights:2").descriptor)
    SPACE.check_same(replace(SPACE, settings="rope: long").descriptor)
    with pytest.raises(KeySpaceError, match="no name yet"):
        keys(SPACE.named(UNNAMED))


def test_the_refusal_names_what_differs_and_what_to_do() -> None:
    other = replace(SPACE, dtype="bfloat16", block_tokens=16)
    with pytest.raises(KeySpaceError) as refused:
        SPACE.check_same(other.descriptor)
    text = str(refused.value)
    assert "dtype is 'float32' here and 'bfloat16' there" in text
    assert "block_tokens is 4 here and 16 there" in text
    assert "layout" not in text
    assert "another key space name" in text


@given(
    st.one_of(
        st.binary(max_size=200),
        st.sampled_from([b"[]", b"{}", b"null", b'{"evil": 1}', b'{"model": "w"}', b"[" * 5000]),
    )
)
def test_anything_may_be_stored_as_the_descriptor(stored: bytes) -> None:
    with pytest.raises(KeySpaceError):
        SPACE.check_same(stored)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"name": ""}, "needs a name"),
        ({"tensor_parallel": 0}, "at least one rank"),
        ({"tensor_parallel": 4, "shards": 3}, "can't hold 3 different shards"),
        ({"shards": 2}, "can't hold 2 different shards"),
        ({"block_tokens": 0}, "at least one token"),
        ({"object_bytes": ()}, "at least one byte"),
        ({"object_bytes": (4, 0)}, "at least one byte"),
    ],
)
def test_unusable_parameters_are_refused(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(KeySpaceError, match=why):
        replace(SPACE, **wrong)


def test_descriptors_and_what_is_said_of_their_differences_are_bounded() -> None:
    with pytest.raises(KeySpaceError, match="at most"):
        _ = replace(SPACE, layout="x" * 5000).descriptor
    with pytest.raises(KeySpaceError) as refused:
        SPACE.check_same(replace(SPACE, layout="x" * 4000).descriptor)
    assert len(str(refused.value)) < 1000
