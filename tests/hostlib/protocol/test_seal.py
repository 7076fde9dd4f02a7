"""A tenant's secret: whoever has it agrees on names and tags, whoever has not can make neither."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.protocol import wire
from hostlib.protocol.seal import PUBLIC_SECRET, SECRET_BYTES, Seal, new_content

SECRET = bytes(range(SECRET_BYTES))
SEAL = Seal(5, SECRET)
KEY = SEAL.key(b"parent", b"block")


def sealed(seal: Seal = SEAL, **fields: Any) -> wire.Message:
    tag = seal.tag(KEY, 1, 4, 77, b"value")
    message = wire.Message(wire.OP_VALUE, KEY, 1, 4, tenant=seal.tenant, content=77, tag=tag, value=b"value")
    return message._replace(**fields)


def test_a_value_is_genuine_to_whoever_has_the_secret() -> None:
    assert Seal(5, SECRET).is_genuine(wire.decode(wire.encode(sealed())))


@pytest.mark.parametrize(
    "changed",
    [
        {"tenant": 6}, {"key": bytes(16)}, {"fragment": 2}, {"fragments": 5}, {"content": 78},
        {"value": b"valuE"}, {"value": b"value\0"}, {"tag": bytes(16)},
    ],
    ids=str,
)  # fmt: skip
def test_a_value_elsewhere_or_otherwise_is_not(changed: dict[str, Any]) -> None:
    assert not SEAL.is_genuine(sealed(**changed))


@given(st.binary(min_size=16, max_size=64).filter(lambda secret: secret != SECRET))
def test_another_secret_makes_other_names_and_tags(secret: bytes) -> None:
    other = Seal(5, secret)
    assert other.key(b"parent", b"block") != KEY
    assert not SEAL.is_genuine(sealed(other))


@given(st.lists(st.binary(max_size=8), max_size=4), st.lists(st.binary(max_size=8), max_size=4))
def test_a_name_is_that_of_its_parts_alone(one: list[bytes], other: list[bytes]) -> None:
    assert (SEAL.key(*one) == SEAL.key(*other)) == (one == other)


@pytest.mark.parametrize("length", [0, 15, 65])
def test_a_secret_has_a_length_that_blake2b_takes(length: int) -> None:
    with pytest.raises(ValueError, match=f"not {length}"):
        Seal(1, bytes(length))


def test_the_public_namespace_has_a_secret_that_all_know() -> None:
    assert Seal(wire.TENANT_PUBLIC, PUBLIC_SECRET).key(b"x") == Seal(0, bytes(SECRET_BYTES)).key(b"x")


def test_a_content_id_is_never_0() -> None:
    ids = {new_content() for _ in range(1000)}
    assert len(ids) == 1000
    assert 0 not in ids
