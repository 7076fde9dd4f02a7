"""C names for P4 names."""

from __future__ import annotations

import re


def identifier(name: str) -> str:
    """A C identifier that resembles `name`; distinct names may collide."""
    return re.sub(r"\W", "_", name)


def comment(text: str) -> str:
    """A C comment; whatever is in `text` can't end it."""
    return f"/* {text.replace('*/', '* /').replace(chr(10), ' ')} */"


class Namer:
    """Gives every wanted name a C identifier of its own."""

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
