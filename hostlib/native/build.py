"""From the C files here to a shared object, once for each version of them and of Python.

It lies in the environment's own folder: whoever uses that environment, as whatever user, has the same core.
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

from hostlib.errors import HostlibError

MODULE = "weir_native"
UNUSED_DAYS = 30
FOLDER = Path(__file__).resolve().parent
FLAGS = (
    *("-std=gnu11", "-O2", "-g1", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra"),
    "-ffp-contract=off",  # windows and timeouts are to be those that Python computes, to the last bit
)
SANITIZE_FLAGS = (
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=undefined",
    "-fno-omit-frame-pointer",
)


class BuildError(HostlibError):
    """The core can't be compiled here."""


def library(extra_flags: tuple[str, ...] = ()) -> Path:
    """Where the shared object of these sources is, or would be."""
    digest = hashlib.sha256(" ".join((sys.version, *FLAGS, *extra_flags)).encode())
    for path in _sources():
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return Path(sys.prefix) / "lib" / "weir" / f"{MODULE}-{digest.hexdigest()[:20]}.so"


def build(extra_flags: tuple[str, ...] = ()) -> Path:
    """Compile the core unless it is there; BuildError."""
    path = library(extra_flags)
    if path.is_file():
        return path
    headers = Path(sysconfig.get_paths()["include"])
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise BuildError("no C compiler on PATH (apt-get install gcc)")
    if not (headers / "Python.h").is_file():
        raise BuildError(f"no Python.h in {headers} (apt-get install python3-dev)")
    sources = [str(source) for source in _sources() if source.suffix == ".c"]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=path.parent) as folder:
            made = Path(folder) / path.name
            command = [compiler, *FLAGS, *extra_flags, f"-I{headers}", *sources, "-o", str(made)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise BuildError(f"the C compiler failed:\n{done.stderr.strip()[:4000]}")
            made.replace(path)
        _forget_unused(path)
    except OSError as error:
        raise BuildError(f"{path.parent}: {error.strerror}") from None
    return path


def _forget_unused(newest: Path) -> None:
    """Older builds go after a while: another checkout may use the same environment."""
    for other in newest.parent.glob(f"{MODULE}-*.so"):
        if other.stat().st_mtime < time.time() - UNUSED_DAYS * 86400:
            other.unlink(missing_ok=True)


def _sources() -> list[Path]:
    return sorted(path for path in FOLDER.iterdir() if path.suffix in (".c", ".h"))
