"""Programs of tests, each in a file whose name follows from its text."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from v1model.backend.build import cache_directory


def kept_program(text: str) -> Path:
    """Write a P4 program beside what the compiler keeps, and return its file.

    The compiler looks up what it has made by a program's text and path. A text has the same path in every run
    of the tests, so only the first run after a change of the compiler compiles it.
    """
    folder = cache_directory() / "test-programs"
    path = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.p4"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "w") as file:
            file.write(text)
        Path(name).replace(path)
    return path
