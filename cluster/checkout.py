"""Copying of this checkout to a server, and its set-up there.

With git, the tracked and new files are copied, with uncommitted changes; without git, everything but what
set-up and runs make. A server has one folder for the checkout. Its environment stays when the files change.
"""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from cluster.errors import ServerError
from cluster.probe import digest_of
from cluster.servers import Server
from cluster.ssh import in_checkout, on_server
from emulator.result import ROOT

COPY_TIMEOUT_S: Final = 600.0
SETUP_TIMEOUT_S: Final = 1800.0
INDEX_VARIABLES: Final = (
    "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "http_proxy", "https_proxy", "no_proxy",
)  # fmt: skip
"""Variables that say where Python packages come from."""
GENERATED_FOLDERS: Final = ("build", "results", "__pycache__", "node_modules")
"""Folders that are no part of a checkout, besides `.git` and virtual environments."""
_UNPACK: Final = """
set -e
mkdir -p "$1"
cd "$1"
exec 9>.weir-lock
flock -n 9 || { echo "another run uses it"; exit 3; }
rm -rf .weir-new && mkdir .weir-new
tar -xzf - -C .weir-new
for kept in .venv build; do [ ! -e "$kept" ] && [ ! -L "$kept" ] || mv "$kept" .weir-new/; done
find . -mindepth 1 -maxdepth 1 ! -name .weir-new ! -name .weir-lock -exec rm -rf {} +
find .weir-new -mindepth 1 -maxdepth 1 -exec mv {} . \\;
rmdir .weir-new
"""
"""Shell script for a server that replaces the files in folder $1; `.venv` and `build` stay."""


@cache
def files_here() -> tuple[str, ...]:
    """Return the paths of this checkout's files, in order."""
    return files_of(ROOT)


def files_of(checkout: Path) -> tuple[str, ...]:
    """Return the paths of a checkout's files and links, in order."""
    git = ["git", "-C", str(checkout), "-c", f"safe.directory={checkout}"]
    listed = subprocess.run(
        [*git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        check=False,
    )
    if listed.returncode == 0 and listed.stdout:
        names = {name for name in listed.stdout.decode().split("\0") if name}
    else:
        names = set(_walked(checkout))
    return tuple(
        sorted(name for name in names if os.path.lexists(checkout / name) and not _is_generated(name))
    )


def _walked(checkout: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(checkout):
        folders[:] = [
            name
            for name in folders
            if name not in GENERATED_FOLDERS and name != ".git" and "venv" not in name
        ]
        paths = [Path(folder) / name for name in names]
        paths += [path for name in folders if (path := Path(folder) / name).is_symlink()]
        yield from (str(path.relative_to(checkout)) for path in paths)


def _is_generated(name: str) -> bool:
    first = name.split("/")[0]
    return first in GENERATED_FOLDERS or first.startswith(".venv")


@cache
def digest_here() -> str:
    """Return the digest of this checkout, computed as `probe` computes a server's."""
    digest = digest_of(ROOT, files_here())
    assert digest is not None
    return digest


@cache
def archive() -> bytes:
    """Return this checkout as a compressed archive."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=3) as tar:
        for name in files_here():
            tar.add(ROOT / name, name, recursive=False)
    return packed.getvalue()


def copy(server: Server, folder: str) -> None:
    """Put this checkout into a folder of a server; raises ServerError."""
    command = on_server(server, ["sh", "-c", _UNPACK, "sh", folder])
    _carry_out(server, command, archive(), COPY_TIMEOUT_S, f"the checkout could not be copied to {folder}")


def set_up(server: Server, folder: str) -> None:
    """Let a server make the environment of its checkout, which takes minutes the first time.

    Packages come from the same index as on this machine (INDEX_VARIABLES). Raises ServerError with the last
    output.
    """
    index = {name: os.environ[name] for name in INDEX_VARIABLES if name in os.environ}
    command = in_checkout(server, folder, ["sh", "scripts/setup.sh", "run"], index)
    problem = f"the checkout in {folder} could not be set up; log in and run make setup there"
    _carry_out(server, command, b"", SETUP_TIMEOUT_S, problem)


def _carry_out(server: Server, command: list[str], given: bytes, timeout_s: float, problem: str) -> None:
    try:
        done = subprocess.run(command, input=given, capture_output=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        raise ServerError(f"server {server.name}: {problem}: it took longer than {timeout_s:g} s") from None
    if done.returncode:
        output = (done.stderr + done.stdout).decode(errors="replace").strip()
        raise ServerError(f"server {server.name}: {problem}: {output[-500:]}")
