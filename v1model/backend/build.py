"""Compilation of C to a shared object, through a cache that any number of processes share.

A cache entry is a directory named by a hash of everything that went into it. It appears by rename, complete
or not at all. A damaged entry is thrown away and built again.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from v1model.errors import C_LIMIT, CompileError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from v1model.backend.runtime_build import RuntimeBuild

RUNTIME = Path(__file__).resolve().parent.parent / "runtime"
PACKAGE = RUNTIME.parent

CHECKSUM = ".sha256"  # suffix of the file beside a shared object
UNUSED_DAYS = 30  # age at which a cache entry is removed

FLAGS = ("-std=gnu11", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-pthread")
FULL = ("-O2", "-g1")
QUICK = ("-O1",)  # a third of the time of FULL
QUICK_RUNTIME = ("-O0",)  # the full build of the runtime's 19 files soon replaces it
SANITIZE_FLAGS = (
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=undefined",
    "-fno-omit-frame-pointer",
)
# Generated code declares what a program declares, used or not, and compares unsigned values with 0. It reads
# variables that P4 leaves unset; all start as 0, which GCC does not always see.
GENERATED_FLAGS = (
    "-Wno-unused-variable",
    "-Wno-unused-but-set-variable",
    "-Wno-unused-function",
    "-Wno-type-limits",
    "-Wno-maybe-uninitialized",
)


def cache_directory() -> Path:
    """Return the cache's directory: WEIR_CACHE, or weir below XDG_CACHE_HOME or ~/.cache."""
    chosen = os.environ.get("WEIR_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weir"


def compiler() -> str:
    """Return the path of the C compiler CC, by default cc; raises CompileError if there is none."""
    wanted = os.environ.get("CC", "cc")
    found = shutil.which(wanted)
    if found is None:
        raise CompileError(
            f"no C compiler: {wanted} is not on PATH", hint="install gcc (apt-get install gcc)"
        )
    return found


def _werror() -> tuple[str, ...]:
    """Return -Werror in the tests, but not for users: their compilers may know warnings that ours does not.

    WEIR_WERROR is read at each use, because a process started by this one must compute the same keys.
    """
    return ("-Werror",) if os.environ.get("WEIR_WERROR") == "1" else ()


@cache
def sources_fingerprint() -> str:
    """Return a hash of the sources of compiler and runtime, on which all output depends."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*")):
        if path.suffix in (".py", ".c", ".h") and path.is_file():
            digest.update(str(path.relative_to(PACKAGE)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def key_of(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in (
        *parts,
        sources_fingerprint(),
        " ".join((os.environ.get("CC", "cc"), *FLAGS, *FULL, *_werror())),
    ):
        digest.update(len(part).to_bytes(8, "big") + part.encode())
    return digest.hexdigest()[:32]


def checksum(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()


def is_intact(library: Path) -> bool:
    """Return whether a shared object exists with its checksum."""
    try:
        return checksum(library.read_bytes()) == library.with_suffix(CHECKSUM).read_bytes()
    except OSError:
        return False


def discard(entry: Path) -> None:
    """Remove what is left of a damaged entry."""
    shutil.rmtree(entry, ignore_errors=True)


class _Compilers:
    """C compilers that this process runs, each the leader of a process group, as a compiler starts processes.

    With `in_own_group` false they stay in this process's group, so that its parent can end them.
    """

    def __init__(self) -> None:
        self.running: set[subprocess.Popen[Any]] = set()
        self.in_own_group = True
        self.ended = False


_compilers = _Compilers()


def stay_in_group() -> None:
    """Let compilers that this process starts stay in its process group."""
    _compilers.in_own_group = False


@contextlib.contextmanager
def running(process: subprocess.Popen[Any]) -> Iterator[None]:
    """Let `end_compilers` also end this process, the leader of a process group, during the block."""
    _compilers.running.add(process)
    try:
        if _compilers.ended:
            end_compilers()
        yield
    finally:
        _compilers.running.discard(process)


def _start(command: Sequence[str]) -> subprocess.Popen[str]:
    nothing = subprocess.DEVNULL
    group = 0 if _compilers.in_own_group else None
    process = subprocess.Popen(
        command, stdin=nothing, stdout=nothing, stderr=subprocess.PIPE, text=True, process_group=group
    )
    _compilers.running.add(process)
    return process


def check(process: subprocess.Popen[str], what: str) -> None:
    """Wait for a C compiler; raises CompileError with its output if it failed."""
    _, errors = process.communicate()
    _compilers.running.discard(process)
    if C_LIMIT.search(errors):
        raise CompileError(f"{what} takes more time or memory to compile than the C compiler may have")
    if process.returncode:
        raise CompileError(f"the C compiler failed on {what}:\n{errors.strip()[:4000]}")


@atexit.register
def end_compilers() -> None:
    """End all running compilers of this process, and those that start later, as nobody waits for them."""
    _compilers.ended = True
    for process in tuple(_compilers.running):
        with contextlib.suppress(ProcessLookupError):
            if _compilers.in_own_group:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()


def mark_used(entry: Path) -> None:
    """Mark a cache entry as used now, so that `forget_unused` leaves it."""
    with contextlib.suppress(OSError):
        os.utime(entry)


def forget_unused(cache: Path) -> None:
    """Remove cache entries that have not been used for UNUSED_DAYS."""
    oldest = time.time() - UNUSED_DAYS * 86400
    for entry in cache.iterdir():
        with contextlib.suppress(OSError):
            if entry.stat().st_mtime < oldest:
                shutil.rmtree(entry, ignore_errors=True)


def publish(entry: Path, fill: dict[str, Path | bytes]) -> None:
    """Make `entry` exist with these files. The first process to do so wins; all would write the same."""
    entry.parent.mkdir(parents=True, exist_ok=True)
    forget_unused(entry.parent)
    staging = Path(tempfile.mkdtemp(prefix=".new-", dir=entry.parent))
    try:
        for name, content in fill.items():
            if isinstance(content, Path):
                shutil.move(content, staging / name)
            else:
                (staging / name).write_bytes(content)
        staging.chmod(0o755)
        staging.rename(entry)
    except OSError:
        if not entry.is_dir():
            raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def compile_file(source: Path, target: Path, flags: Sequence[str]) -> subprocess.Popen[str]:
    """Begin to compile a C file that includes the runtime's headers to an object; `check` waits for it."""
    options = [*FLAGS, *_werror(), *flags, "-I", str(RUNTIME)]
    return _start([compiler(), *options, "-c", str(source), "-o", str(target)])


def compile_shared(source: str, target: Path, runtime: RuntimeBuild, *, sanitize: bool, quick: bool) -> None:
    """Compile generated C and link it with the runtime."""
    extra = SANITIZE_FLAGS if sanitize else ()
    with tempfile.TemporaryDirectory() as directory:
        program, made = Path(directory) / "program.c", Path(directory) / "program.o"
        program.write_text(source)
        flags = (*(QUICK if quick else FULL), *extra, *GENERATED_FLAGS)
        check(compile_file(program, made, flags), "the generated program")
        objects = [str(made), *map(str, runtime.objects())]
        options = [*FLAGS, *extra, "-shared", "-Wl,-Bsymbolic"]
        check(_start([compiler(), *options, *objects, "-o", str(target)]), "linking")
