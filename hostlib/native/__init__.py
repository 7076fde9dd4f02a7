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
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from hostlib.protocol.wire import Buffer


Served = tuple[int, int, int, int, list[tuple[int, bytes, int, int, int]]]
"""GETs; of them retries, past the pool, repairs, fills; of what was begun fragments, key, depth, length of
the chain and parent."""


COMPLETE, LEARNED = -1, -2
"""In place of where the probe of a fetch is (`Core.take_values`)."""


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
        batch_bytes: int,
        together: bool,
        /,
    ) -> tuple[int, int]:
        """How many left, and their bytes; OSError."""

    def total(self, datagrams: list[bytes], /) -> int:
        """Their bytes."""

    def serve_gets(
        self, datagrams: Sequence[Buffer], at: int, shelf: tuple[Any, ...], epoch: int,
        backlog_ms: Callable[[int], int], replies: list[bytes], /,
    ) -> Served | None:  # fmt: skip
        """A run of GETs for blocks in DRAM is answered."""

    def new_requests(self, kind: type[Any], owner: Any, first: int, end: int, /) -> list[Any]:
        """Requests for fragments from the first to before the last."""

    def encode_gets(
        self, requests: list[Any], at: int, kind: type[Any], sequence: int, now_s: float, tenant: int,
        epoch: int, /,
    ) -> list[bytes]:  # fmt: skip
        """The GETs of requests whose owners are of a kind."""

    def take_values(
        self, datagrams: Sequence[Buffer], at: int, active: Mapping[bytes, Any], tenant: int,
        tag_state: bytes, now_s: float, pool: str, members_epoch: int, /,
    ) -> tuple[int, int, int, int, int, list[tuple[Any, int]]] | None:  # fmt: skip
        """A run of VALUEs: how many; from home, merged; epoch and backlog in ms of the homes; fetches
        that are COMPLETE, have LEARNED from their probes, or whose probes are at a place."""

    def tag_state(self, key: bytes, /) -> bytes:
        """A hash for tags that has read its key."""

    def tags(self, tag_state: bytes, messages: list[bytes], kind: int = ..., /) -> bytes:
        """Of messages with values, one behind the other."""

    def add(self, lane: Any, requests: list[Any], /) -> None:
        """Requests wait in a lane."""

    def encode_puts(
        self, requests: list[Any], at: int, template: bytes, sequence: int, content: Buffer,
        tags: list[bytes], tag_state: bytes, /,
    ) -> list[bytes]:  # fmt: skip
        """The PUTs of a run of requests."""

    def take_acks(
        self, datagrams: Sequence[Buffer], at: int, requests: list[Any], most: int, tenant: int, content: int,
        now_s: float, target_ms: int, /,
    ) -> tuple[int, int, list[tuple[int, int]]] | None:  # fmt: skip
        """A run of PUT_ACKs: how many, epoch, fragments with backlogs above the target."""

    def put_run(self, datagrams: list[bytes], at: int, /) -> tuple[int, int]:
        """How many are fragments of one write; the first of them that is its first one, or how many."""

    def keep(
        self, values: dict[int, Any], datagrams: list[bytes], at: int, count: int, fragments: int, /
    ) -> int:
        """How many of a run were kept before all fragments were there."""

    def join(self, values: Mapping[int, Any], fragments: int, /) -> tuple[bytes, bytes]:
        """A block's content and tags."""

    def encode_acks(
        self, datagrams: list[bytes], at: int, count: int, flags: int, write: int, epoch: int,
        backlog_ms: int, replies: list[bytes], reason: int, /,
    ) -> None:  # fmt: skip
        """The PUT_ACKs of a run, or the REFUSEDs if there is a reason, are appended."""

    def copy(self, data: Buffer, /) -> bytes:
        """The same bytes; other threads go on meanwhile."""

    def drop(self, requests: list[Any], /) -> None:
        """Nobody wants requests any more."""

    def launched(self, lane: Any, requests: list[Any], now_s: float, timeout_s: float, /) -> None:
        """Requests are in flight by someone else's packets."""

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

    def crc32(self, data: bytes, plainly: bool = False, /) -> int:
        """As zlib's."""


def load(path: Path) -> Core:
    """The core in a shared object; ImportError."""
    return cast("Core", extension.load(MODULE, path))


def core() -> Core | None:
    """See the module. Who needs it asks once, when it begins."""
    return cast("Core | None", extension.compiled(MODULE, FOLDER))
