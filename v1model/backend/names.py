"""C names for P4 names."""

from __future__ import annotations

import re


def identifier(name: str) -> str:
    """Return a C identifier that resembles `name`; distinct names may collide."""
    return re.sub(r"\W", "_", name, flags=re.ASCII)


def comment(text: str) -> str:
    """Return a C comment; nothing in `text` can end it or begin a line of its own."""
    return f"/* {re.sub(r'[^ -~]', ' ', text).replace('*/', '* /')} */"


def string(text: str) -> str:
    """Return a C string literal of the text in UTF-8.

    All characters except letters, digits and a few signs become octal escapes. So nothing in the text ends
    the literal or the line, or has a meaning to the preprocessor.
    """
    data = text.encode("utf-8", "replace")
    escaped = re.sub(rb"[^A-Za-z0-9_.$ -]", lambda match: b"\\%03o" % match[0][0], data)
    return f'"{escaped.decode()}"'


class Namer:
    """Source of unique C identifiers for wanted names."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def unique(self, wanted: str) -> str:
        base = identifier(wanted)
        name, number = base, 1
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name
