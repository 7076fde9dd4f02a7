"""Thrift's binary protocol: encoding of messages and values. Input is untrusted.

A struct is a dict of its fields by their numbers. Reading needs no declarations, because values come with
their types. Writing needs them: BOOL, I16 ... or ListOf, MapOfStrings and StructOf.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

CALL, REPLY, EXCEPTION = 1, 2, 3
_VERSION_1 = 0x80010000
_VERSION_MASK = 0xFFFF0000
MAX_MESSAGE_BYTES = 16 << 20
MAX_DEPTH = 16
_STOP = 0


class ProtocolError(Exception):
    """Bytes are no message, or too many. The connection can't continue."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """Number or bool with its code in the protocol."""

    code: int
    layout: struct.Struct


@dataclass(frozen=True, slots=True)
class Text:
    """String of characters or bytes."""

    code: int = 11


@dataclass(frozen=True, slots=True)
class ListOf:
    element: Type
    code: int = 15


@dataclass(frozen=True, slots=True)
class MapOfStrings:
    code: int = 13


@dataclass(frozen=True, slots=True)
class StructOf:
    """Struct type with fields numbered 1, 2 ... A value is a tuple; None is a field that is not set."""

    fields: tuple[Type, ...]
    code: int = 12


Type = Scalar | Text | ListOf | MapOfStrings | StructOf

BOOL = Scalar(2, struct.Struct(">?"))
BYTE = Scalar(3, struct.Struct(">b"))
DOUBLE = Scalar(4, struct.Struct(">d"))
I16 = Scalar(6, struct.Struct(">h"))
I32 = Scalar(8, struct.Struct(">i"))
I64 = Scalar(10, struct.Struct(">q"))
STRING = Text()
_SCALARS = {scalar.code: scalar.layout for scalar in (BOOL, BYTE, DOUBLE, I16, I32, I64)}
_STRUCT, _MAP, _SET, _LIST = 12, 13, 14, 15


class Reader:
    """Reader of values from `take`, which returns `count` bytes or raises; each message has a size limit."""

    def __init__(self, take: Callable[[int], bytes]) -> None:
        self._take, self._left = take, 0
        self.kind = 0

    def message(self, *kinds: int) -> tuple[str, int, dict[int, Any]]:
        """Return name, sequence number and struct of the next message, of one of `kinds` (a call by default).

        The struct of a call has the arguments. `kind` is then the message's kind.
        """
        self._left = MAX_MESSAGE_BYTES
        head = self._unsigned()
        if head & _VERSION_MASK != _VERSION_1 or head & 0xFF not in (kinds or (CALL,)):
            raise ProtocolError("this is no such message in Thrift's binary protocol")
        self.kind = head & 0xFF
        name = self._text().decode(errors="replace")
        sequence = self._scalar(I32.code)
        return name, int(sequence), self._struct(0)

    def _bytes(self, count: int) -> bytes:
        if not 0 <= count <= self._left:
            raise ProtocolError(f"a message of more than {MAX_MESSAGE_BYTES} bytes")
        self._left -= count
        data = self._take(count)
        if len(data) < count:
            raise ProtocolError("a message that ends too early")
        return data

    def _unsigned(self) -> int:
        return int.from_bytes(self._bytes(4), "big")

    def _scalar(self, code: int) -> Any:
        layout = _SCALARS[code]
        return layout.unpack(self._bytes(layout.size))[0]

    def _text(self) -> bytes:
        return self._bytes(self._scalar(I32.code))

    def _value(self, code: int, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise ProtocolError("values inside one another too deeply")
        if code in _SCALARS:
            return self._scalar(code)
        if code == STRING.code:
            return self._text()
        if code == _STRUCT:
            return self._struct(depth)
        if code in (_LIST, _SET):
            element = self._bytes(1)[0]
            return [self._value(element, depth + 1) for _ in range(self._count(1))]
        if code == _MAP:
            key, value = self._bytes(2)
            pairs = [
                (self._value(key, depth + 1), self._value(value, depth + 1)) for _ in range(self._count(2))
            ]
            return [pair for pair in pairs if pair]
        raise ProtocolError(f"a value of type {code}")

    def _count(self, least_bytes: int) -> int:
        """Return how many elements follow, each of which takes `least_bytes` or more."""
        count = self._scalar(I32.code)
        if not 0 <= count * least_bytes <= self._left:
            raise ProtocolError("a list longer than its message")
        return int(count)

    def _struct(self, depth: int) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        while (code := self._bytes(1)[0]) != _STOP:
            number = self._scalar(I16.code)
            fields[int(number)] = self._value(code, depth + 1)
        return fields


def message(name: str, kind: int, sequence: int, body: bytes) -> bytes:
    """Return a reply or exception with an encoded struct."""
    return (_VERSION_1 | kind).to_bytes(4, "big") + _text(name) + I32.layout.pack(sequence) + body


def encode(type_: Type, value: Any) -> bytes:
    """Return the bytes of a value; raises ValueError for a number out of its type's range."""
    match type_:
        case Scalar(layout=layout):
            try:
                return layout.pack(value)
            except struct.error:
                raise ValueError(f"{value} is out of range") from None
        case Text():
            return _text(value)
        case ListOf(element=element):
            items = b"".join(encode(element, item) for item in value)
            return bytes([element.code]) + I32.layout.pack(len(value)) + items
        case MapOfStrings():
            pairs = b"".join(_text(key) + _text(item) for key, item in value.items())
            return bytes([STRING.code, STRING.code]) + I32.layout.pack(len(value)) + pairs
        case StructOf(fields=fields):
            return b"".join(
                field(number, inner, part)
                for number, (inner, part) in enumerate(zip(fields, value, strict=True), start=1)
                if part is not None
            ) + bytes([_STOP])


def field(number: int, type_: Type, value: Any) -> bytes:
    """Return a field of a struct with its number."""
    return bytes([type_.code]) + I16.layout.pack(number) + encode(type_, value)


def struct_of(*fields: bytes) -> bytes:
    """Return a struct of encoded fields."""
    return b"".join(fields) + bytes([_STOP])


def _text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return I32.layout.pack(len(data)) + data
