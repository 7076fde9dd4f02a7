import subprocess
import sys
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workload.keys import KEY_BYTES, NO_PARENT, KeySpace, KeySpaceError

KEYS = KeySpace()


def test_golden_key() -> None:
    """The keys are a protocol: a change here means that old and new parties share nothing."""
    assert [key.hex() for key in KEYS.chain([7, 8])] == GOLDEN


GOLDEN = ["93ce1fb3f34b70829fd22a2c81694b84", "797e31a3dd741cc558d649429288ff60"]


def test_golden_chunk_key() -> None:
    assert KEYS.chunk_key((7,)).hex() == "6c7004909c4eb1bd78b7d80b860d71e5"


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=20, unique=True), st.randoms())
def test_chunks_share_keys_in_any_order_and_none_with_chains(ids: list[int], draw: Random) -> None:
    other = draw.sample(ids, len(ids))
    keys = dict(zip(ids, KEYS.chunks(ids), strict=True))
    assert dict(zip(other, KEYS.chunks(other), strict=True)) == keys
    assert len(set(keys.values())) == len(ids)
    assert not set(keys.values()) & {*KEYS.chain(ids), *(KEYS.block_key(NO_PARENT, (one,)) for one in ids)}
    assert {len(key) for key in keys.values() if key} == {KEY_BYTES}


def test_what_is_no_chunk_has_no_key() -> None:
    assert list(KEYS.chunks([None, 3, None])) == [None, KEYS.chunk_key((3,)), None]


def test_chunk_keys_of_a_tenant_are_of_its_secret_alone() -> None:
    mine, theirs = KeySpace(name_key=bytes(range(32))), KeySpace(name_key=bytes(32))
    assert len({space.chunk_key((1,)) for space in (KEYS, mine, theirs)}) == 3


def test_same_key_in_a_process_with_another_hash_seed() -> None:
    code = "from workload.keys import KeySpace; print(*(key.hex() for key in KeySpace().chain([7, 8])))"
    for hash_seed in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split() == GOLDEN


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=20), st.data())
def test_prefixes_share_keys_and_differ_after(chain: list[int], data: st.DataObject) -> None:
    changed = data.draw(st.integers(0, len(chain) - 1))
    other = [*chain[:changed], chain[changed] + 1, *chain[changed + 1 :]]
    keys, other_keys = list(KEYS.chain(chain)), list(KEYS.chain(other))
    assert keys[:changed] == other_keys[:changed]
    assert not set(keys[changed:]) & set(other_keys[changed:])


@pytest.mark.parametrize(
    "other",
    [
        KeySpace(model="other"),
        KeySpace(tensor_parallel=2),
        KeySpace(tensor_parallel=2, rank=1),
        KeySpace(dtype="bf16"),
        KeySpace(block_tokens=256),
    ],
)
def test_every_parameter_matters(other: KeySpace) -> None:
    assert other.block_key(NO_PARENT, (1,)) != KEYS.block_key(NO_PARENT, (1,))
    assert other.chunk_key((1,)) != KEYS.chunk_key((1,))
    assert other.fingerprint != KEYS.fingerprint
    with pytest.raises(KeySpaceError, match="cannot be shared"):
        KEYS.check_same(other)


def test_keys_of_a_tenant_are_of_its_secret_alone() -> None:
    mine, theirs = KeySpace(name_key=bytes(range(32))), KeySpace(name_key=bytes(32))
    named = {tuple(space.chain([1, 2])) for space in (KEYS, mine, theirs)}
    assert len({key for chain in named for key in chain}) == 6
    assert list(KeySpace(name_key=bytes(range(32))).chain([1, 2])) == list(mine.chain([1, 2]))


def test_nobody_tells_a_tenants_name_key() -> None:
    mine = KeySpace(name_key=b"told to nobody")
    assert "told" not in mine.to_json() + repr(mine)
    assert mine.fingerprint == KEYS.fingerprint
    mine.check_same(KEYS)


@pytest.mark.parametrize("wrong", [{"rank": 1}, {"model": ""}, {"block_tokens": 0}])
def test_impossible_parameters(wrong: dict[str, object]) -> None:
    with pytest.raises(KeySpaceError):
        KeySpace(**wrong)  # type: ignore[arg-type]


def test_the_key_of_a_block_that_an_id_stands_for_is_that_of_its_one_token() -> None:
    for parent, number in ((NO_PARENT, 0), (bytes(range(16)), 1 << 63)):
        assert KEYS.id_key(parent, number) == KEYS.block_key(parent, (number,))
