"""Messages of log_msg as text: each {} is a value of the message."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from v1model.backend.layout import wire_bytes
from v1model.backend.unit import Logged, LoggedNumber, LoggedVarbit

if TYPE_CHECKING:
    from v1model.backend.unit import LogMessage

_PLACE = re.compile(r"\\([{}])|\{\}")


def show(message: LogMessage, data: bytes) -> str:
    """Return the message on one line, with its values taken from `data`.

    Headers and structs have p4c's form (a:1,b:2), an invalid header is (invalid). A backslash before a brace
    makes it a character. A place without a value stays as it is.
    """
    reader = _Reader(data)
    values = iter([reader.show(value) for value in message.values])

    def place(match: re.Match[str]) -> str:
        return match[1] or next(values, match[0])

    return _on_one_line(_PLACE.sub(place, message.text))


class _Reader:
    """Reader of consecutive values of an event."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def show(self, value: Logged) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, LoggedNumber):
            return str(self._number(value))
        if isinstance(value, LoggedVarbit):
            return self._varbit(value)
        is_valid = not value.is_header or self._number(LoggedNumber(8))
        parts = [f"{name}:{self.show(part)}" for name, part in value.parts]
        return f"({','.join(parts)})" if is_valid else "(invalid)"

    def _varbit(self, kind: LoggedVarbit) -> str:
        """Return the bytes that the varbit has in hex digits."""
        used = self._number(LoggedNumber(32)) // 8
        data = self._data[self._at : self._at + used]
        self._at += wire_bytes(kind.max_width)
        return f"0x{data.hex()}" if data else "(empty)"

    def _number(self, kind: LoggedNumber) -> int:
        size = wire_bytes(kind.width)
        number = int.from_bytes(self._data[self._at : self._at + size], "big")
        self._at += size
        return number - (1 << kind.width) if kind.signed and number >> (kind.width - 1) else number


def _on_one_line(text: str) -> str:
    """Return the text without characters that would begin another line or command a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
