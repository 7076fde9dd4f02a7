"""Choice of the size of values: a process uses one size, so the command restarts itself with another."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import NoReturn

from commands.errors import ExperimentError
from hostlib.native.build import BuildError, build
from hostlib.protocol.value_size import SIZES, VARIABLE

LARGEST_BYTES = SIZES[-1]


def size_is_unset() -> bool:
    """Return whether no size was chosen for this process."""
    return not os.environ.get(VARIABLE)


def restart_with_size(size_bytes: int) -> NoReturn:
    """Restart this command with values of so many bytes; raises ExperimentError if Python can't be run."""
    os.environ[VARIABLE] = str(size_bytes)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execv(sys.executable, sys.orig_argv)
    except OSError as error:
        raise ExperimentError(f"{sys.executable}: {error.strerror}") from None


def build_core() -> None:
    """Compile the hosts' core for this process's size if it is missing.

    `make setup` builds that of `make run` only. Without a compiler, Python code does the same work.
    """
    with contextlib.suppress(BuildError):
        build()
