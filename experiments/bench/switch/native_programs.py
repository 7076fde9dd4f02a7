"""C programs of the benchmark, compiled when they are first needed and kept in the cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from experiments.bench.switch.errors import BenchError
from v1model.backend import building

SOURCES: Final = Path(__file__).parent / "native"
FLAGS: Final = ("-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror")
PROGRAMS: Final = {
    "load": ("load.c", "plan.c", "ring.c", "packet_port.c"),
    "echo": ("echo.c", "packet_port.c"),
    "udp": ("udp.c", "packet_port.c"),
}


def program(name: str) -> Path:
    """Return the path of the executable; raises BenchError with the compiler's messages."""
    return _compiled(name, [SOURCES / source for source in PROGRAMS[name]], ())


def library(source: Path) -> Path:
    """Return the path of a shared object of one C file; raises BenchError with the compiler's messages."""
    return _compiled(f"{source.stem}.so", [source], ("-shared", "-fPIC"))


def _compiled(name: str, sources: Sequence[Path], extra: Sequence[str]) -> Path:
    library = building.cache_directory() / "bench" / f"{_fingerprint(sources)}-{name}"
    if library.exists():
        return library
    if shutil.which("cc") is None:
        raise BenchError("the load generator is compiled when it is needed: install a C compiler (gcc)")
    library.parent.mkdir(parents=True, exist_ok=True)
    partial = library.with_suffix(f".{os.getpid()}")
    command = ("cc", *FLAGS, *extra, "-o", str(partial), *map(str, sources))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"cc refused {name}:\n{done.stderr}")
    partial.rename(library)
    return library


def _fingerprint(sources: Sequence[Path]) -> str:
    digest = hashlib.sha256(" ".join(FLAGS).encode())
    for folder in sorted({source.parent for source in sources}):
        for source in sorted(folder.iterdir()):
            digest.update(source.read_bytes())
    return digest.hexdigest()[:16]
