"""The codec against the P4 sources, against itself, and against hostile bytes."""

from __future__ import annotations

import re
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.protocol import wire
from hostlib.protocol.errors import ChecksumError, MalformedError

P4_INCLUDE = Path(__file__).parents[3] / "p4" / "include"
KEY = bytes(range(16))
TAG = bytes(range(100, 116))
VALUE_OPS = (wire.OP_VALUE, wire.OP_PUT, wire.OP_KEYS, wire.OP_EXPECT, wire.OP_MEMBERS)


def u(bits: int) -> st.SearchStrategy[int]:
    return st.integers(0, (1 << bits) - 1)


@st.composite
def messages(draw: st.DrawFn) -> wire.Message:
    op = draw(st.sampled_from(sorted(v for k, v in vars(wire).items() if k.startswith("OP_"))))
    fragments = draw(st.integers(1, 0xFFFF))
    carries_value = op in VALUE_OPS
    some_value = st.binary(max_size=wire.VALUE_BYTES)
    return wire.Message(
        op=op,
        key=draw(st.binary(min_size=16, max_size=16)),
        fragment=draw(st.integers(0, fragments - 1)),
        fragments=fragments,
        flags=draw(u(16)),
        generation=draw(u(32)),
        sequence=draw(u(32)),
        depth=draw(u(16)),
        chain_blocks=draw(u(16)),
        parent=draw(u(32)),
        backlog_ms=draw(u(16)),
        recompute_ms=draw(u(16)),
        tenant=draw(u(16)),
        content=draw(u(64)),
        homes=draw(st.tuples(u(8), u(8), u(8))),
        epoch=draw(u(8)),
        tag=draw(st.binary(min_size=16, max_size=16)),
        value=draw(some_value) if carries_value else b"",
    )


def test_constants_are_those_of_the_p4_program() -> None:
    source = (P4_INCLUDE / "protocol.p4").read_text()
    constants = {
        name: wire.VALUE_BYTES if value == "VALUE_SIZE" else int(value, 0)
        for name, value in re.findall(r"^const bit<\d+>\s+(\w+)\s*=\s*(\w+);", source, re.MULTILINE)
    }
    prefixes = ("KV_", "VALUE_BYTES", "LIST_BYTES", "TENANT_", "OP_", "FLAG_", "REFUSED_")
    ours = {name: value for name, value in vars(wire).items() if name.startswith(prefixes)}
    assert len(constants) >= 18
    assert ours == constants


def test_layout_is_that_of_the_p4_header() -> None:
    source = (P4_INCLUDE / "headers.p4").read_text()
    typedefs = {name: int(bits) for bits, name in re.findall(r"typedef bit<(\d+)>\s+(\w+);", source)}
    body = re.search(r"header kv_t \{(.*?)\}", source, re.DOTALL)
    assert body is not None
    fields = [
        (name, int(bits) if bits else typedefs[alias])
        for bits, alias, name in re.findall(r"^\s*(?:bit<(\d+)>|(\w+_t))\s+(\w+);", body[1], re.MULTILINE)
    ]
    assert tuple(fields) == wire.FIELDS
    assert sum(bits for _, bits in fields) == 8 * wire.KV_HEADER_BYTES


def test_what_a_message_does_not_say_is_zero() -> None:
    """So a PUT names no homes, and a GET no write."""
    datagram = wire.encode(wire.Message(wire.OP_GET, bytes(16), 0, 0))
    assert bytes(datagram[24:28]) == bytes(4)
    message = wire.decode(datagram)
    assert (message.homes, message.content, message.flags, message.generation) == ((0, 0, 0), 0, 0, 0)


def test_each_field_is_where_the_layout_says() -> None:
    message = wire.Message(
        wire.OP_PUT, KEY, 3, 9, flags=0x0102, generation=0x11121314, sequence=0x21222324,
        depth=0x3132, chain_blocks=0x4142, parent=0x51525354, backlog_ms=0x6162, recompute_ms=0x6364,
        tenant=0x7172, content=0x8182838485868788, homes=(1, 2, 3), epoch=4, tag=TAG, value=b"abc",
    )  # fmt: skip
    datagram = wire.encode(message)
    values = {**message._asdict(), "version": wire.KV_VERSION, "value_bytes": 3}
    values |= {"key": int.from_bytes(KEY, "big"), "tag": int.from_bytes(TAG, "big")}
    values |= {"home_1": 1, "home_2": 2, "home_3": 3}
    place = bytes.fromhex("7172 0003 0009 0003 8182838485868788") + KEY
    values["checksum"] = zlib.crc32(place + TAG + b"abc".ljust(512, b"\0"))
    at = 0
    for name, bits in wire.FIELDS:
        end = at + bits // 8
        assert int.from_bytes(datagram[at:end], "big") == values[name], name
        at = end
    assert datagram[at:] == b"abc" + bytes(509)


