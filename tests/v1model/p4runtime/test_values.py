"""Bytestrings: the tables of the P4Runtime specification, and any value there and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from v1model.dataplane import DataPlaneError
from v1model.p4runtime.values import BitsCodec, CodecFactory, SignedCodec, encode_uint
from v1model.protos.p4.config.v1 import p4types_pb2


@pytest.mark.parametrize(
    ("codec", "data", "value", "canonical"),
    [
        (BitsCodec(8), b"\x63", 99, True),
        (BitsCodec(16), b"\x00\x63", 99, False),
        (BitsCodec(16), b"\x63", 99, True),
        (BitsCodec(16), b"\x30\x64", 12388, True),
        (BitsCodec(16), b"\x00\x30\x64", 12388, False),
        (BitsCodec(12), b"\x00\x63", 99, False),
        (BitsCodec(12), b"\x00\x00\x63", 99, False),
        (SignedCodec(8), b"\x63", 99, True),
        (SignedCodec(8), b"\x9d", -99, True),
        (SignedCodec(8), b"\xff\x9d", -99, False),
        (SignedCodec(12), b"\xfd\x1d", -739, True),
        (SignedCodec(16), b"\x00\x00", 0, False),
        (SignedCodec(16), b"\x00", 0, True),
    ],
)
def test_valid_encodings_of_the_specification(
    codec: BitsCodec, data: bytes, value: int, canonical: bool
) -> None:
    assert codec.decode(data) == value
    assert (codec.encode(value) == data) == canonical


@pytest.mark.parametrize(
    ("codec", "data"),
    [
        (BitsCodec(8), b"\x01\x63"),
        (BitsCodec(8), b""),
        (BitsCodec(16), b"\x01\x00\x63"),
        (BitsCodec(12), b"\x10\x63"),
        (BitsCodec(12), b"\x01\x00\x63"),
        (BitsCodec(12), b"\x00\x40\x63"),
        (SignedCodec(8), b"\x00\x9d"),
        (SignedCodec(12), b"\x8d\x1d"),
        (SignedCodec(16), b""),
    ],
)
def test_invalid_encodings_of_the_specification(codec: BitsCodec, data: bytes) -> None:
    with pytest.raises(DataPlaneError, match="does not fit") as caught:
        codec.decode(data)
    assert caught.value.code == "OUT_OF_RANGE"


@given(st.data(), st.integers(1, 2048))
def test_any_value_there_and_back(data: st.DataObject, width: int) -> None:
    value = data.draw(st.integers(0, (1 << width) - 1))
    padding = data.draw(st.integers(0, 3))
    encoded = BitsCodec(width).encode(value)
    assert BitsCodec(width).decode(bytes(padding) + encoded) == value
    assert len(encoded) == 1 or encoded[0]


@given(st.data(), st.integers(1, 128))
def test_signed_values_and_their_bit_patterns(data: st.DataObject, width: int) -> None:
    value = data.draw(st.integers(-(1 << width - 1), (1 << width - 1) - 1))
    codec = SignedCodec(width)
    assert codec.decode(codec.encode(value)) == value
    assert codec.encode(value & (1 << width) - 1) == codec.encode(value)


@pytest.fixture
def factory() -> CodecFactory:
    types = p4types_pb2.P4TypeInfo()
    types.new_types["plain_t"].original_type.bitstring.bit.bitwidth = 9
    types.new_types["wide_t"].translated_type.sdn_bitwidth = 32
    types.new_types["name_t"].translated_type.sdn_string.SetInParent()
    return CodecFactory(types)


def test_a_type_without_translation_is_its_bits(factory: CodecFactory) -> None:
    assert isinstance(factory.codec(9, "plain_t"), BitsCodec)


def test_translated_numbers_must_fit_both_widths(factory: CodecFactory) -> None:
    codec = factory.codec(9, "wide_t")
    assert codec.decode(b"\0\0\1\2") == 258
    with pytest.raises(DataPlaneError):
        codec.decode(encode_uint(512))


def test_translated_strings_keep_their_number_everywhere(factory: CodecFactory) -> None:
    codec = factory.codec(9, "name_t")
    eth0, eth1 = codec.decode(b"eth0"), codec.decode(b"eth1")
    assert eth0 != eth1
    assert factory.codec(9, "name_t").decode(b"eth0") == eth0
    assert (codec.encode(eth0), codec.decode(b"17"), codec.encode(17)) == (b"eth0", 17, b"17")


def test_translated_strings_run_out(factory: CodecFactory) -> None:
    codec = factory.codec(2, "name_t")
    codec.decode(b"a")
    codec.decode(b"b")
    with pytest.raises(DataPlaneError) as caught:
        codec.decode(b"c")
    assert caught.value.code == "RESOURCE_EXHAUSTED"
    for bad in (b"", b"x" * 257, b"\n", b"3"):  # 3 is already a's number
        with pytest.raises(DataPlaneError):
            codec.decode(bad)
