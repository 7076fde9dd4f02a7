"""A command that chooses the size of values starts again with it: a process speaks one size."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import NoReturn

from commands.errors import ExperimentError
from hostlib.native.build import BuildError, build
from hostlib.protocol.value_size import SIZES, VARIABLE

LARGEST_BYTES = SIZES[-1]


def is_open() -> bool:
    """Return whether nobody chose a size for this process."""
    return not os.environ.get(VARIABLE)


def speak(size_bytes: int) -> NoReturn:
    """Start this command again with values of so many bytes; ExperimentError if its program is not found."""
    os.environ[VARIABLE] = str(size_bytes)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execv(sys.executable, sys.orig_argv)
    except OSError as error:
        raise ExperimentError(f"{sys.executable}: {error.strerror}") from None


def build_core() -> None:
    """Compile the hosts' core of this process's size where it is missing: set-up makes that of `make run`
    alone. Without a compiler Python does the same."""
    with contextlib.suppress(BuildError):
        build()
