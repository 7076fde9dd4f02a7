"""Folder for a command's results: checked before the work, given to the checkout's owner after it."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from commands.errors import ExperimentError

ROOT = Path(__file__).resolve().parents[1]
LEAST_FREE_BYTES = 32 << 20
"""Free bytes that the disk needs: a run's pages, logs and details take some MB."""


@contextmanager
def results_folder(folder: Path) -> Iterator[None]:
    """Raise ExperimentError before the work if nothing can be written; afterwards give away what root wrote.

    If root runs a command in a user's checkout, the user could not write to the same folder again. So its
    content gets the owner of the nearest folder that existed before.
    """
    owner = _nearest(folder).stat()
    check_writable(folder)
    try:
        yield
    finally:
        if os.geteuid() == 0 and owner.st_uid != 0:
            _give(folder, owner.st_uid, owner.st_gid)
        give_builds()


def check_writable(folder: Path) -> None:
    """Try to make a folder and a temporary file in it; raises ExperimentError if that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"written")
        for name in ("summary.json", "report.html"):
            if (folder / name).exists() and not os.access(folder / name, os.W_OK):
                raise PermissionError(errno.EACCES, "belongs to another user", str(folder / name))
    except OSError as error:
        raise ExperimentError(
            f"results can't be written to {folder.resolve()} ({error.strerror}): choose another folder with "
            "RESULTS, or make this one yours (sudo chown -R)"
        ) from None
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE_BYTES:
        raise ExperimentError(
            f"the disk of {folder.resolve()} has {free / 1e6:.0f} MB left: make room, or choose another "
            "folder with RESULTS"
        )


def give_builds(root: Path = ROOT) -> None:
    """Give bytecode and builds that root left in another user's checkout to that user.

    The user could not remove them, and Python could not update them.
    """
    owner = root.stat()
    if os.geteuid() != 0 or owner.st_uid == 0:
        return
    tops = [top for top in root.iterdir() if top.is_dir() and not top.name.startswith(".")]
    created = [path for top in tops for path in top.rglob("__pycache__")]
    if (root / "build").is_dir():
        created.append(root / "build")
    for folder in created:
        for path in (folder, *folder.rglob("*")):
            with suppress(OSError):
                os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def _nearest(folder: Path) -> Path:
    """Return the folder, or the first above it that exists."""
    found = folder.absolute()
    while not found.exists() and found != found.parent:
        found = found.parent
    return found


def _give(folder: Path, user: int, group: int) -> None:
    """Change the owner of a folder that root made, of those above it that root made, and of all inside."""
    created = [folder, *folder.rglob("*")]
    above = folder.absolute().parent
    while above.stat().st_uid == 0 and above.parent.stat().st_uid == user:
        created.append(above)
        above = above.parent
    for path in created:
        with suppress(OSError):
            os.chown(path, user, group, follow_symlinks=False)
