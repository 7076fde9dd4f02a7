"""Runs on a server before anything of ours is there: says what the server is, then what time it has.

Its text is given to the server's own Python, which may be older than ours, so it uses the standard library
and the syntax of Python 3.7. The first line that it reads is a JSON object with `folder` (below the home, or
whole) and `files` (paths in it); it answers one JSON line. Each further line is answered with the time.
"""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import shutil
import sys
import time
from pathlib import Path
from typing import Any, Iterable  # noqa: UP035  # of Python 3.7


def digest_of(folder: Path, files: Iterable[str]) -> str | None:
    """Return a digest of the files' paths and contents, or None where one is missing."""
    digest = hashlib.sha256()
    for name in files:
        path = folder / name
        try:
            is_link = path.is_symlink()
            content = os.readlink(str(path)).encode() if is_link else path.read_bytes()  # noqa: PTH115
        except OSError:
            return None
        digest.update(name.encode() + b"\0" + hashlib.sha256(content).digest())
    return digest.hexdigest()


def is_there(path: Path) -> bool:
    """Return whether there is such a file or folder, and this user may see it."""
    return os.path.exists(str(path))  # noqa: PTH110  # pathlib raises where he may not


def free_bytes(folder: Path) -> int:
    """Return what is left on the disk that a folder is or will be on."""
    while not is_there(folder):
        folder = folder.parent
    return shutil.disk_usage(str(folder)).free


def boot_id() -> str:
    """Return what tells this machine, since it was started, from all others."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def user_name() -> str:
    """Return the name of the user whose rights this process has, or the number of one without a name."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def look(request: dict[str, Any]) -> dict[str, Any]:
    """Return what the server is."""
    folder = Path("~").expanduser() / request["folder"]
    mininet = [place for place in sys.path if is_there(Path(place) / "mininet" / "net.py")]
    return {
        "is_root": os.geteuid() == 0,
        "user": user_name(),
        "python": list(sys.version_info[:3]),
        "cores": len(os.sched_getaffinity(0)),
        "free_bytes": min(free_bytes(folder), free_bytes(Path("/tmp"))),
        "has_mininet": bool(mininet) and shutil.which("mnexec") is not None,
        "folder": str(folder),
        "exists": is_there(folder),
        "has_environment": is_there(folder / ".venv" / "bin" / "python"),
        "digest": digest_of(folder, request["files"]),
        "boot_id": boot_id(),
        "address": (os.environ.get("SSH_CONNECTION", "").split() + [""] * 4)[2],
    }


def main() -> None:
    """Answer until there are no more lines."""
    print(json.dumps(look(json.loads(sys.stdin.readline()))), flush=True)
    while sys.stdin.readline():
        print(time.time(), flush=True)


if __name__ == "__main__":
    main()
