"""Ethernet addresses; IPv4 ones are the standard library's."""

from __future__ import annotations

import re
from typing import Final

_COLONS: Final = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")


class Mac(int):
    """A 48-bit Ethernet address."""

    @classmethod
    def parse(cls, text: str) -> Mac:
        """Return the address in a text such as "02:00:00:00:00:01"; raises ValueError for anything else."""
        if not _COLONS.fullmatch(text):
            raise ValueError(f"{text!r} is not an Ethernet address such as 02:00:00:00:00:01")
        return cls(text.replace(":", ""), 16)

    @property
    def packed(self) -> bytes:
        """Return the six bytes on the wire."""
        return self.to_bytes(6, "big")

    def __str__(self) -> str:
        return self.packed.hex(":")
