"""Program that runs on a server before anything of ours is there: it describes the server, then gives its
time.

Its text is given to the server's own Python, which may be older than ours. So it uses the standard library
and the syntax of Python 3.7. The first line that it reads is a JSON object with `folder` (absolute, or below
the home) and `files` (paths in it); the answer is one JSON line. It answers each further line with the time.
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
    """Return a digest of the files' paths and contents, or None if one is missing."""
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
    """Return whether a file or folder exists that this user may see."""
    return os.path.exists(str(path))  # noqa: PTH110  # pathlib raises without permission


def free_bytes(folder: Path) -> int:
    """Return the free bytes on the disk of a folder that may not exist yet."""
    while not is_there(folder):
        folder = folder.parent
    return shutil.disk_usage(str(folder)).free


def boot_id() -> str:
    """Return an id of this machine's current boot, unique among machines; "" if there is none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def user_name() -> str:
    """Return the name of the effective user, or its number if it has no name."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def look(request: dict[str, Any]) -> dict[str, Any]:
    """Return a description of the server."""
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
    """Answer lines of stdin until they end."""
    print(json.dumps(look(json.loads(sys.stdin.readline()))), flush=True)
    while sys.stdin.readline():
        print(time.time(), flush=True)


if __name__ == "__main__":
    main()
