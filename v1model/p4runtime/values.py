"""Translation of P4Runtime's bytestrings (P4Runtime 1.4, "Bytestrings") to ints and back.

A codec is chosen once for a field, parameter or packet-metadata member, from its P4Info. It is for plain
bit<W>, or for a `type` with @p4runtime_translation to another width or to strings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from v1model.dataplane import DataPlaneError

if TYPE_CHECKING:
    from v1model.protos.p4.config.v1.p4types_pb2 import P4TypeInfo


MAX_WIDTH = 65_536  # a varbit's
MAX_DATA_PARTS = 65_536  # fields, members of enums and so on of all types of P4Data in a P4Info


class Codec(Protocol):
    """Codec between a value on the wire and the data plane's int."""

    width: int

    def decode(self, data: bytes) -> int: ...
    def encode(self, value: int) -> bytes: ...


def encode_uint(value: int) -> bytes:
    """Return the shortest big-endian string of `value`; zero is one byte. Raises ValueError below 0."""
    if value < 0:
        raise ValueError(f"{value} is below 0, and its type has no sign")
    return value.to_bytes((value.bit_length() + 7) // 8 or 1, "big")


def encode_int(value: int) -> bytes:
    """Return the shortest two's complement string for a signed value; zero is one byte."""
    bits = (value if value >= 0 else ~value).bit_length() + 1
    return value.to_bytes((bits + 7) // 8, "big", signed=True)


class BitsCodec:
    """Codec of bit<width>: it accepts any length if the value fits, and produces the shortest."""

    def __init__(self, width: int) -> None:
        self.width = width

    def decode(self, data: bytes) -> int:
        value = int.from_bytes(data, "big")
        if value >> self.width or not data:
            raise DataPlaneError("OUT_OF_RANGE", _misfit(data, f"bit<{self.width}>"))
        return value

    encode = staticmethod(encode_uint)


class SignedCodec:
    """Codec of int<width>, two's complement, only in P4Data (registers, digests)."""

    def __init__(self, width: int) -> None:
        self.width = width

    def decode(self, data: bytes) -> int:
        value = int.from_bytes(data, "big", signed=True)
        limit = 1 << self.width - 1
        if not data or not -limit <= value < limit:
            raise DataPlaneError("OUT_OF_RANGE", _misfit(data, f"int<{self.width}>"))
        return value

    def encode(self, value: int) -> bytes:
        """Return the bytes of `value`, which may also be the bit pattern that the data plane holds."""
        return encode_int(value - (1 << self.width) if value >> self.width - 1 > 0 else value)


class StringCodec:
    """Codec of @p4runtime_translation to `string`.

    A decimal numeral stands for its number, so that ports can be named "3". Any other string gets the highest
    free number of the field.
    """

    MAX_LENGTH = 256

    def __init__(self, width: int) -> None:
        self.width = width
        self._numbers: dict[str, int] = {}
        self._names: dict[int, str] = {}

    def decode(self, data: bytes) -> int:
        text = data.decode("utf-8", "replace")
        if text.isascii() and text.isdigit() and len(text) <= self.MAX_LENGTH:
            return self._numeral(text)
        if not text or len(text) > self.MAX_LENGTH or not text.isprintable():
            raise DataPlaneError(
                "INVALID_ARGUMENT", f"a translated string has 1 to {self.MAX_LENGTH} printable characters"
            )
        if text not in self._numbers:
            self._allocate(text)
        return self._numbers[text]

    def encode(self, value: int) -> bytes:
        return self._names.get(value, str(value)).encode()

    def _numeral(self, text: str) -> int:
        value = int(text)
        if value >> self.width or value in self._names:
            raise DataPlaneError("OUT_OF_RANGE", f"{text} is not a free number of bit<{self.width}>")
        return value

    def _allocate(self, text: str) -> None:
        # Half of the numbers are reserved for numerals.
        if len(self._names) >= max(1, 1 << self.width >> 1) or len(self._names) >= 1 << 16:
            raise DataPlaneError("RESOURCE_EXHAUSTED", f"no number left in bit<{self.width}> for {text!r}")
        value = (1 << self.width) - 1 - len(self._names)
        self._numbers[text], self._names[value] = value, text


class TranslatedCodec(BitsCodec):
    """Codec of @p4runtime_translation to bit<sdn_width>: numbers keep their value, so they must fit both."""

    def __init__(self, width: int, sdn_width: int) -> None:
        super().__init__(min(width, sdn_width))


def is_plain(codec: Codec, width: int) -> bool:
    """Return whether any bytes that fit bit<width> are the value itself."""
    return isinstance(codec, BitsCodec) and codec.width == width


class CodecFactory:
    """Codecs by P4Info type: all uses of one translated type share one codec."""

    def __init__(self, type_info: P4TypeInfo) -> None:
        self._new_types = type_info.new_types
        self._strings: dict[str, StringCodec] = {}
        self._parts_left = MAX_DATA_PARTS

    def count_parts(self, count: int) -> None:
        """Count `count` more parts in types of P4Data; raises DataPlaneError if there are too many.

        A few nested types with two members of the next could otherwise take all memory.
        """
        self._parts_left -= count
        if self._parts_left < 0:
            message = f"the P4Info's types of data have more than {MAX_DATA_PARTS} parts"
            raise DataPlaneError("INVALID_ARGUMENT", message)

    def codec(self, width: int, type_name: str) -> Codec:
        """Return the codec of a `width`-bit value of the data plane with P4Info's `type_name` ("": none)."""
        check_width(width)
        if not type_name or type_name not in self._new_types:
            return BitsCodec(width)
        new_type = self._new_types[type_name]
        if not new_type.HasField("translated_type"):
            return BitsCodec(width)
        if new_type.translated_type.HasField("sdn_string"):
            return self._strings.setdefault(type_name, StringCodec(width))
        sdn_width = new_type.translated_type.sdn_bitwidth
        check_width(sdn_width)
        return TranslatedCodec(width, sdn_width)


def check_width(width: int, least: int = 0) -> None:
    """Raise DataPlaneError for a width in a P4Info that no value has."""
    if not least <= width <= MAX_WIDTH:
        raise DataPlaneError("INVALID_ARGUMENT", f"the P4Info has a value of {width} bits")


def _misfit(data: bytes, type_text: str) -> str:
    shown = "0x" + data[:16].hex() + ("..." if len(data) > 16 else "") if data else "an empty bytestring"
    return f"{shown} does not fit {type_text}"
