"""SHA-256 of large files on all cores, each file read once: digests are kept on disk for the next start."""

from __future__ import annotations

import json
import logging
import os
import stat
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from hostlib.protocol.errors import KeySpaceError

CHUNK_BYTES: Final = 64 << 20
"""A file's digest is that of the digests of its chunks, which several cores read."""
READ_BYTES: Final = 1 << 20
MAX_THREADS: Final = 16
NICENESS: Final = 10
"""Hashing leaves the cores to the engine."""
SETTLED_S: Final = 2.0
"""A file that changed within this time may change again without other times: its digest is not kept."""

MAX_KEPT: Final = 8192

_log = logging.getLogger("weir")


@dataclass(frozen=True)
class FileState:
    """State of a file by which a change of its content is noticed."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, path: Path, *, follow: bool = True) -> FileState:
        """Return that of a file, or of a link itself; OSError if there is none."""
        return cls._of(path.stat(follow_symlinks=follow))

    @classmethod
    def of_open(cls, descriptor: int) -> FileState:
        """Return that of an open file."""
        return cls._of(os.fstat(descriptor))

    @classmethod
    def _of(cls, found: os.stat_result) -> FileState:
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)

    @property
    def changed_s(self) -> float:
        """Return when content, name or owner changed last: unlike the time of modification, nobody can set
        it."""
        return self.ctime_ns / 1e9


def digest_of(path: Path, state: FileState) -> str:
    """Return the digest of the content of a file in `state`, from the folder of digests or by reading it.

    Raises KeySpaceError if the file can't be read, or is in another state before or after.
    """
    kept = _Kept.at(cache_folder(), path, state)
    digest = kept.read() if kept is not None else None
    if digest is None:
        is_settled = time.time() - state.changed_s > SETTLED_S
        digest = _hashed(path, state)
        if kept is not None and is_settled:
            kept.write(digest)
    return digest


def cache_folder() -> Path | None:
    """Return the user's folder of digests, made if need be, or None if others could write to it."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "weir" / "digests"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for one in (folder, folder.parent):
            found = one.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
                raise PermissionError(f"{one} must be a folder that only its owner can write to")
    except (OSError, RuntimeError) as error:
        _log.warning("Digests of models are not kept, each start hashes them again: %s", error)
        return None
    return folder


@dataclass(frozen=True)
class _Kept:
    """Place where the digest of one state of a file is kept."""

    place: Path
    state: str

    @classmethod
    def at(cls, folder: Path | None, path: Path, state: FileState) -> _Kept | None:
        if folder is None:
            return None
        described = json.dumps([str(path.resolve()), asdict(state)], sort_keys=True)
        return cls(folder / sha256(described.encode()).hexdigest(), described)

    def read(self) -> str | None:
        """Return the digest, or None if it is not kept, or not by this user for this state."""
        try:
            descriptor = os.open(self.place, os.O_RDONLY | os.O_NOFOLLOW)
            with os.fdopen(descriptor, "rb") as file:
                found = os.fstat(descriptor)
                if found.st_uid != os.getuid() or found.st_mode & 0o022:
                    return None
                state, digest = json.loads(file.read(1 << 16))
        except (OSError, ValueError, TypeError, RecursionError):
            return None
        return digest if state == self.state and isinstance(digest, str) and len(digest) == 64 else None

    def write(self, digest: str) -> None:
        """Keep it: whole or not at all."""
        try:
            _make_room(self.place.parent)
            descriptor, name = tempfile.mkstemp(dir=self.place.parent, prefix=".")
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                    json.dump([self.state, digest], file)
                Path(name).replace(self.place)
            except BaseException:
                Path(name).unlink()
                raise
        except OSError as error:
            _log.warning("A model's digest is not kept, the next start hashes it again: %s", error)


def _make_room(folder: Path) -> None:
    """Remove the older half of the digests where there are too many."""
    kept = list(folder.iterdir())
    if len(kept) >= MAX_KEPT:
        for path in sorted(kept, key=lambda one: one.lstat().st_mtime_ns)[: len(kept) // 2]:
            path.unlink(missing_ok=True)


def _hashed(path: Path, state: FileState) -> str:
    """Return the digest of a file by reading it."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            if FileState.of_open(descriptor) != state:
                raise KeySpaceError(f"{path} changes while it is read")
            starts = range(0, state.size, CHUNK_BYTES)
            threads = min(len(os.sched_getaffinity(0)), MAX_THREADS, max(1, len(starts)))
            with ThreadPoolExecutor(threads, "weir digests", _step_back) as pool:
                parts = list(pool.map(lambda start: _hash_chunk(descriptor, start), starts))
            if FileState.of_open(descriptor) != state:
                raise KeySpaceError(f"{path} changes while it is read")
        finally:
            os.close(descriptor)
    except OSError as error:
        raise KeySpaceError(f"{path} can't be read: {error}") from None
    return sha256(b"".join((state.size.to_bytes(8, "big"), *parts))).hexdigest()


def _hash_chunk(descriptor: int, start: int) -> bytes:
    """Return the digest of one chunk: up to its end, or the file's."""
    chunk, buffer = sha256(), bytearray(READ_BYTES)
    view, end = memoryview(buffer), start + CHUNK_BYTES
    while start < end:
        count = os.preadv(descriptor, [view[: end - start]], start)
        if not count:
            break
        chunk.update(view[:count])
        start += count
    return chunk.digest()


def _step_back() -> None:
    """Give this thread less of the CPU than the engine's."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
