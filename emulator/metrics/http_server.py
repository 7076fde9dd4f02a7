"""An HTTP server for a few clients of this machine, of which none can keep threads without end."""

from __future__ import annotations

import threading
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

MAX_CONNECTIONS = 16
"""One more is closed."""
REQUEST_TIMEOUT_S = 5.0
"""Of a client that sends or takes nothing."""


class Server(ThreadingMixIn, WSGIServer):
    """Answers each connection in a thread of its own."""

    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._connections = threading.BoundedSemaphore(MAX_CONNECTIONS)

    def process_request(self, request: Any, client_address: Any) -> None:
        """See ThreadingMixIn."""
        if self._connections.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """See ThreadingMixIn."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connections.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a connection that broke off or took too long."""


class Handler(WSGIRequestHandler):
    """Ends when its client is slow."""

    timeout = REQUEST_TIMEOUT_S

    def log_message(self, *_: Any) -> None:
        """Say nothing of each scrape."""
