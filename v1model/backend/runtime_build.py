"""Objects of the runtime, which all programs share: from the cache, or compiled while the program is read."""

from __future__ import annotations

import os
import tempfile
from collections import deque
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from v1model.backend import build as building

if TYPE_CHECKING:
    from collections.abc import Sequence
    from subprocess import Popen

CHECKSUM = f"objects{building.CHECKSUM}"
FUZZ_LOOP = building.PACKAGE / "fuzz" / "loop.c"


class RuntimeBuild:
    """Build of the runtime's objects, which begins at construction.

    `quick` makes objects that are ready sooner, unless the cache has the full ones.
    """

    def __init__(self, *, sanitize: bool = False, quick: bool = False) -> None:
        self._sources = sorted(building.RUNTIME.glob("*.c")) + ([FUZZ_LOOP] if sanitize else [])
        self._flags = (*building.FULL, *(building.SANITIZE_FLAGS if sanitize else ()))
        self._made: Future[list[Path]] = Future()
        if quick and not self._is_cached():
            self._flags = building.QUICK_RUNTIME
        if self._is_cached():
            building.mark_used(self._entry)
            self._made.set_result(self._cached())
        else:  # a daemon, so that the process can end at once if the program is refused
            Thread(target=self._make, name="runtime-build", daemon=True).start()

    def objects(self) -> list[Path]:
        """Wait for the objects and return their paths; raises CompileError if the C compiler failed."""
        return self._made.result()

    @property
    def _entry(self) -> Path:
        return building.cache_directory() / building.key_of("runtime", *self._flags)

    def _cached(self) -> list[Path]:
        return [self._entry / f"{source.stem}.o" for source in self._sources]

    def _is_cached(self) -> bool:
        """Return whether the objects exist with their checksum."""
        try:
            return _checksum(self._cached()) == (self._entry / CHECKSUM).read_bytes()
        except OSError:
            return False

    def _make(self) -> None:
        try:
            building.discard(self._entry)
            with tempfile.TemporaryDirectory() as directory:
                made = [Path(directory) / path.name for path in self._cached()]
                self._compile_all(made)
                files: dict[str, Path | bytes] = {CHECKSUM: _checksum(made)}
                files.update({path.name: path for path in made})
                building.publish(self._entry, files)
            self._made.set_result(self._cached())
        except BaseException as error:  # whoever waits for the objects gets it
            self._made.set_exception(error)

    def _compile_all(self, made: list[Path]) -> None:
        """Compile all sources, as many at a time as there are cores."""
        running: deque[tuple[Popen[str], str]] = deque()
        for source, target in zip(self._sources, made, strict=True):
            if len(running) >= len(os.sched_getaffinity(0)):
                building.check(*running.popleft())
            running.append((building.compile_file(source, target, self._flags), source.name))
        for process, what in running:
            building.check(process, what)


def _checksum(objects: Sequence[Path]) -> bytes:
    return building.checksum(b"".join(building.checksum(path.read_bytes()) for path in objects))
