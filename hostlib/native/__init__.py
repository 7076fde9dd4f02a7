"""The core of the hosts: what is done for each fragment. There is one in C and one in Python.

The compiled one does it for a burst of datagrams at once, and leaves to Python what is out of the ordinary.
`make setup`, or `python -m hostlib.native`, compiles it where there are a C compiler and Python's headers.
Where that has not happened, or where WEIR_PURE=1 forbids it, `core()` is the one in Python, which is the
reference: the tests run both. Who needs the core asks for it once, when it begins; requests, lanes and round
trips are its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

from hostlib.native import extension
from hostlib.native.build import FOLDER, MODULE
from hostlib.native.python import PythonCore

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from hostlib.native import lane
    from hostlib.protocol.wire import Buffer


Served = tuple[int, int, int, int, list[tuple[int, bytes, int, int, int]]]
"""GETs; of them retries, past the pool, repairs, fills; of what was begun fragments, key, depth, length of
the chain and parent."""


COMPLETE, LEARNED = -1, -2
"""Values of `Core.take_values` that stand in place of the index of a fetch's probe."""


class Core(Protocol):
    """The functions that clients and storage nodes call for each packet, in C or in Python.

    A function that takes or encodes a run of messages returns None, no message or 0 if there is no run. Its
    caller then handles one message at a time.
    """

    @property
    def is_compiled(self) -> bool:
        """Return whether it is the one in C, which takes datagrams as bytes; the one in Python hands over
        views."""

    @property
    def Request(self) -> type[lane.Request[Any]]:
        """Return the class of requests: one fragment that is asked for or offered."""

    @property
    def RoundTrips(self) -> type[lane.RoundTrips]:
        """Return how long a home takes to answer."""

    @property
    def Lane(self) -> type[lane.Lane[Any]]:
        """Requests towards one home."""

    def receive(
        self, sock: socket.socket, port: int, room: memoryview, /
    ) -> tuple[Mapping[str, Sequence[Buffer]], int, int, int, int]:
        """Return what waits, by sender, where that is worth it as views of `room`; datagrams, bytes,
        datagrams from other ports; drops, or -1."""

    def send(
        self,
        sock: socket.socket,
        address: str,
        port: int,
        datagrams: list[bytes],
        at: int,
        batch_bytes: int,
        together: bool,
        /,
    ) -> tuple[int, int]:
        """Send datagrams; return how many left, and their bytes. Raises OSError."""

    def total(self, datagrams: list[bytes], /) -> int:
        """Return the bytes of all datagrams."""

    def serve_gets(
        self, datagrams: Sequence[Buffer], at: int, shelf: tuple[Any, ...], epoch: int,
        backlog_ms: Callable[[int], int], replies: list[bytes], /,
    ) -> Served | None:  # fmt: skip
        """Answer a run of GETs for blocks in DRAM."""

    def new_requests(self, owner: Any, first: int, end: int, /) -> list[lane.Request[Any]]:
        """Make requests for the fragments `range(first, end)`."""

    def drop(self, requests: list[lane.Request[Any]], /) -> None:
        """Drop requests whose answers nobody wants any more."""

    def encode_gets(
        self, requests: list[Any], at: int, kind: type[Any], sequence: int, now_s: float, tenant: int,
        epoch: int, /,
    ) -> list[bytes]:  # fmt: skip
        """Return the GETs of requests whose owners are of a kind."""

    def take_values(
        self, datagrams: Sequence[Buffer], at: int, active: Mapping[bytes, Any], tenant: int,
        tag_state: bytes, now_s: float, members_epoch: int, /,
    ) -> tuple[int, int, int, int, int, list[tuple[Any, int]]] | None:  # fmt: skip
        """Take a run of VALUEs; return how many; from home, merged; epoch and backlog in ms of the homes;
        fetches that are COMPLETE, have LEARNED from their probes, or whose probes are at a place."""

    def tag_state(self, key: bytes, /) -> bytes:
        """Return a hash for tags that has read its key."""

    def encode_puts(
        self, requests: list[Any], at: int, template: bytes, sequence: int, content: Buffer,
        tags: list[bytes], tag_state: bytes, /,
    ) -> list[bytes]:  # fmt: skip
        """Return the PUTs of a run of requests."""

    def take_acks(
        self, datagrams: Sequence[Buffer], at: int, requests: list[Any], most: int, tenant: int, content: int,
        now_s: float, target_ms: int, /,
    ) -> tuple[int, int, list[tuple[int, int]]] | None:  # fmt: skip
        """Take a run of PUT_ACKs; return how many, epoch, and fragments with backlogs above the target."""

    def put_run(self, datagrams: list[bytes], at: int, /) -> tuple[int, int]:
        """Return how many are fragments of one write; the first of them that is its first one, or how
        many."""

    def keep(
        self, values: dict[int, Any], datagrams: list[bytes], at: int, count: int, fragments: int, /
    ) -> int:
        """Return how many of a run were kept before all fragments were there."""

    def join(self, values: Mapping[int, Any], fragments: int, /) -> tuple[bytes, bytes]:
        """Return a block's content and tags."""

    def encode_acks(
        self, datagrams: list[bytes], at: int, count: int, flags: int, write: int, epoch: int,
        backlog_ms: int, replies: list[bytes], reason: int, /,
    ) -> None:  # fmt: skip
        """Append the PUT_ACKs of a run, or the REFUSEDs if there is a reason, to `replies`."""

    def copy(self, data: Buffer, /) -> bytes:
        """Return the same bytes; with the compiled core other threads go on meanwhile."""


class CompiledCore(Core, Protocol):
    """The core in C: what tests compare with Python besides."""

    def tags(self, tag_state: bytes, messages: list[bytes], kind: int = ..., /) -> bytes:
        """Return the tags of messages with values, one behind the other."""

    def crc32(self, data: bytes, plainly: bool = False, /) -> int:
        """Return the CRC-32 that zlib computes."""


PYTHON: Core = PythonCore()
"""The core in Python."""


def load(path: Path) -> CompiledCore:
    """Return the core in a shared object; ImportError."""
    return cast("CompiledCore", extension.load(MODULE, path))


def core() -> Core:
    """Return the compiled core, or the one in Python where there is none."""
    compiled = cast("Core | None", extension.compiled(MODULE, FOLDER))
    return PYTHON if compiled is None else compiled
