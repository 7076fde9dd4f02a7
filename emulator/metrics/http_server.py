"""HTTP server for a few clients of this machine, none of which can hold a thread forever."""

from __future__ import annotations

from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from v1model.bounded_threads import BoundedThreads

MAX_CONNECTIONS = 16
"""Number of connections; further ones are closed."""
REQUEST_TIMEOUT_S = 5.0
"""Seconds after which a client that sends or takes nothing is dropped."""


class Server(BoundedThreads, WSGIServer):
    """WSGI server that answers each connection in a thread of its own."""

    max_connections = MAX_CONNECTIONS

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing about a connection that broke off or took too long."""


class Handler(WSGIRequestHandler):
    """Request handler that ends when its client is slow."""

    timeout = REQUEST_TIMEOUT_S

    def log_message(self, *_: Any) -> None:
        """Print nothing about scrapes."""
