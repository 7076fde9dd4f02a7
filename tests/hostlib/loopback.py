"""Loopback addresses that no other test uses at the same time."""

from __future__ import annotations

import itertools
import os

_numbers = itertools.count(1)


def own_address() -> str:
    """An address of 127/8 for this process alone: parallel tests bind the same port."""
    number = next(_numbers)
    return f"127.{1 + os.getpid() // 250 % 250}.{1 + os.getpid() % 250}.{number % 250 + 1}"
