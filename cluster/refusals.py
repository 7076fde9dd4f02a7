"""Reasons why a server can't be used, found before anything is started.

Each is a sentence with the server's name and what to do.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from cluster.clocks import Offset
from cluster.servers import Server

LEAST_FREE_BYTES: Final = 1 << 30
"""Free bytes that a server's disk needs for a checkout, its environment, logs and builds."""
LEAST_FREE_SET_UP_BYTES: Final = 256 << 20
"""Free bytes that a server's disk needs if the environment is there already."""
MOST_WALL_CLOCK_APART_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Found:
    """Description of a server, by itself."""

    server: Server
    is_root: bool
    user: str
    python: tuple[int, ...]
    cores: float
    free_bytes: int
    has_mininet: bool
    folder: str
    exists: bool
    has_environment: bool
    digest: str | None
    address: str
    """Address at which ssh reached it."""
    clock: Offset
    """Offset of its wall clock from ours."""
    is_here: bool = False
    """Whether it is this machine."""

    @property
    def usable_cores(self) -> float:
        """Return how many cores may be given work."""
        return self.cores if self.server.cores is None else min(self.cores, self.server.cores)

    def with_cores(self, cores: float) -> Found:
        """Return the same description with at most so many cores."""
        return replace(self, cores=min(self.cores, cores))

    @property
    def reached_at(self) -> str:
        """Return the address at which the other servers reach it."""
        return self.server.address or self.address


def refusal(found: Found, digest: str, here: Sequence[int] = sys.version_info[:2]) -> str | None:
    """Return why a server can't be used, in a sentence that says what to do; None if it can be.

    `digest` is that of the checkout here, `here` the version of this Python.
    """
    name = f"server {found.server.name}"
    if tuple(found.python[:2]) != tuple(here[:2]):
        theirs, ours = (".".join(map(str, version[:2])) for version in (found.python, here))
        return (
            f"{name} has Python {theirs} and this machine Python {ours}: install the same release of the "
            "operating system on both"
        )
    if not found.is_root:
        return (
            f"{name}: network namespaces need root, and ssh logs in as {found.user}: use "
            f"root@{found.server.name} in SERVERS, or User root in ~/.ssh/config"
        )
    least = LEAST_FREE_SET_UP_BYTES if found.has_environment else LEAST_FREE_BYTES
    if found.free_bytes < least:
        return (
            f"{name} has {found.free_bytes / 1e6:,.0f} MB of disk left and needs {least / 1e6:,.0f}: make "
            "room in /tmp and in root's home there"
        )
    apart_s = abs(found.clock.ahead_s) - found.clock.within_s
    if apart_s > MOST_WALL_CLOCK_APART_S:
        way = "ahead of" if found.clock.ahead_s > 0 else "behind"
        return (
            f"{name}: its clock is {abs(found.clock.ahead_s):.1f} s {way} this machine's: set both by NTP "
            "(apt-get install systemd-timesyncd)"
        )
    return None if found.server.folder is None else _unfit_folder(found, digest)


def _unfit_folder(found: Found, digest: str) -> str | None:
    """Return why the checkout that a user set up on the server can't be used; None if it can be."""
    name = f"server {found.server.name}"
    if not found.exists or not found.has_environment:
        return (
            f"{name}: {found.folder} is no checkout with an environment: clone there and run make setup, or "
            "leave out folder, and one is made"
        )
    if not found.has_mininet:
        return f"{name} has no Mininet: run make setup in {found.folder} there, as root"
    if found.digest != digest:
        return (
            f"{name}: the files in {found.folder} are of another revision than here: check out the same "
            "there, or leave out folder, and a copy is made"
        )
    return None


def twice(found: Sequence[Found]) -> str | None:
    """Return a sentence about two servers that have the same address; None if there are none."""
    names: dict[str, str] = {}
    for one in found:
        if one.reached_at in names:
            both = f"{names[one.reached_at]} and {one.server.name}"
            return (
                f"servers {both} have the same address, {one.reached_at}: "
                "name each server once, or give the address at which others reach it (a .toml file's address)"
            )
        names[one.reached_at] = one.server.name
    return None


def unreachable(server: Server, code: int, words: str) -> str:
    """Return why a server that gave no answer can't be used, by what ssh printed."""
    name, config = f"server {server.name}", server.ssh_config
    by = server.ssh if config is None else f"-F {config} {server.ssh}"
    if code == 127:
        return f"{name} has no /usr/bin/python3 ({words}): apt-get install python3 there"
    if "SyntaxError" in words:
        return f"{name} has a Python before 3.7: install the operating system of this machine there ({words})"
    if "Host key verification failed" in words:
        return (
            f"{name}: its host key is not known here ({words}): log in once by hand (ssh {by}) and "
            "compare the key"
        )
    if "Permission denied" in words:
        return (
            f"{name} lets nobody in without a password ({words}): put your public key there, for a login as "
            f"root (ssh-copy-id {by})"
        )
    reason = words or "it said nothing"
    return f"{name} can't be reached ({reason}): try ssh {by} true, and see {config or '~/.ssh/config'}"
