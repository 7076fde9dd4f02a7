"""The compiled core of the hosts: what is done for each fragment, in C, for a burst at once.

`make setup`, or `python -m hostlib.native`, compiles it where there are a C compiler and Python's headers.
`core()` is None where that has not happened, or where WEIR_PURE=1 forbids it; then the same is done in
Python, one fragment at a time. Python's is the reference: the tests run both, and what is out of the ordinary
is left to Python in any case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

from hostlib.native import extension
from hostlib.native.build import FOLDER, MODULE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from hostlib.wire import Buffer


class Core(Protocol):
    """What the C files of this folder define; each function's own comment is there."""

    def receive(self, fd: int, port: int, /) -> tuple[dict[str, list[bytes]], int, int, int, int]:
        """What waits: by sender; datagrams, bytes, datagrams from other ports; drops, or -1."""

    def send(
        self,
        fd: int,
        address: str,
        port: int,
        datagrams: list[bytes],
        at: int,
        longest: int,
        together: bool,
        /,
    ) -> tuple[int, int]:
        """How many left, and their bytes; OSError."""

    def get_run(self, datagrams: Sequence[Buffer], at: int, /) -> tuple[int, bool]:
        """GETs that are alike; whether one is of fragment 0."""

    def encode_values(
        self, gets: Sequence[Buffer], flags: int, fragments: int, write: int, epoch: int, backlog_ms: int,
        content: bytes, tags: bytes, /,
    ) -> list[bytes]:  # fmt: skip
        """The answers to a run of GETs."""

    def encode_gets(self, alike: bytes, requests: Sequence[Any], flags: int, sequence: int, /) -> list[bytes]:
        """The GETs of requests."""

    def take_values(
        self, datagrams: Sequence[Buffer], at: int, active: Mapping[bytes, Any], tenant: int, tags: Any, /
    ) -> tuple[Any, list[Any], list[int], int, int, int] | None:
        """A run of VALUEs: fetch, requests, backlogs in ms, flags, epoch, end of the block or 0."""

    def take(self, lane: Any, now_s: float, room: int, timeout_s: float, /) -> list[Any]:
        """Requests of a lane that are sent now."""

    def settle(
        self,
        lane: Any,
        requests: Sequence[Any],
        now_s: float,
        backlogs_ms: Sequence[int] | None,
        merged: bool,
        /,
    ) -> None:
        """Requests of a lane are answered."""

    def crc32(self, data: bytes, /) -> int:
        """As zlib's."""


def load(path: Path) -> Core:
    """The core in a shared object; ImportError."""
    return cast("Core", extension.load(MODULE, path))


def core() -> Core | None:
    """See the module. Who needs it asks once, when it begins."""
    return cast("Core | None", extension.compiled(MODULE, FOLDER))