@given(messages())
def test_decoding_undoes_encoding(message: wire.Message) -> None:
    datagram = wire.encode(message)
    assert wire.decode(datagram) == message
    assert wire.decode(memoryview(datagram)) == message


@given(st.binary(max_size=1200))
def test_arbitrary_bytes_are_refused_or_decoded(datagram: bytes) -> None:
    with suppress(MalformedError):
        message = wire.decode(datagram)
        assert message.fragment < message.fragments or message.fragment == message.fragments == 0
        assert len(message.value) <= wire.VALUE_BYTES


@given(messages(), st.data())
def test_a_flipped_bit_in_what_is_checked_is_noticed(message: wire.Message, data: st.DataObject) -> None:
    datagram = bytearray(wire.encode(message))
    checked = range(32, len(datagram))
    at = data.draw(st.sampled_from(checked))
    datagram[at] ^= 1 << data.draw(st.integers(0, 7))
    if message.op in VALUE_OPS:
        with pytest.raises(MalformedError):
            wire.decode(datagram)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: d[:79], "short"),
        (lambda d: b"", "short"),
        (lambda d: b"\x01" + d[1:], "version 1"),
        (lambda d: b"\x01" + bytes(47), "version 1"),  # as long as its GETs were
        (lambda d: b"\x03" + d[1:], "version 3"),
        (lambda d: d[:1] + b"\x0f" + d[2:], "op"),
        (lambda d: d + b"\0", "length"),
        (lambda d: d[:-1], "length"),
        (lambda d: d[:1] + bytes([wire.OP_GET]) + d[2:], "length"),
        (lambda d: d[:34] + b"\0\2" + d[36:], "fragment"),
        (lambda d: d[:34] + b"\0\0\0\0" + d[38:], "fragment"),
        (lambda d: d[:38] + b"\2\1" + d[40:], "value_bytes"),
        (lambda d: d[:-1] + b"\1", "checksum"),
    ],
)
def test_malformed_messages_say_why(change: object, reason: str) -> None:
    datagram = wire.encode(wire.Message(wire.OP_VALUE, KEY, 1, 2, value=b"v" * 100))
    with pytest.raises(MalformedError) as caught:
        wire.decode(change(datagram))  # type: ignore[operator]  # a lambda of the table above
    assert caught.value.reason == reason


def test_a_checksum_error_shows_what_the_message_claims() -> None:
    datagram = wire.encode(wire.Message(wire.OP_VALUE, KEY, 1, 2, value=b"v" * 100))
    with pytest.raises(ChecksumError) as caught:
        wire.decode(datagram[:-1] + b"\1")
    assert (caught.value.message.key, caught.value.message.fragment) == (KEY, 1)


@pytest.mark.parametrize(
    "message",
    [
        wire.Message(wire.OP_GET, b"short", 0, 1),
        wire.Message(wire.OP_VALUE, KEY, 0, 1, value=bytes(513)),
        wire.Message(wire.OP_GET, KEY, 0, 1, value=b"x"),
        wire.Message(wire.OP_GET, KEY, 0, 1 << 16),
        wire.Message(wire.OP_GET, KEY, 0, 1, backlog_ms=-1),
        wire.Message(wire.OP_GET, KEY, 0, 1, tag=b"short"),
        wire.Message(wire.OP_PUT, KEY, 0, 1, homes=(256, 0, 0)),
    ],
)
def test_what_does_not_fit_is_not_encoded(message: wire.Message) -> None:
    with pytest.raises(ValueError, match=r"bytes in op|Message\(op="):
        wire.encode(message)


