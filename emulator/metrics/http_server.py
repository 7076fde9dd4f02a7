"""An HTTP server for a few clients of this machine, of which none can keep threads without end."""

from __future__ import annotations

from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from v1model.bounded_threads import BoundedThreads

MAX_CONNECTIONS = 16
"""One more is closed."""
REQUEST_TIMEOUT_S = 5.0
"""Of a client that sends or takes nothing."""


class Server(BoundedThreads, WSGIServer):
    """Answers each connection in a thread of its own."""

    max_connections = MAX_CONNECTIONS

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a connection that broke off or took too long."""


class Handler(WSGIRequestHandler):
    """Ends when its client is slow."""

    timeout = REQUEST_TIMEOUT_S

    def log_message(self, *_: Any) -> None:
        """Say nothing of each scrape."""
