"""TCP server of the Thrift services."""

from __future__ import annotations

import logging
import socket
import threading
from typing import TYPE_CHECKING, BinaryIO

from v1model.thrift.binary import ProtocolError, Reader

if TYPE_CHECKING:
    from v1model.thrift.dispatcher import Dispatcher

LOOPBACK = "127.0.0.1"
MAX_CONNECTIONS = 64
SEND_TIMEOUT_S = 60.0

logger = logging.getLogger(__name__)


class ThriftServer:
    """Server at a port of this machine only, because its clients may do everything."""

    def __init__(self, port: int, dispatcher: Dispatcher) -> None:
        """Open the port; raises OSError if it is in use. 0 takes a free one."""
        self._dispatcher = dispatcher
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server((LOOPBACK, port))
        self.port = int(self._listener.getsockname()[1])

    def start(self) -> None:
        threading.Thread(target=self._accept, name="thrift", daemon=True).start()

    def stop(self) -> None:
        """End all connections; a running call may still be completed."""
        self._shut(self._listener)
        with self._lock:
            for connection in self._connections:
                self._shut(connection)

    @staticmethod
    def _shut(connection: socket.socket) -> None:
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                is_one_too_many = len(self._connections) >= MAX_CONNECTIONS
                if not is_one_too_many:
                    self._connections.add(connection)
            if is_one_too_many:
                logger.warning("Thrift: more than %d connections, one is refused", MAX_CONNECTIONS)
                connection.close()
                continue
            threading.Thread(target=self._serve, args=(connection,), name="thrift", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with connection.makefile("rb") as stream:
                self._answer_all(connection, stream)
        except ProtocolError as error:
            logger.warning("Thrift: a connection is closed: %s", error)
        except OSError:
            pass
        finally:
            with self._lock:
                self._connections.discard(connection)
            connection.close()

    def _answer_all(self, connection: socket.socket, stream: BinaryIO) -> None:
        reader = Reader(lambda count: _take(stream, count))
        while True:
            try:
                name, sequence, arguments = reader.message()
            except EOFError:
                return
            answer = self._dispatcher.answer(name, sequence, arguments)
            connection.settimeout(SEND_TIMEOUT_S)
            connection.sendall(answer)
            connection.settimeout(None)


def _take(stream: BinaryIO, count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise EOFError
    return data
