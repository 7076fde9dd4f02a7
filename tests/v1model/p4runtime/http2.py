"""An HTTP/2 client that begins gRPC calls and never ends them, or takes no answer."""

from __future__ import annotations

import socket
import struct

DATA, HEADERS, RST_STREAM, SETTINGS, GOAWAY = 0, 1, 3, 4, 7
INITIAL_WINDOW_SIZE = 4
END_STREAM, END_HEADERS = 1, 4
CANCEL = 8
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


class HalfOpen:
    """One connection. `address` is HOST:PORT."""

    def __init__(self, address: str, window: int = 65_535) -> None:
        """Connect; the server may send `window` bytes of an answer."""
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        self.socket.sendall(PREFACE + _frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW_SIZE, window)))
        self._next_stream = 1
        self._received = b""

    def begin(self, method: str, data: bytes = b"") -> None:
        """Begins a call, whose request has `data` as its first bytes."""
        self.socket.sendall(self._beginning(method, data))

    def call(self, method: str) -> None:
        """Makes a call with an empty request."""
        stream = self._next_stream
        self.socket.sendall(self._beginning(method) + _frame(DATA, END_STREAM, stream, bytes(5)))

    def begin_and_cancel(self, method: str, times: int) -> None:
        """Begins so many calls and takes each back in the next frame."""
        frames = b""
        for _ in range(times):
            stream = self._next_stream
            frames += self._beginning(method) + _frame(RST_STREAM, 0, stream, struct.pack(">I", CANCEL))
        self.socket.sendall(frames)

    def _beginning(self, method: str, data: bytes = b"") -> bytes:
        headers = [(":method", "POST"), (":scheme", "http"), (":path", f"/p4.v1.P4Runtime/{method}")]
        headers += [(":authority", "x"), ("content-type", "application/grpc"), ("te", "trailers")]
        block = b"".join(map(_literal, headers))
        frames = _frame(HEADERS, END_HEADERS, self._next_stream, block)
        frames += _frame(DATA, 0, self._next_stream, data) if data else b""
        self._next_stream += 2
        return frames

    def is_ended(self) -> bool:
        """Waits until the server has given up a call; False if it closes the connection before."""
        while True:
            kind = self._read_frame()
            if kind is None:
                return False
            if kind == RST_STREAM:
                return True

    def _read_frame(self) -> int | None:
        head = self._read(9)
        if head is None:
            return None
        (length,) = struct.unpack(">I", b"\0" + head[:3])
        return head[3] if self._read(length) is not None else None

    def _read(self, count: int) -> bytes | None:
        while len(self._received) < count:
            more = self.socket.recv(4096)
            if not more:
                return None
            self._received += more
        read, self._received = self._received[:count], self._received[count:]
        return read

    def close(self) -> None:
        self.socket.close()


def _literal(header: tuple[str, str]) -> bytes:
    """A header field that is not indexed, of less than 127 bytes."""
    name, value = (part.encode() for part in header)
    return bytes((0, len(name))) + name + bytes((len(value),)) + value


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload
