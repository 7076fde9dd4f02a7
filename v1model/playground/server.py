"""Web server of the playground, for this machine only: its page and files, and the running of documents.

Every path begins with a token that only the user who started it knows. A request from another page of the
same browser has no token. A request that names another host, as a rebound name does, is refused.
"""

from __future__ import annotations

import hmac
import secrets
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from v1model.bounded_threads import BoundedThreads
from v1model.playground.document import MAX_DOCUMENT_BYTES
from v1model.playground.pcap_packets import packets_of_pcap
from v1model.playground.run import run

PAGE = Path(__file__).parent / "page"
FILES = {
    "": ("index.html", "text/html; charset=utf-8"),
    "app.js": ("app.js", "text/javascript; charset=utf-8"),
    "walk.js": ("walk.js", "text/javascript; charset=utf-8"),
    "editor.js": ("editor.js", "text/javascript; charset=utf-8"),
    "style.css": ("style.css", "text/css; charset=utf-8"),
    "example.json": ("example.json", "application/json"),
}
MAX_CONNECTIONS = 32  # further ones are closed
MAX_RUNNING = 2  # documents at once
MAX_WAIT_S = 30.0
REQUEST_TIMEOUT_S = 20.0
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class PlaygroundServer(BoundedThreads, HTTPServer):
    """Server at 127.0.0.1; `port` 0 takes a free port. `url` has the token."""

    max_connections = MAX_CONNECTIONS

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.token = secrets.token_urlsafe(24)
        self.running = threading.BoundedSemaphore(MAX_RUNNING)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/{self.token}/"


class _Handler(BaseHTTPRequestHandler):
    server: PlaygroundServer
    server_version, sys_version = "weir-playground", ""
    timeout = REQUEST_TIMEOUT_S  # of a client that sends nothing

    def do_GET(self) -> None:
        name = self._name()
        if name is None or name not in FILES:
            self._answer(HTTPStatus.NOT_FOUND, b"there is nothing here", "text/plain")
            return
        file, kind = FILES[name]
        self._answer(HTTPStatus.OK, (PAGE / file).read_bytes(), kind)

    def do_POST(self) -> None:
        name = self._name()
        if name not in ("run", "pcap"):
            self._answer(HTTPStatus.NOT_FOUND, b"there is nothing here", "text/plain")
            return
        body = self._body()
        if body is None:
            return
        if name == "pcap":
            self._answer(HTTPStatus.OK, packets_of_pcap(body), "application/json")
            return
        if not self.server.running.acquire(timeout=MAX_WAIT_S):
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, b"other runs take too long", "text/plain")
            return
        try:
            answer = run(body)
        finally:
            self.server.running.release()
        self._answer(HTTPStatus.OK, answer, "application/json")

    def _name(self) -> str | None:
        """Return the name of the requested file, None without the token or with another host's name."""
        host = self.headers.get("Host", "")
        if host not in (f"127.0.0.1:{self.server.server_port}", f"localhost:{self.server.server_port}"):
            return None
        origin = self.headers.get("Origin")
        if origin is not None and origin != f"http://{host}":
            return None
        token, _, name = self.path.removeprefix("/").partition("?")[0].partition("/")
        return name if hmac.compare_digest(token.encode(), self.server.token.encode()) else None

    def _body(self) -> bytes | None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MAX_DOCUMENT_BYTES:
            message = f"a document has a length, of at most {MAX_DOCUMENT_BYTES} bytes"
            self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message.encode(), "text/plain")
            return None
        return self.rfile.read(int(length))

    def _answer(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in {**_HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Log nothing: paths have the token."""
