"""Settings that name files: a key that has the names does not say what the files hold."""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import Any, Final

MAX_PATH: Final = 4096
"""Longest text in characters that is looked for on the disk."""


def is_path(value: Any) -> bool:
    """Return whether a setting is the path of something on this machine's disk."""
    if isinstance(value, PurePath):
        return os.path.lexists(value)
    looks_like_one = isinstance(value, str) and len(value) <= MAX_PATH and ("/" in value or "." in value)
    return looks_like_one and value not in (".", "..", "/") and os.path.lexists(value)
