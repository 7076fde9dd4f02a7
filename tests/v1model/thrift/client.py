"""A client of Thrift's binary protocol, as far as the tests need one."""

from __future__ import annotations

import socket
from typing import Any

from v1model.thrift.binary import CALL, EXCEPTION, REPLY, Reader, Type, field, message, struct_of


class Raised(Exception):
    """The call raised an exception of its own with this code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Client:
    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._stream = self.socket.makefile("rb")
        self._sequence = 0

    def close(self) -> None:
        self._stream.close()
        self.socket.close()

    def __call__(self, name: str, *arguments: tuple[Type, Any]) -> Any:
        """The result of `service:call`; None for void. Raises Raised."""
        self._sequence += 1
        fields = [field(number, kind, value) for number, (kind, value) in enumerate(arguments, start=1)]
        self.socket.sendall(message(name, CALL, self._sequence, struct_of(*fields)))
        answered, sequence, answer = Reader(self.read).message(REPLY)
        assert (answered, sequence) == (name.rpartition(":")[2], self._sequence)
        if 1 in answer:
            raise Raised(answer[1][1])
        return answer.get(0)

    def refused(self, data: bytes) -> tuple[str, str]:
        """The name and the words of the exception that answers bytes."""
        self.socket.sendall(data)
        name, _, answer = Reader(self.read).message(EXCEPTION)
        return name, answer[1].decode()

    def read(self, count: int) -> bytes:
        data = self._stream.read(count)
        if len(data) < count:
            raise EOFError
        return data
