"""Build the C files here as a shared object, once for each version of them and of Python.

The object lies in the folder of the Python environment, so that all its users have the same core.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

from hostlib.protocol.errors import HostlibError
from hostlib.protocol.value_size import VALUE_BYTES

MODULE = "weir_native"
UNUSED_DAYS = 30
FOLDER = Path(__file__).resolve().parent
FLAGS = (
    *("-std=gnu11", "-O2", "-g1", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra"),
    "-ffp-contract=off",  # windows and timeouts are to be those that Python computes, to the last bit
)
SIZED_FLAGS = (f"-DWEIR_VALUE_BYTES={VALUE_BYTES}",)
"""Compiler flags of the hosts' core, which is built once for each size of values."""
SANITIZE_FLAGS = (
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=undefined",
    "-fno-omit-frame-pointer",
)


class BuildError(HostlibError):
    """The core can't be compiled here."""


def library(extra_flags: tuple[str, ...] = (), folder: Path = FOLDER, module: str = MODULE) -> Path:
    """Return where the shared object of these sources is, or would be."""
    digest = hashlib.sha256(" ".join((sys.version, *_flags_of(folder), *extra_flags)).encode())
    for path in _sources(folder):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return Path(sys.prefix) / "lib" / "weir" / f"{module}-{digest.hexdigest()[:20]}.so"


def build(extra_flags: tuple[str, ...] = (), folder: Path = FOLDER, module: str = MODULE) -> Path:
    """Compile a core unless it is there, from a folder's sources; BuildError."""
    path = library(extra_flags, folder, module)
    if path.is_file():
        return path
    headers = Path(sysconfig.get_paths()["include"])
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise BuildError("no C compiler on PATH (apt-get install gcc)")
    if not (headers / "Python.h").is_file():
        raise BuildError(f"no Python.h in {headers} (apt-get install python3-dev)")
    sources = [str(source) for source in _sources(folder) if source.suffix == ".c"]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=path.parent) as scratch:
            made = Path(scratch) / path.name
            command = [compiler, *_flags_of(folder), *extra_flags, f"-I{headers}", *sources, "-o", str(made)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise BuildError(f"the C compiler failed:\n{done.stderr.strip()[:4000]}")
            made.replace(path)
        _forget_unused(path, module)
    except OSError as error:
        raise BuildError(f"{path.parent}: {error.strerror}") from None
    return path


def _forget_unused(newest: Path, module: str) -> None:
    """Remove older builds after a while: another checkout may use the same environment."""
    for other in newest.parent.glob(f"{module}-*.so"):
        if other.stat().st_mtime < time.time() - UNUSED_DAYS * 86400:
            other.unlink(missing_ok=True)


def _flags_of(folder: Path) -> tuple[str, ...]:
    return (*FLAGS, *SIZED_FLAGS) if folder == FOLDER else FLAGS


def _sources(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix in (".c", ".h"))
