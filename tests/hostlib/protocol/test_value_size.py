"""One size of values for all of a network: chosen when a process starts, said in HELLO and MEMBERS."""

from __future__ import annotations

import pytest

from hostlib.protocol import wire
from hostlib.protocol.errors import ConfigError
from hostlib.protocol.members import Members, hello, other_size
from hostlib.protocol.value_size import SIZES, chosen_bytes, decoded, encoded


@pytest.mark.parametrize("size_bytes", SIZES)
def test_a_size_is_chosen_by_its_bytes_and_said_in_16_bits(size_bytes: int) -> None:
    assert chosen_bytes(str(size_bytes)) == size_bytes
    assert decoded(encoded(size_bytes)) == size_bytes
    assert encoded(size_bytes) < 1 << 16


@pytest.mark.parametrize("text", ["513", "8k", "-512", " 512", "512.0", "0"])
def test_a_size_that_there_is_not_is_refused_with_those_that_there_are(text: str) -> None:
    with pytest.raises(ConfigError, match=r"WEIR_VALUE_BYTES: .*512, 1408, 8192"):
        chosen_bytes(text)


def test_nothing_chosen_is_what_all_versions_speak() -> None:
    assert chosen_bytes(None) == chosen_bytes("") == 512
    assert encoded(512) == 0


def test_a_hello_says_its_senders_size() -> None:
    said = hello(Members.of(["10.0.0.1"]))
    assert not other_size(said)
    assert "8192 bytes there" in other_size(said._replace(chain_blocks=8192))
    assert "1408 bytes there" in other_size(said._replace(chain_blocks=1408))


def test_lists_have_the_same_length_at_every_size() -> None:
    assert len(wire.encode(hello(Members.of(["10.0.0.1"])))) == wire.KV_HEADER_BYTES + 512
