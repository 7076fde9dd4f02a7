"""Servers in Python that bound the threads that clients can hold."""

from __future__ import annotations

import threading
from socketserver import ThreadingMixIn
from typing import Any


class BoundedThreads(ThreadingMixIn):
    """Server mix-in with a thread for each connection; connections beyond `max_connections` are closed."""

    daemon_threads = True
    max_connections: int

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._connections = threading.BoundedSemaphore(self.max_connections)

    def process_request(self, request: Any, client_address: Any) -> None:
        """See ThreadingMixIn."""
        if self._connections.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)  # type: ignore[attr-defined]  # the server's, beside this class

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """See ThreadingMixIn."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connections.release()
