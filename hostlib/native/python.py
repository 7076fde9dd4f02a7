"""The core of the hosts in Python: `hostlib.native.Core` where there is no compiled one, and its reference.

It takes no datagrams in runs: who asks it to does for each what is to be done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hostlib.native import lane, python_sockets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hostlib.protocol.wire import Buffer


class PythonCore:
    """See the module; `hostlib.native.Core` says what each function is."""

    is_compiled: Final = False
    Request: Final = lane.Request
    RoundTrips: Final = lane.RoundTrips
    Lane: Final = lane.Lane
    send = staticmethod(python_sockets.send)
    receive = staticmethod(python_sockets.receive)

    def total(self, datagrams: list[bytes], /) -> int:
        """See Core."""
        return sum(map(len, datagrams))

    def new_requests(self, owner: Any, first: int, end: int, /) -> list[lane.Request[Any]]:
        """See Core."""
        return [lane.Request(owner, fragment) for fragment in range(first, end)]

    def drop(self, requests: list[lane.Request[Any]], /) -> None:
        """See Core."""
        for request in requests:
            if request.lane is not None:
                request.lane.drop(request)
            request.done = True

    def join(self, values: Mapping[int, Any], fragments: int, /) -> tuple[bytes, bytes]:
        """See Core."""
        parts = [values[at] for at in range(fragments)]
        return b"".join(value for value, _ in parts), b"".join(tag for _, tag in parts)

    def copy(self, data: Buffer, /) -> bytes:
        """See Core."""
        return bytes(data)

    def tag_state(self, key: bytes, /) -> bytes:
        """See Core; for runs alone."""
        return b""

    def serve_gets(self, *_: object) -> None:
        """Take no run."""

    def take_values(self, *_: object) -> None:
        """Take no run."""

    def take_acks(self, *_: object) -> None:
        """Take no run."""

    def encode_gets(self, *_: object) -> list[bytes]:
        """Encode no run."""
        return []

    def encode_puts(self, *_: object) -> list[bytes]:
        """Encode no run."""
        return []

    def put_run(self, datagrams: Sequence[Buffer], at: int, /) -> tuple[int, int]:
        """Find no run."""
        return 0, 0

    def keep(self, *_: object) -> int:
        """Keep nothing: there was no run."""
        return 0

    def encode_acks(self, *_: object) -> None:
        """Acknowledge nothing: there was no run."""