@pytest.mark.parametrize("op", [wire.OP_GET, wire.OP_NOT_FOUND, wire.OP_STAT])
def test_who_does_not_know_the_length_asks_for_0_fragments(op: int) -> None:
    message = wire.Message(op, KEY, 0, 0)
    assert wire.decode(wire.encode(message)) == message


@pytest.mark.parametrize("op", [wire.OP_VALUE, wire.OP_PUT, wire.OP_PUT_ACK, wire.OP_FOUND])
def test_who_has_the_block_knows_its_length(op: int) -> None:
    with pytest.raises(MalformedError):
        wire.decode(wire.encode(wire.Message(op, KEY, 0, 0)))


@pytest.mark.parametrize(("block_bytes", "fragments"), [(0, 1), (1, 1), (512, 1), (513, 2), (16384, 32)])
def test_fragment_count(block_bytes: int, fragments: int) -> None:
    assert wire.fragment_count(block_bytes) == fragments


@given(asked=messages(), reply=messages(), value=st.binary(max_size=wire.VALUE_BYTES))
def test_a_value_encoded_for_a_get_is_that_of_a_message_that_echoes_it_but_for_the_fragment(
    asked: wire.Message, reply: wire.Message, value: bytes
) -> None:
    echo = asked._replace(
        op=wire.OP_VALUE, fragment=reply.fragment, fragments=reply.fragments, flags=reply.flags,
        generation=0, content=reply.content, backlog_ms=reply.backlog_ms, homes=(0, 0, 0), epoch=reply.epoch,
        tag=reply.tag, value=value,
    )  # fmt: skip
    assert wire.encode(echo) == wire.encode_value(
        asked, reply.fragment, reply.flags, reply.fragments, reply.content, reply.epoch, reply.backlog_ms,
        reply.tag, value,
    )  # fmt: skip


@given(message=messages().map(lambda message: message._replace(op=wire.OP_GET, value=b"")), other=messages())
def test_variants_differ_in_flags_sequence_and_fragment_only(
    message: wire.Message, other: wire.Message
) -> None:
    changed: dict[str, Any]
    changed = {"flags": other.flags, "sequence": other.sequence, "fragment": other.fragment}
    variants = wire.Variants(wire.encode(message))
    assert variants.encode(**changed) == wire.encode(message._replace(**changed))


@given(messages(), u(16), u(64), u(8))
def test_variants_of_a_write_differ_in_nothing_else(
    message: wire.Message, fragments: int, content: int, epoch: int
) -> None:
    asked = message._replace(op=wire.OP_GET, value=b"", fragment=0, fragments=0, content=0)
    of_write = wire.Variants(wire.encode(asked)).of_write(fragments, content, epoch)
    known = asked._replace(fragments=fragments, content=content, epoch=epoch)
    assert of_write.encode(asked.flags, asked.sequence, 0) == wire.encode(known)


@pytest.mark.parametrize("first", [1, 5, 1 << 31, 0xFFFFFFFF])
def test_answers_to_questions_before_a_number_are_told_from_those_to_later_ones(first: int) -> None:
    """Also where numbers begin anew."""

    def is_of_before(distance: int, flags: int = 0) -> bool:
        sequence = (first + distance) & 0xFFFFFFFF
        return wire.is_of_before(wire.Message(wire.OP_FOUND, KEY, 0, 1, flags, sequence=sequence), first)

    assert [is_of_before(distance) for distance in (-(1 << 31) + 1, -1, 0, 1, (1 << 31) - 1)] == [
        True, True, False, False, False,
    ]  # fmt: skip
    assert not is_of_before(-1, wire.FLAG_MERGED)
    assert not is_of_before(-1, wire.FLAG_PUSHED)


def test_a_key_is_read_without_the_rest_of_a_message() -> None:
    key = bytes(range(1, 17))
    message = wire.Message(wire.OP_GET, key, 0, 0, epoch=7, tag=bytes(range(100, 116)))
    assert wire.key_of(wire.encode(message)) == key
    assert wire.epoch_of(wire.encode(message)) == 7


def test_half_of_all_numbers_are_before_another() -> None:
    assert [wire.is_before(number, 5) for number in (4, 5, 6)] == [True, False, False]
    assert [wire.is_before(5 + (1 << 31) + more, 5) for more in (-1, 0)] == [False, True]
